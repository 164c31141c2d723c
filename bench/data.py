"""data.py PLIM [--rounds N] [--only PART] [--peers a,b] [--rows N] [--seconds S] [--folder DIR]: the data pipeline beside tf.data and
torch's DataLoader, in turns within one run; prints speed, peak memory and ratios as Markdown, says of each bar whether it holds,
and writes all of it as JSON (build/bench-data.json).

Every measurement is a process of its own; figures are medians over rounds, peaks the largest. The data is made once, in a
temporary folder below --folder, which has to be on the disk that is to be measured. Peers that need minutes for an epoch are stopped
after --seconds. Cold means: the file's pages were dropped from the page cache, and mincore says that they are gone."""
import argparse, ctypes, json, os, statistics, subprocess, sys, tempfile, time
import images
from harness import HERE, ROOT, run
from peer_common import FIRST_STEPS

MIB = 2**20
ROW_BYTES, BATCH, RECORDS = 404, 32, 200_000
COLD_ROWS = 100_000  # of 10^7: few pages are met twice
MEMORY_BAR, EQUAL_BYTES = 16 * MIB, MIB // 4

RANGE = "data: {train: {range: 10000000, pipeline: [map: {x: \"x * 2\"}, batch: 32, prefetch: auto]}}"
TFRECORD = """data:
  train:
    tfrecord: {{files: "{folder}/*.tfrecord", interleave: {{cycle_length: 8}}, features: {{x: "float32[100]", y: int64}}}}
    pipeline: [shuffle: 10000, batch: 32, prefetch: auto]"""
NPY = """data: {{train: {{npy: {{files: {file}, columns: {{x: [0, 100], y: 100}}}}, pipeline: [{stages}, batch: 32, prefetch: auto]}}}}
model: [{{Dense: {{units: 64, activation: relu}}}}, {{Dense: {{units: 1, activation: sigmoid}}}}]
train: {{optimizer: adam, loss: binary_crossentropy, epochs: {epochs}, callbacks: [checkpoint: none]}}"""


class Bench:
    def __init__(self, a, work):
        self.a, self.work, self.rows, self.bars = a, work, {}, []

    # ---- running ----

    def job(self, text):
        path = os.path.join(self.work, "job.yaml")
        with open(path, "w") as f:
            f.write("memory: 16MiB\nseed: 7\n" + text + "\n")
        return path

    def plim(self, *words):
        return run([self.a.plim, *words, "--json"])

    def built(self, name, *words):
        """The lines of a program of bench/, which is built on request."""
        build = os.path.dirname(self.a.plim)
        made = subprocess.run(["ninja", "-C", build, "--quiet", name], capture_output=True, text=True)
        if made.returncode:
            raise SystemExit(f"bench: cannot build {name}\n{made.stdout[-2000:]}")
        out = subprocess.run([os.path.join(build, name), *words], check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in out.splitlines()]

    def peer(self, environment, *words):
        script = {"keras": "peer_data_tensorflow.py", "torch": "peer_data_torch.py"}[environment]
        python = os.path.join(ROOT, ".venv", environment, "bin", "python")
        return run([python, os.path.join(HERE, script), *map(str, words)], env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})

    def peer_wanted(self, environment, *words):
        """What the peer's script said, or None where it was not asked for."""
        wanted = {"keras": "tensorflow", "torch": "pytorch"}[environment] in self.a.peers.split(",")
        return self.peer(environment, *words) if wanted else None

    def peers(self, row, *peers):
        """(who, environment, words of its script)."""
        for who, environment, *words in peers:
            r = self.peer_wanted(environment, *words)
            if r:
                self.seen(row, who, r["median_seconds"], r["peak_rss_bytes"])

    def make(self, *words):
        run([os.path.join(ROOT, ".venv", "torch", "bin", "python"), os.path.join(HERE, "make_rows.py"), *map(str, words)])

    # ---- keeping ----

    def seen(self, row, who, seconds, peak=None):
        """One measurement: seconds an element."""
        self.rows.setdefault(row, {}).setdefault(who, []).append((seconds, peak))

    def seconds(self, row, who):
        return statistics.median(s for s, _ in self.rows[row][who])

    def peak(self, row, who):
        return max((p for _, p in self.rows[row][who] if p), default=None)

    def bar(self, row, what, holds):
        self.bars.append({"work": row, "what": what, "holds": bool(holds)})

    def faster(self, row, who, times, ours="plimsoll"):
        if who in self.rows[row]:
            ratio = self.seconds(row, who) / self.seconds(row, ours)
            self.bar(row, f"{ratio:.2f}× {who} (bar {times}×)", ratio >= times)

    def small(self, row):
        peak = self.peak(row, "plimsoll")
        self.bar(row, f"peak memory {peak / MIB:.1f} MiB (bar {MEMORY_BAR // MIB})", peak <= MEMORY_BAR)


# ---- the work ----

