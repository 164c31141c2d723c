"""test_output.py PLIM: what README.md and doc/ show of the program is what it prints; tools/regenerate-output mends it.

First that the comparison can fail: a word, a count, a figure that is far off. Then the documents."""
import importlib.machinery, importlib.util, os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "regenerate-output")

PLAN = ["budget 48.0 MiB (stated)   predicted peak 24.9 MiB, at conv2d_1 backward",
        "  process 16.1 · kernel 0.2 ·", "    weights 0.9 · formats 0.3 · planner 0.2",
        "  keep 11 · encode 2 · read ahead 2 batches",
        "largest batch that fits 584",
        "\u25b8   24.5 MiB  \u2588\u2588\u258d  +3 %  this plan",
        "938/938 6s 6ms/step - accuracy: 0.8240 - loss: 0.4876 - mem 21.3/48.0 MiB"]
SAME = [("16.1", "16.3"), ("24.9 MiB", "25.5 MiB"), ("kernel 0.2", "kernel 0.3"), ("6s 6ms/step", "11s 14ms/step"),
        ("584", "570"), ("0.3 · planner", "0.3 · checkpoint 0.1 · planner"), ("6s 6ms", "1:07 71ms"), ("0.8240", "0.8301"), ("21.3/48.0", "21.9/48.0"), ("\u258d", "\u258c"), ("24.5", "24.7")]
OTHER = [("backward", "forward"), ("keep 11", "keep 12"), ("encode 2", "encode 1"), ("16.1", "17.2"), ("24.9 MiB", "27.0 MiB"),
         ("584", "500"), ("938/938", "937/937"), ("accuracy", "precision"), ("48.0 MiB (stated)", "48.0 MiB"), ("0.8240", "0.7000"),
         ("21.3/48.0", "25.3/48.0"), ("2 batches", "3 batches"), ("weights 0.9", "weights 1.9"), ("0.3 · planner", "0.3 · checkpoint 0.2 · planner"), ("MiB,", "KiB,"),
         ("+3 %", "+9 %"), ("this plan", "")]


def load_tool():
    loader = importlib.machinery.SourceFileLoader("regenerate_output", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def changed(old, new):
    lines = [line.replace(old, new) for line in PLAN]
    assert lines != PLAN, old
    return lines


def check_comparison(tool):
    bad = ["the same output is taken for another"] if tool.differences(PLAN, PLAN) else []
    bad += [f"{old} and {new} are taken for different" for old, new in SAME if tool.differences(PLAN, changed(old, new))]
    bad += [f"{old} and {new} are taken for the same" for old, new in OTHER if not tool.differences(PLAN, changed(old, new))]
    if not tool.differences(PLAN, PLAN[:-1]):
        bad.append("a line that is missing is not noticed")
    unmarked = tool.sessions(["```", "$ plim plan x.yaml", "```", "```console", "$ plim plan x.yaml", "```"])
    if unmarked[0] != [(4, 5)] or len(unmarked[1]) != 1:
        bad.append(f"blocks are found wrongly: {unmarked}")
    return bad


def main():
    bad = check_comparison(load_tool())
    if bad:
        print("\n".join(bad))
        return 1
    return subprocess.run([sys.executable, TOOL, sys.argv[1], "--check"]).returncode


sys.exit(main())
