"""test_documents.py - doc/ops.md and doc/layers.md against the tables: every op and layer once, what the tables say of
it word for word, arguments that the layer takes; every word of training in doc/training.md, every option in doc/plim.1.

usage: test_documents.py PRINT_FACTS [--write]. With --write the columns that the tables decide are written anew."""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = re.compile(r"^\| `([A-Za-z0-9_]+)` \|(.*)\|$")
WORD = re.compile(r"`([a-z_0-9]+)")


def facts(program, questions=""):
    """Lines of the program as {kind: {name: rest}}, of words {(layer, word): answer}."""
    text = subprocess.run([program], input=questions, capture_output=True, text=True, check=True).stdout
    found = {"op": {}, "layer": {}, "word": {}}
    for line in text.splitlines():
        kind, name, *rest = line.split("\t")
        if kind == "word":
            found[kind][name, rest[0]] = rest[1]
        else:
            found[kind][name] = rest
    return found


def cells(line):
    """The row's name and cells; a bar that is part of a cell is written \\|."""
    match = ROW.match(line)
    if not match:
        return None, []
    return match[1], [c.strip() for c in re.split(r"(?<!\\)\|", match[2])]


def expected_op(row, fact):
    why, planner = fact
    gradient = "none: " + why if why else row[1]
    return [row[0], gradient, planner]


def expected_layer(row, fact):
    other, known = fact
    return row[:3] + [", ".join(x for x in ["also " + other if other else "", known] if x)]


def check_page(path, kind, table, expected, write):
    """Complaints; rows in the page as {name: cells}."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    rows, bad = {}, []
    for number, line in enumerate(lines):
        name, row = cells(line)
        if name is None:
            continue
        if name in rows:
            bad.append(f"{path}:{number + 1}: {kind} {name} is there twice")
        if name not in table:
            bad.append(f"{path}:{number + 1}: there is no {kind} {name}")
            continue
        wanted = expected(row, table[name])
        if write:
            lines[number] = "| `" + name + "` | " + " | ".join(wanted) + " |"
        elif row != wanted:
            bad.append(f"{path}:{number + 1}: {kind} {name}: {row} should be {wanted}")
        elif kind == "op" and (row[1].startswith("none") != bool(table[name][0]) or not row[0] or not row[1]):
            bad.append(f"{path}:{number + 1}: {kind} {name}: formula or gradient is missing")
        rows[name] = row
    bad += [f"{path}: {kind} {name} is missing" for name in table if name not in rows]
    if write:
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    return bad, rows


def check_arguments(program, path, rows):
    """Every argument that the page names is one that the layer takes."""
    asked = [(name, word) for name, row in rows.items() for word in WORD.findall(row[0])]
    answers = facts(program, "".join(f"{layer} {word}\n" for layer, word in asked))["word"]
    return [f"{path}: layer {layer} takes no {word}" for layer, word in asked if answers.get((layer, word)) != "known"]


SOURCE = "src/model/training/"
TRAINING = {  # what training.md has to name: a file, where its table begins (it ends with "};"), and how words stand in it
    "optimizer": ("optimizer_types.c", None, r'\.name = "(\w+)"'),
    "argument of an optimizer": ("optimizer_types.c", None, r'(?:(?:BETA|NUMBER|TRUTH)\("(\w+)"|\{"(\w+)", AT)'),
    "argument of all optimizers": ("optimizer.c", "common_settings[] = {", r'\{"(\w+)", SETTING_'),
    "schedule": ("schedule_read.c", None, r'\{"(\w+)",\s*SCHEDULE_'),
    "argument of a schedule": ("schedule_read.c", None, r'"(\w+)", SETTING_'),
    "loss": ("losses.c", "losses[] = {", r'(?:name|alias) = "(\w+)"'),
    "argument of a loss": ("losses.c", None, r'"(\w+)", SETTING_'),
    "metric": ("metrics.c", "metric_type metrics[] = {", r'\{(?:\.name = )?"(\w+)"'),
    "metric of sums": ("metric_sums.c", "summed_metrics[] = {", r'(?:\.name = |[A-Z]+\()"(\w+)"'),
    "initializer": ("../layers/initializer.c", "words[] = {", r'\{"(\w+)"'),
    "regularizer or constraint": ("../layers/weight_options.c", "regularizers[] =", r'\{"(\w+)",\s*(?:NULL|")'),
}


def check_refused(path):
    """What is refused by name is listed, all of it and nothing else: layers and functions of map:."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    named = set(re.findall(r"`(\w+)`", text[text.index("## Refused by name"):])) - {"map"}
    with open(os.path.join(ROOT, "src", "model", "keras", "keras_layers.def"), encoding="utf-8") as f:
        words = re.findall(r"KERAS\((\w+)\)", f.read().split("\n", 1)[1])
    with open(os.path.join(ROOT, "src", "pipeline", "maps", "map_functions.c"), encoding="utf-8") as f:
        text = f.read()
    later = text[text.index("later_functions[] = {"):]
    functions = re.findall(r'"(\w+)"', later[:later.index("};")])
    if not words or not functions:
        return [f"{path}: nothing that is refused was found: test_documents.py no longer reads it"]
    words = set(words + functions)
    return [f"{path}: {w} is refused by name and not listed" for w in sorted(words - named)] + [
        f"{path}: {w} is listed as refused and is not" for w in sorted(named - words)]