def measure_range(b):
    row = "range.map.prefetch"
    for _ in range(b.a.rounds):
        ns = next(r["ns_per_element"] for r in b.built("bench-pipeline") if r["name"] == row and r["workers"] == 1)
        b.seen(row, "plimsoll", ns * 1e-9, b.plim("data", "bench", b.job(RANGE))["peak_rss_bytes"])
        b.peers(row, ("tf.data reduced", "keras", "range", "reduced", b.a.seconds / 4),
                ("tf.data loop", "keras", "range", "loop", b.a.seconds / 4))
    ns = b.seconds(row, "plimsoll") * 1e9
    b.bar(row, f"{ns:.1f} ns an element (bar 50)", ns <= 50)
    b.small(row)


def measure_shuffle(b):
    row = "exact shuffle of 10⁹, an index"
    for _ in range(b.a.rounds):
        r = next(r for r in b.built("bench-pipeline") if "state_bytes" in r)
        b.seen(row, "plimsoll", r["ns_per_element"] * 1e-9)
    ns = b.seconds(row, "plimsoll") * 1e9
    b.bar(row, f"{ns:.1f} ns (bar 40)", ns <= 40)
    b.bar(row, f"{r['state_bytes']} bytes of state (bar 1000)", r["state_bytes"] < 1000)


def measure_records(b):
    row, folder = "TFRecord, 8 shards", os.path.join(b.work, "records")
    os.mkdir(folder)
    b.make("columns", b.work, RECORDS)
    subprocess.run([b.a.plim, "data", "shard", os.path.join(b.work, "x.npy"), os.path.join(b.work, "y.npy"), "--shards", "8",
                    "--output", os.path.join(folder, "train")], check=True, capture_output=True)
    for _ in range(b.a.rounds):
        for _ in range(5):  # a tenth of a second each
            r = b.plim("data", "bench", b.job(TFRECORD.format(folder=folder)))
            assert r["elements"] == RECORDS
            b.seen(row, "plimsoll", r["seconds"] / RECORDS, r["peak_rss_bytes"])
        b.peers(row, ("tf.data parse_single_example", "keras", "records", "single", folder),
                ("tf.data parsed after batch", "keras", "records", "batch", folder))
    b.faster(row, "tf.data parse_single_example", 50)
    b.faster(row, "tf.data parsed after batch", 15)
    b.small(row)


