"""images.py PLIM [--rounds N] [--python PYTHON] [--photographs FOLDER]: JPEGs of 640 x 480 from a folder, decoded, resized to
224 x 224 and batched by 32, in plim and in tf.data, in turns within one run: images/s, CPU time (which says more on a busy
machine; of plim all of the process's, of tf.data an epoch's), ratios, peak memory.

The images are parts of the photographs in Debian's package mate-backgrounds, which is fetched where it is not installed; where
it cannot be, they are made up, and that is said."""
import argparse, glob, os, resource, statistics, subprocess, sys, tempfile
from harness import HERE, ROOT, run

COUNT, BATCH, SIZE = 512, 32, 224
EPOCHS = 3  # in a process; of tf.data the best behind the first is taken, of plim all
SLOT_BYTES = BATCH * SIZE * SIZE * 3 * 4
PACKAGE, INSIDE = "mate-backgrounds", "usr/share/backgrounds/mate/nature"
BARS = {"same pixels": 1.1, "scaled": 1.8}
MEMORY_BAR = 2 * SLOT_BYTES + 14 * 2**20
JOB = """memory: 256MiB
data:
  train:
    images: {folder}
    pipeline: [map: [decode_jpeg: {{channels: 3, scaled: {scaled}}}, resize: [{size}, {size}]], repeat: {epochs}, batch: {batch}, prefetch: {depth}]
"""


def find_photographs(work):
    installed = os.path.join("/", INSIDE)
    if os.path.isdir(installed):
        return installed
    fetched = subprocess.run(f"apt-get download {PACKAGE} && dpkg-deb -x {PACKAGE}_*.deb .", shell=True, cwd=work, capture_output=True)
    return os.path.join(work, INSIDE) if fetched.returncode == 0 else os.path.join(work, "none")


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_plim(plim, work, folder, scaled):
    path = os.path.join(work, "images.yaml")
    with open(path, "w") as f:
        f.write(JOB.format(folder=folder, scaled=str(scaled).lower(), size=SIZE, epochs=EPOCHS, batch=BATCH, depth=1))
    before = cpu_of_children()
    r = run([plim, "data", "bench", path, "--json"])
    return r["elements_per_s"], r["peak_rss_bytes"], (cpu_of_children() - before) / (COUNT * EPOCHS)


def run_tensorflow(python, folder):
    r = run([python, os.path.join(HERE, "peer_images.py"), "run", folder], env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    return 1 / r["best_seconds"], r["peak_rss_bytes"], r["cpu_seconds"]


def measure(plim, rounds, python, work, folder):
    seen = {}
    for _ in range(rounds):
        seen.setdefault("tf.data", []).append(run_tensorflow(python, folder))
        seen.setdefault("same pixels", []).append(run_plim(plim, work, folder, False))
        seen.setdefault("scaled", []).append(run_plim(plim, work, folder, True))
    return {who: (statistics.median(r[0] for r in runs), max(r[1] for r in runs), min(r[2] for r in runs)) for who, runs in seen.items()}


def table(seen):
    peer, _, cpu_peer = seen["tf.data"]
    print("| | images/s | against tf.data | CPU an image | tf.data takes | peak memory |\n|---|---|---|---|---|---|")
    for who, (speed, peak, cpu) in seen.items():
        print(f"| {who} | {speed:.0f} | {speed / peer:.2f}× | {cpu * 1e3:.2f} ms | {cpu_peer / cpu:.2f}× | {peak / 2**20:.1f} MiB |")


def judge(seen):
    """The bars: (what, holds)."""
    for who, bar in BARS.items():
        ratio, peak = seen[who][0] / seen["tf.data"][0], seen[who][1]
        yield f"{who}: {ratio:.2f}× tf.data (bar {bar}×)", ratio >= bar
        yield f"{who}: {peak / 2**20:.1f} MiB (bar {MEMORY_BAR / 2**20:.1f})", peak <= MEMORY_BAR


def compare(plim, rounds, python, photographs):
    """Prints what was measured, and gives it back: images/s, peak, CPU time an image."""
    with tempfile.TemporaryDirectory() as work:
        photographs, folder = photographs or find_photographs(work), os.path.join(work, "images")
        made = run([python, os.path.join(HERE, "peer_images.py"), "make", photographs, folder, str(COUNT)],
                   env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        size = sum(os.path.getsize(f) for f in glob.glob(os.path.join(folder, "*", "*"))) / COUNT / 1024
        origin = f"parts of {made['photographs']} photographs" if made["photographs"] else "MADE UP: no photographs found"
        print(f"{COUNT} JPEGs of 640 x 480, {size:.0f} KiB each: {origin}\n")
        seen = measure(plim, rounds, python, work, folder)
    table(seen)
    print()
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plim")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "keras", "bin", "python"))
    parser.add_argument("--photographs")
    a = parser.parse_args()
    bars = list(judge(compare(os.path.realpath(a.plim), a.rounds, a.python, a.photographs)))
    for what, holds in bars:
        print(f"{'holds ' if holds else 'MISSES'} {what}")
    missed = sum(not holds for _, holds in bars)
    print(f"{missed} bars missed" if missed else "all bars hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
