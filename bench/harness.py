"""Runs the same work in plim and its peers, in turns within one run; prints time, peak memory and ratios as Markdown
and writes them as JSON (build/bench.json).

Every measurement is a process of its own, so that the kernel's peak (VmHWM) is its own. A row's figure is the median over rounds of
each process's median step; ratios are between figures of one run, because machines differ and drift."""
import argparse, json, os, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# row: (model, batch, steps a process)
ROWS = {"mlp-32": ("mlp", 32, 2000), "mlp-10000": ("mlp", 10000, 100), "cnn-32": ("cnn", 32, 30), "lstm-64": ("lstm", 64, 60)}
# peer: (environment, script, its usual mode)
PEERS = {"tensorflow": ("keras", "peer_tensorflow.py", "function"),
         "pytorch": ("torch", "peer_torch.py", "eager"),
         "jax": ("jax", "peer_jax.py", "jit")}
# Peers that have no such layer of their own.
WITHOUT = {"lstm-64": ["jax"]}
# Other modes, where they are what a peer does best (compiling takes a C++ compiler and a minute a process).
MORE_MODES = {("mlp-10000", "pytorch"): ["compile"]}
# The bars of speed (at least, times the peer) and of memory (at most, part of the least peer).
SPEED_BARS = {"mlp-32": {"jax": 3, "tensorflow": 30, "pytorch": 15},
              "mlp-10000": {"best": 1.3},
              "cnn-32": {"tensorflow": 1.2, "pytorch": 2, "jax": 4},
              "lstm-64": {"best": 1.5}}
MEMORY_BARS = {"mlp-32": 40, "cnn-32": 9}

JOB = """memory: {memory}
seed: 7
data: {{train: {{random: {{elements: {elements}, shape: {shape}, classes: {classes}, seed: 1}}, pipeline: [batch: {batch}]}}}}
model: {model}
train: {{optimizer: adam, loss: {loss}, epochs: 1, callbacks: [checkpoint: none]}}
"""
MODELS = {
    "mlp": dict(shape="[100]", classes=2, loss="binary_crossentropy",
                model="[{Dense: {units: 64, activation: relu}}, {Dense: {units: 1, activation: sigmoid}}]"),
    "cnn": dict(shape="[64, 64, 3]", classes=10, loss="sparse_categorical_crossentropy",
                model="[{Conv2D: {filters: 32, kernel_size: 3, activation: relu}}, {MaxPooling2D: 2}, "
                      "{Conv2D: {filters: 64, kernel_size: 3, activation: relu}}, {MaxPooling2D: 2}, Flatten, "
                      "{Dense: {units: 128, activation: relu}}, {Dense: {units: 10, activation: softmax}}]"),
    "lstm": dict(shape="[100, 64]", classes=10, loss="sparse_categorical_crossentropy",
                 model="[{LSTM: 128}, {Dense: {units: 10, activation: softmax}}]"),
}


def run(command, **more):
    r = subprocess.run(command, capture_output=True, text=True, timeout=1200, **more)
    if r.returncode:
        raise SystemExit(f"bench: {' '.join(command)} ended with {r.returncode}\n{r.stderr[-2000:]}")
    return json.loads(r.stdout.strip().splitlines()[-1])


def run_plim(plim, work, model, batch, steps):
    path = os.path.join(work, f"{model}-{batch}.yaml")
    with open(path, "w") as f:
        f.write(JOB.format(memory="256MiB", elements=batch, batch=batch, **MODELS[model]))
    r = run([plim, "bench", path, "--steps", str(steps), "--json"])
    return r["median_seconds"], r["peak_rss_bytes"]


def run_peer(environment, script, model, batch, steps, mode):
    python = os.path.join(ROOT, ".venv", environment, "bin", "python")
    r = run([python, os.path.join(HERE, script), model, str(batch), str(steps), mode], env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    return r["median_seconds"], r["peak_rss_bytes"]


def measure(plim, work, row, peers, rounds):
    model, batch, steps = ROWS[row]
    seen = {}
    for _ in range(rounds):
        seen.setdefault("plimsoll", []).append(run_plim(plim, work, model, batch, steps))
        for peer in (p for p in peers if p not in WITHOUT.get(row, [])):
            environment, script, usual = PEERS[peer]
            for mode in [usual, *MORE_MODES.get((row, peer), [])]:
                who = peer if mode == usual else f"{peer} {mode}"
                seen.setdefault(who, []).append(run_peer(environment, script, model, batch, steps, mode))
    return {who: {"seconds": statistics.median(t for t, _ in runs), "peak_bytes": max(p for _, p in runs),
                  "all_seconds": [t for t, _ in runs]} for who, runs in seen.items()}


def show_seconds(s):
    return f"{s * 1e6:.1f} µs" if s < 1e-3 else f"{s * 1e3:.2f} ms"


def judge(row, figures):
    """The bars of this row: (what, reached, bar, holds)."""
    ours, peers, out = figures["plimsoll"], {k: v for k, v in figures.items() if k != "plimsoll"}, []
    for peer, bar in SPEED_BARS.get(row, {}).items():
        if peer == "best" and peers:
            ratio = min(p["seconds"] for p in peers.values()) / ours["seconds"]
        elif peer in peers:
            ratio = peers[peer]["seconds"] / ours["seconds"]
        else:
            continue
        out.append((f"speed against {peer}", ratio, bar, ratio >= bar))
    if row in MEMORY_BARS and peers:
        ratio = min(p["peak_bytes"] for p in peers.values()) / ours["peak_bytes"]
        out.append(("memory against the least peer", ratio, MEMORY_BARS[row], ratio >= MEMORY_BARS[row]))
    return out


def table(results):
    print("| work | system | a step | peak memory | plimsoll is faster | and smaller |\n|---|---|---|---|---|---|")
    for row, figures in results.items():
        ours = figures["plimsoll"]
        for who, f in figures.items():
            print(f"| {row} | {who} | {show_seconds(f['seconds'])} | {f['peak_bytes'] / 2**20:.1f} MiB | "
                  f"{f['seconds'] / ours['seconds']:.2f}× | {f['peak_bytes'] / ours['peak_bytes']:.1f}× |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plim")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=ROWS, action="append")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench.json"))
    a = parser.parse_args()
    peers = [p for p in a.peers.split(",") if p]
    with tempfile.TemporaryDirectory() as work:
        results = {row: measure(a.plim, work, row, peers, a.rounds) for row in (a.only or ROWS)}
    table(results)
    print()
    missed = 0
    for row, figures in results.items():
        for what, ratio, bar, holds in judge(row, figures):
            missed += not holds
            print(f"{'holds ' if holds else 'MISSES'} {row}: {what} {ratio:.2f}× (bar {bar}×)")
    with open(a.output, "w") as f:
        json.dump(results, f, indent=1)
    print(f"{missed} bars missed" if missed else "all bars hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
