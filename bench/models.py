"""models.py PLIM [--only MODEL]... [--rounds N] [--systems a,b] [--policy float32|mixed_bfloat16] [--threads N]: a training step
of whole models in plim and its peers, in turns within one run: time, peak memory and ratios as Markdown, then which bars hold. Also as JSON
(build/models.json).
In mixed_bfloat16 the rows that have a bar there, where none is named.

Every measurement is a process of its own, so that the kernel's peak (VmHWM) is its own; a figure is the median over rounds of each
process's median step. plim must have as many parameters as its peers, or the row is refused."""
import argparse, json, os, signal, statistics, subprocess, sys, tempfile
import numpy as np
import model_words

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# row: (model, batch, steps a process, steps of a peer)
ROWS = {"mobilenet_v2": ("mobilenet_v2", 32, 6, 4), "resnet50": ("resnet50", 32, 3, 3), "gpt2": ("gpt2", 1, 3, 3), "unet": ("unet", 8, 6, 4),
        "lstm": ("lstm", 64, 100, 60), "cnn": ("cnn", 32, 60, 40), "mlp-32": ("mlp", 32, 2000, 1000), "mlp-10000": ("mlp", 10000, 100, 60)}
# system: (environment, script, mode)
PEERS = {"tensorflow": ("keras", "peer_models_tensorflow.py", "function"), "tensorflow-xla": ("keras", "peer_models_tensorflow.py", "xla"),
         "pytorch": ("torch", "peer_models_torch.py", "eager"), "pytorch-compile": ("torch", "peer_models_torch.py", "compile")}
USUAL = "tensorflow,pytorch,pytorch-compile"
PEER_POLICY = {"float32": [], "mixed_bfloat16": {"keras": ["mixed_bfloat16"], "torch": ["bf16"]}}
# At least so many times as fast as the best of these peers; at most such a part of PyTorch's memory.
SPEED_BARS = {"float32": {"cnn": ("tensorflow", 1.2), "mobilenet_v2": ("", 1.3), "resnet50": ("", 1.15), "gpt2": ("pytorch", 1.3), "lstm": ("", 1.5),
                          "mlp-10000": ("", 1.3)},
              "mixed_bfloat16": {"mobilenet_v2": ("pytorch-compile", 1.4), "resnet50": ("pytorch", 1.1), "gpt2": ("pytorch", 1.4),
                                 "cnn": ("tensorflow", 1.25)}}
MEMORY_BARS = {"gpt2": ("pytorch", 2 / 3)}


# Some peers die of SIGILL where AMX is there but not theirs to use: then without it.
NO_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
# Layers, and what may be spent before the first step: seconds, and bytes beyond weights and values.
DEEP, DEEP_SECONDS, DEEP_BYTES = 5000, 1, 24 * 2**20


def run(command, env=None):
    r = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=env)
    if r.returncode == -signal.SIGILL and env and not env.keys() >= NO_AMX.keys():
        print(f"models.py: {command[1:]}: illegal instruction; again without AMX", file=sys.stderr)
        return run(command, {**env, **NO_AMX})
    if r.returncode:
        return None, r.stderr.strip()[-300:]
    return json.loads(r.stdout.strip().splitlines()[-1]), None


def write_job(folder, model, batch, policy):
    """Random data of one batch, and the job. Returns its path."""
    layers, data = model_words.MODELS[model]()
    rng = np.random.default_rng(0)
    columns = {}
    for name, (shape, classes) in data.items():
        whole = (batch, *shape)
        columns[name] = rng.random(whole, dtype=np.float32) if classes is None else rng.integers(0, classes, whole).astype(np.int32)
    if "places" in columns:
        columns["places"][:] = np.arange(columns["places"].shape[1])
    np.savez(os.path.join(folder, f"{model}.npz"), **columns)
    job = {"memory": "auto", "seed": 7, "data": {"train": {"npz": f"{model}.npz", "pipeline": [{"batch": batch}]}}, "model": layers,
           "train": {"optimizer": "adamw" if model == "gpt2" else "adam", "loss": model_words.LOSSES.get(model, "sparse_categorical_crossentropy"),
                     "epochs": 1, "callbacks": [{"checkpoint": "none"}]}}
    if policy != "float32":
        job["train"]["precision"] = policy
    path = os.path.join(folder, f"{model}-{batch}.yaml")
    with open(path, "w") as f:
        json.dump(job, f, indent=0)
    return path


def parameters(plim, path):
    text = subprocess.run([plim, "summary", path], capture_output=True, text=True).stdout
    line = next((line for line in text.splitlines() if "Total params" in line), "0 0: 0")
    return int(line.split(":")[1].split("(")[0].replace(",", ""))


def run_plim(plim, path, steps, threads):
    return run([plim, "bench", path, "--steps", str(steps), "--json", *(["--threads", str(threads)] if threads else [])])


def run_peer(who, model, batch, steps, policy):
    environment, script, mode = PEERS[who]
    python = os.path.join(ROOT, ".venv", environment, "bin", "python")
    more = PEER_POLICY[policy][environment] if policy != "float32" else []
    return run([python, os.path.join(HERE, script), model, str(batch), str(steps), mode, *more], env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})


