"""test_symbols.py LIBRARY ARCHIVE PROGRAM [with-assertions] - what the library shows, and what it never calls.

1. The shared library exports the functions that plimsoll.h declares, and nothing else.
2. No object of the library refers to a function that ends the process. Assertions are for bugs of ours: a build that
   has them may refer to what they call, a release may not.
3. tests/api/test_api_nonsense.c calls every function of plimsoll.h.
4. The kernels of an instruction set lie together, with no code of anybody else's between (backends/cpu/cpu_unused.c)."""
import os, re, subprocess, sys

LIBRARY, ARCHIVE, PROGRAM = sys.argv[1:4]
WITH_ASSERTIONS = "with-assertions" in sys.argv[4:]
HEADER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "include", "plimsoll.h")
ENDING = {"abort", "exit", "_exit", "_Exit", "quick_exit", "__assert_fail", "__assert", "__assert_perror_fail",
          "err", "errx", "verr", "verrx", "error", "raise", "kill", "pthread_kill", "tgkill", "pthread_exit",
          "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "execv", "execve", "execvp", "execl", "system"}
# libjpeg and libpng report errors by a jump of their caller: back into the function that called them.
JUMPS, JUMPING = {"longjmp", "_longjmp", "__longjmp_chk"}, ("image_jpeg.c.o", "image_png.c.o")
# A program that a data set reads from is ended with the data set: the group of that child, never our own.
ENDS_CHILDREN = ("kill", "process.c.o")



def nm(*arguments):
    return subprocess.run(["nm", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def declared():
    with open(HEADER, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    return set(re.findall(r"^PLIM_API\b[^;(]*?(\w+)\s*\(", text, re.M))


def check_exports():
    # Sanitizers mark each module with symbols of their own.
    exported = {line.split()[-1].split("@")[0] for line in nm("-D", "--defined-only", LIBRARY)}
    # GNU ld's names for a section, which older ones cannot hide.
    exported = {name for name in exported if not re.match(r"__(start|stop)_plim_code_", name)}
    exported = {name for name in exported if not re.match(r"_*(asan|tsan|ubsan|sancov|odr_asan)", name)}
    wanted = declared()
    if not wanted:
        yield f"{HEADER}: no PLIM_API function found"
    for name in sorted(wanted - exported):
        yield f"{name} is declared in plimsoll.h, but not exported"
    for name in sorted(exported - wanted):
        yield f"{name} is exported, but not declared in plimsoll.h"


def check_nonsense_table():
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "api", "test_api_nonsense.c")
    with open(path, encoding="utf-8") as f:
        tried = set(re.findall(r"\bCALL\((plim_\w+),", f.read()))
    for name in sorted(declared() ^ tried):
        yield f"{name}: not in both plimsoll.h and the table of test_api_nonsense.c"


def check_process_is_never_ended():
    allowed = {"__assert_fail"} if WITH_ASSERTIONS else set()
    lines = nm("-A", "-u", ARCHIVE)
    if not any(line.endswith(" U memcpy") for line in lines):
        yield f"{ARCHIVE}: no references found"
    for line in lines:
        name = line.split()[-1].split("@")[0] if line.strip() else ""
        if name in ENDING - allowed:
            member = os.path.basename(line.split(":")[-2])
            child = name == ENDS_CHILDREN[0] and member.endswith(ENDS_CHILDREN[1])
            if not (name in JUMPS and member.endswith(JUMPING)) and not child:
                yield f"{member}: refers to {name}"


def check_kernels_lie_together():
    for binary in (LIBRARY, PROGRAM):
        code = [(int(f[0], 16), f[2].split(".")[0]) for f in (line.split() for line in nm("-n", "--defined-only", binary)) if f[1] in "tT"]
        for variant in ("plain", "avx2", "avx512"):
            archive = os.path.join(os.path.dirname(ARCHIVE), "src", "backends", "cpu", f"libplimsoll-cpu-{variant}.a")
            if not os.path.exists(archive):
                if variant == "plain":
                    yield f"{archive} is not there: its kernels cannot be looked at"
                continue
            theirs = {f[-1].split(".")[0] for f in (line.split() for line in nm("--defined-only", archive)) if len(f) == 3}
            marks = [at for at, name in code if name == f"plim_code_begins_{variant}"]
            if len(marks) < 20:
                yield f"{binary}: {len(marks)} objects of {variant} are marked"
                continue
            for at, name in code:
                empty = at == marks[0] and name.startswith("plim_code_begins_")  # the last object of another set has no code
                if marks[0] <= at < marks[-1] and name not in theirs and not empty:
                    yield f"{binary}: {name} lies among the kernels of {variant}"


def main():
    failed = 0
    for check in (check_exports, check_nonsense_table, check_process_is_never_ended, check_kernels_lie_together):
        problems = list(check())
        print(*problems, sep="\n", end="\n" if problems else "")
        print(f"{check.__name__} ... {'FAIL' if problems else 'ok'}")
        failed += bool(problems)
    return failed


if __name__ == "__main__":
    sys.exit(main())