def warm(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(4 * MIB):
            pass


def npy_file(b, rows):
    path = os.path.join(b.work, f"{rows}.npy")
    if not os.path.exists(path):
        b.make("table", path, rows)
    return path


def measure_npy(b):
    """Two rows: as a user starts a run (500 steps, the epoch's beginning included; ours the whole command), which is how the
    bars were measured; and in the middle of an epoch."""
    path, few = npy_file(b, b.a.rows), 10_000
    row, start = f"MLP from npy, exactly shuffled, {b.a.rows:,} rows", f"the same, its first {FIRST_STEPS} steps"
    first = FIRST_STEPS * BATCH
    allocations = 0
    for _ in range(b.a.rounds):
        warm(path)
        r = b.plim("train", b.job(NPY.format(file=path, stages="shuffle: exact", epochs=1)))
        allocations += r["allocations_per_step"]
        b.seen(row, "plimsoll", 1 / r["samples_per_s"], r["peak_rss_bytes"])
        r = b.plim("train", b.job(NPY.format(file=npy_file(b, few), stages="shuffle: exact", epochs=20)))
        b.seen(row, f"plimsoll, {few:,} rows", 1 / r["samples_per_s"], r["peak_rss_bytes"])
        begin = time.perf_counter()
        r = b.plim("train", b.job(NPY.format(file=path, stages=f"shuffle: exact, take: {first}", epochs=1)))
        b.seen(start, "plimsoll", (time.perf_counter() - begin) / first, r["peak_rss_bytes"])
        for who, environment in (("DataLoader", "torch"), ("tf.data from_generator", "keras")):
            r = b.peer_wanted(environment, "npy", path, b.a.seconds)
            if r:
                b.seen(row, who, r["median_seconds"], r["peak_rss_bytes"])
                b.seen(start, who, r["start_seconds"], r["peak_rss_bytes"])
    b.faster(start, "DataLoader", 100)
    b.faster(start, "tf.data from_generator", 100)
    b.small(row)
    apart = abs(b.peak(row, "plimsoll") - b.peak(row, f"plimsoll, {few:,} rows"))
    b.bar(row, f"peak memory {apart / MIB:.2f} MiB from that of {few:,} rows (bar {EQUAL_BYTES / MIB})", apart <= EQUAL_BYTES)
    b.bar(row, f"{allocations} allocations after warm-up (bar 0)", allocations == 0)


# ---- cold ----

def resident_pages(path):
    """How many pages of the file are in the page cache."""
    libc, size = ctypes.CDLL(None, use_errno=True), os.path.getsize(path)
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mincore.argtypes, libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p], [ctypes.c_void_p, ctypes.c_size_t]
    with open(path, "rb") as f:
        at = libc.mmap(None, size, 1, 1, f.fileno(), 0)  # PROT_READ, MAP_SHARED
    pages = ctypes.create_string_buffer((size + 4095) // 4096)
    if libc.mincore(at, size, pages) != 0:
        raise OSError(ctypes.get_errno(), "mincore")
    libc.munmap(at, size)
    return sum(byte & 1 for byte in pages.raw)


def drop(path):
    """False where the file stays: on a file system in memory."""
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return resident_pages(path) < 100


def measure_cold(b):
    """The depth: each thread that reads has the rows of one batch in flight, on average: those of the next are asked for as they come."""
    row, path = f"cold npy, {b.a.rows:,} rows", npy_file(b, b.a.rows)
    exact, blocks = "shuffle: exact, take: %d" % min(COLD_ROWS, b.a.rows), "shuffle: blocks"
    threads = 1 + b.plim("data", "explain", b.job(NPY.format(file=path, stages=exact, epochs=1)))["chosen"]["workers"]
    disk, depth = [], BATCH * threads
    names = (f"disk, 4 KiB random, depth {depth}", "disk, sequential")
    for _ in range(b.a.rounds):
        disk = b.built("bench-disk", path, str(depth), "2")[0]
        b.seen(row, names[0], 1 / disk["random_reads_per_s"])
        b.seen(row, names[1], ROW_BYTES / disk["sequential_bytes_per_s"])
        for who, stages in (("plimsoll exact", exact), ("plimsoll blocks", blocks)):
            if not drop(path):
                print(f"data.py: {path} stays in the page cache: nothing cold can be measured", file=sys.stderr)
                del b.rows[row]
                return
            r = b.plim("data", "bench", b.job(NPY.format(file=path, stages=stages, epochs=1)))
            b.seen(row, who, r["seconds"] / r["elements"], r["peak_rss_bytes"])
    for who, name in zip(("plimsoll exact", "plimsoll blocks"), names):
        share = b.seconds(row, name) / b.seconds(row, who)
        b.bar(row, f"{who}: {100 * share:.0f} % of {name} (bar 80)", share >= 0.8)


def measure_images(b):
    seen = images.compare(b.a.plim, b.a.rounds, os.path.join(ROOT, ".venv", "keras", "bin", "python"), None)
    for who, (speed, peak, _) in seen.items():
        b.seen("JPEG to 224 × 224", who if who == "tf.data" else f"plimsoll, {who}", 1 / speed, peak)
    for what, holds in images.judge(seen):
        b.bar("JPEG to 224 × 224", what, holds)


PARTS = {"range": measure_range, "shuffle": measure_shuffle, "records": measure_records, "npy": measure_npy, "cold": measure_cold,
         "images": measure_images}


# ---- showing ----

def show_rate(seconds):
    return f"{seconds * 1e9:.1f} ns" if seconds < 1e-7 else f"{1 / seconds:,.0f}/s"


def table(b):
    print("| work | system | an element | peak memory | plimsoll is faster | and smaller |\n|---|---|---|---|---|---|")
    for row, figures in b.rows.items():
        ours = next(who for who in figures if who.startswith("plimsoll"))
        for who in figures:
            peak, ratio = b.peak(row, who), b.seconds(row, who) / b.seconds(row, ours)
            size = f"{peak / MIB:.1f} MiB" if peak else "–"
            smaller = f"{peak / b.peak(row, ours):.1f}×" if peak else "–"
            print(f"| {row} | {who} | {show_rate(b.seconds(row, who))} | {size} | {ratio:.2f}× | {smaller} |")
    print()
    for bar in b.bars:
        print(f"{'holds ' if bar['holds'] else 'MISSES'} {bar['work']}: {bar['what']}")
    missed = sum(not bar["holds"] for bar in b.bars)
    print(f"{missed} bars missed" if missed else "all bars hold")


def save(b):
    rows = {row: {who: {"seconds": b.seconds(row, who), "peak_bytes": b.peak(row, who), "all_seconds": [s for s, _ in runs]}
                  for who, runs in figures.items()} for row, figures in b.rows.items()}
    with open(b.a.output, "w") as f:
        json.dump({"rows": rows, "bars": b.bars}, f, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plim")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=[*PARTS, "data"], action="append", help="data: all parts")
    parser.add_argument("--peers", default="tensorflow,pytorch")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build"))
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench-data.json"))
    a = parser.parse_args()
    a.plim = os.path.realpath(a.plim)
    parts = [p for p in a.only or PARTS if p != "data"] or list(PARTS)
    with tempfile.TemporaryDirectory(dir=a.folder) as work:
        b = Bench(a, work)
        for part in parts:
            PARTS[part](b)
    table(b)
    save(b)
    return 0


if __name__ == "__main__":
    sys.exit(main())