def check_training(path):
    """Every word of the tables stands in the page."""
    with open(path, encoding="utf-8") as f:
        named = set(re.findall(r"`(\w+)`", f.read()))
    bad = []
    for kind, (name, begin, word) in TRAINING.items():
        with open(os.path.join(ROOT, SOURCE, name), encoding="utf-8") as f:
            text = f.read()
        if begin:
            text = text[text.index(begin):]
            text = text[:text.index("\n};")]
        words = [match[1] or match[2] if match.re.groups > 1 else match[1] for match in re.finditer(word, text)]
        if not words:
            bad.append(f"{name}: no {kind} found: test_documents.py no longer reads it")
        bad += [f"{path}: {kind} {w} is missing" for w in dict.fromkeys(words) if w not in named]
    return bad


def check_manual(path):
    """Every option and every command of the program stands in the manual page."""
    with open(path, encoding="utf-8") as f:
        manual = f.read().replace("\\-", "-")
    with open(os.path.join(ROOT, "cli", "arguments.c"), encoding="utf-8") as f:
        options = re.findall(r'\{"(--\w+)"', f.read())
    with open(os.path.join(ROOT, "cli", "data_commands.def"), encoding="utf-8") as f:
        commands = re.findall(r"^DATA_COMMAND\((\w+)\)", f.read(), re.M)
    bad = [f"{path}: option {o} is missing" for o in dict.fromkeys(options) if o not in manual[manual.index(".SH OPTIONS"):]]
    synopsis = manual[manual.index(".SH SYNOPSIS"):manual.index(".SH DESCRIPTION")]
    bad += [f"{path}: the synopsis lacks data {c}" for c in commands if f"plim data {c}" not in synopsis]
    return bad if options and commands else bad + [f"{path}: no options or commands found to look for"]


def main():
    program, write = sys.argv[1], "--write" in sys.argv
    tables = facts(program)
    ops, layers = (os.path.join(ROOT, "doc", page) for page in ("ops.md", "layers.md"))
    bad, _ = check_page(ops, "op", tables["op"], expected_op, write)
    more, rows = check_page(layers, "layer", tables["layer"], expected_layer, write)
    bad += more + check_arguments(program, layers, rows)
    bad += check_refused(layers)
    bad += check_training(os.path.join(ROOT, "doc", "training.md")) + check_manual(os.path.join(ROOT, "doc", "plim.1"))
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    bad += [f"README.md does not name {page}" for page in ("doc/ops.md", "doc/layers.md", "doc/training.md") if page not in readme]
    print("\n".join(bad) if bad else f"{len(tables['op'])} ops, {len(tables['layer'])} layers ... ok")
    return 1 if bad else 0


sys.exit(main())
