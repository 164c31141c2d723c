"""in_cgroups.py PLIM SUITE:CLASS... - the end-to-end tests once more, each run of plim that has a stated budget in a cgroup of exactly
that budget (tests/cli/plim-in-cgroup). The tests have to pass as before, and the kernel must have killed nobody. Prints the
figures by class. Where no cgroup can be made it says so and is skipped; in CI that is a failure."""
import collections, errno, os, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
PLIM = os.path.abspath(sys.argv[1])
V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
TOP = os.path.join(V1 if os.path.exists(f"{V1}/memory.limit_in_bytes") else V2, f"plim-tests.{os.getpid()}")


def make_top():
    os.mkdir(TOP)
    if not os.path.exists(f"{TOP}/memory.limit_in_bytes"):
        with open(f"{TOP}/cgroup.subtree_control", "w") as f:
            f.write("+memory")


def figure(group, name, key):
    """The number behind `key` in a file of lines, or the only one of the file."""
    try:
        with open(f"{group}/{name}") as f:
            words = f.read().split()
    except FileNotFoundError:
        return None
    return int(words[words.index(key) + 1] if key else words[0])


def kills(group):
    found = figure(group, "memory.events", "oom_kill")
    return figure(group, "memory.oom_control", "oom_kill") if found is None else found


def collect(counts):
    """Counts the groups that the runs left, and removes them."""
    for entry in os.scandir(TOP):
        if entry.is_dir():
            counts["runs"] += 1
            counts["kills"] += kills(entry.path)
            remove(entry.path)


def remove(group):
    """A process that is still ending keeps its group for a moment."""
    for _ in range(100):
        try:
            return os.rmdir(group)
        except OSError as why:
            if why.errno != errno.EBUSY:
                raise
            time.sleep(0.05)
    os.rmdir(group)


def run_class(suite, name, counts):
    environment = {**os.environ, "PLIM_REAL": PLIM, "PLIM_GROUPS": TOP, "PYTHONDONTWRITEBYTECODE": "1"}
    r = subprocess.run([sys.executable, f"{HERE}/{suite}.py", f"{HERE}/plim-in-cgroup", name], env=environment, capture_output=True, text=True)
    collect(counts)
    if r.returncode:
        print(r.stdout, r.stderr, sep="\n")
    return r.returncode == 0


def main():
    try:
        make_top()
    except OSError as why:
        print(f"no cgroup can be made here (needs root and a memory controller): {why}")
        return 1 if os.environ.get("CI") else 77  # 77: Meson counts it as skipped
    good = 0
    total = collections.Counter()
    try:
        for word in sys.argv[2:]:
            counts = collections.Counter()
            passed = run_class(*word.split(":"), counts)
            good += passed and counts["kills"] == 0
            total += counts
            print(f"{'ok   ' if passed and not counts['kills'] else 'FAILS'} {word}: {counts['runs']} runs in cgroups of their budgets, {counts['kills']} kills", flush=True)
    finally:
        collect(collections.Counter())
        remove(TOP)
    print(f"{total['runs']} runs, {total['kills']} OOM kills\n{good} passed, {len(sys.argv) - 2 - good} failed")
    return int(good < len(sys.argv) - 2 or total["runs"] == 0)


sys.exit(main())
