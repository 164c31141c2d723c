"""What the peers' scripts share: timing and the process's peak."""
import json, statistics, time

FIRST_STEPS = 500  # of an epoch, its beginning included: what somebody sees who starts a run


def time_steps(step, steps, before=5):
    for _ in range(before):
        step()
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    return seconds


def report(system, version, seconds, **more):
    peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(json.dumps({"system": system, "version": version, "median_seconds": statistics.median(seconds),
                      "best_seconds": min(seconds), "peak_rss_bytes": peak, **more}))