def measure(plim, folder, row, a):
    """{system: figures}, and what could not be measured."""
    model, batch, steps, peer_steps = ROWS[row]
    path, seen, missing = write_job(folder, model, batch, a.policy), {}, {}
    for _ in range(a.rounds):
        for who in ["plimsoll", *[p for p in a.systems.split(",") if p]]:
            if who in missing:
                continue
            result, why = run_plim(plim, path, steps, a.threads) if who == "plimsoll" else run_peer(who, model, batch, peer_steps, a.policy)
            if result is None:
                missing[who] = why
            else:
                seen.setdefault(who, []).append(result)
    own = parameters(plim, path)
    for who in [w for w in seen if w.startswith("tensorflow") and seen[w][0]["parameters"] != own]:
        missing[who] = f"has {seen.pop(who)[0]['parameters']} parameters, plim {own}"
    return {who: {"seconds": statistics.median(r["median_seconds"] for r in runs), "peak_bytes": max(r["peak_rss_bytes"] for r in runs),
                  "all_seconds": [r["median_seconds"] for r in runs]} for who, runs in seen.items()}, missing


def plan_deep(plim, folder):
    """What building, differentiating and planning a deep network takes: (seconds, bytes)."""
    rows = np.zeros((64, 100), np.float32)
    np.savez(os.path.join(folder, "deep.npz"), x=rows, y=rows)
    job = {"memory": "auto", "seed": 7, "data": {"train": {"npz": "deep.npz", "pipeline": [{"batch": 32}]}}, "model": [{"Dense": {"units": 100}}] * DEEP,
           "train": {"optimizer": "sgd", "loss": "mse", "epochs": 1, "callbacks": [{"checkpoint": "none"}]}}
    path = os.path.join(folder, "deep.yaml")
    with open(path, "w") as f:
        json.dump(job, f)
    result, why = run([plim, "plan", path, "--json"])
    if result is None:
        sys.exit(f"models.py: {why}")
    return result["plan_seconds"], result["by_tag"]["planner"]


def show_seconds(s):
    return f"{s * 1e6:.1f} µs" if s < 1e-3 else f"{s * 1e3:.2f} ms" if s < 1 else f"{s:.2f} s"


def table(results):
    print("| model | system | a step | peak memory | plimsoll is faster | and smaller |\n|---|---|---|---|---|---|")
    for row, (figures, missing) in results.items():
        ours = figures.get("plimsoll")
        for who, f in figures.items():
            ratios = f"{f['seconds'] / ours['seconds']:.2f}× | {f['peak_bytes'] / ours['peak_bytes']:.1f}×" if ours else "– | –"
            print(f"| {row} | {who} | {show_seconds(f['seconds'])} | {f['peak_bytes'] / 2**20:.0f} MiB | {ratios} |")
        for who, why in missing.items():
            print(f"| {row} | {who} | not measured: {why.splitlines()[-1] if why else '?'} | | | |")


def judge(row, figures, policy):
    """(what, reached, bar, holds) of this row."""
    ours, out = figures.get("plimsoll"), []
    wanted, bar = SPEED_BARS[policy].get(row, (None, 0))
    peers = {k: v for k, v in figures.items() if k != "plimsoll" and wanted is not None and k.startswith(wanted)}
    if ours and peers:
        best = min(peers, key=lambda k: peers[k]["seconds"])
        ratio = peers[best]["seconds"] / ours["seconds"]
        out.append((f"speed against {best}", f"{ratio:.2f}×", f"at least {bar}×", ratio >= bar))
    peer, part = MEMORY_BARS.get(row, ("", 0))
    if ours and peer in figures and policy == "float32":
        ratio = ours["peak_bytes"] / figures[peer]["peak_bytes"]
        out.append((f"memory of {peer}'s", f"{ratio:.2f}", f"at most {part:.2f}", ratio <= part))
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plim")
    parser.add_argument("--only", choices=ROWS, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", default=USUAL, help=f"of {', '.join(PEERS)}")
    parser.add_argument("--policy", choices=PEER_POLICY, default="float32")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "models.json"))
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds, size = plan_deep(a.plim, folder)
        rows = a.only or (ROWS if a.policy == "float32" else SPEED_BARS[a.policy])
        results = {row: measure(a.plim, folder, row, a) for row in rows}
    print(f"{a.policy}\n")
    table(results)
    print()
    for row, (figures, _) in results.items():
        for what, reached, bar, holds in judge(row, figures, a.policy):
            print(f"{'holds ' if holds else 'MISSES'} {row}: {what} {reached} ({bar})")
    print(f"{'holds ' if seconds <= DEEP_SECONDS else 'MISSES'} {DEEP} layers: graph, gradients and plan in {show_seconds(seconds)} (at most {DEEP_SECONDS} s)")
    print(f"{'holds ' if size <= DEEP_BYTES else 'MISSES'} {DEEP} layers: graph, gradients and plan in {size / 2**20:.1f} MiB (at most {DEEP_BYTES / 2**20:.0f})")
    os.makedirs(os.path.dirname(a.output), exist_ok=True)
    with open(a.output, "w") as f:
        json.dump({row: {"figures": figures, "missing": missing} for row, (figures, missing) in results.items()}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
