"""test_rooms.py - who includes whom: rooms only the rooms before them, the program only the public header.

Also: file names are unique across the tree, and a source file says in its first line what it is for. There are no
exceptions; a violation is one line."""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = ["base", "graph", "ops", "transform", "backends", "plan", "image", "formats", "pipeline", "model", "train",
         "report", "job", "api"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
SOURCES = (".c", ".h", ".def")


def files(folder):
    """Paths below a folder of the repository, relative to the repository."""
    for place, folders, names in os.walk(os.path.join(ROOT, folder)):
        folders.sort()
        for name in sorted(names):
            yield os.path.relpath(os.path.join(place, name), ROOT)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def includes(path):
    """(line, what, in quotes) of every include."""
    text = text_of(path)
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1] or match[2], match[1] is not None


def room_of(path):
    return path.split(os.sep)[1]


def check_room_include(path, what, quoted):
    room, target = room_of(path), what.split("/")[0]
    if what == "plimsoll.h":
        return None
    if target not in ROOMS:
        return f"{what} is named without its room" if quoted else None
    if ROOMS.index(target) > ROOMS.index(room):
        return f"{room} includes {what}: {target} comes after {room}"
    if not os.path.exists(os.path.join(ROOT, "src", what)):
        return f"{what} does not exist"
    return None


def check_program_include(path, what, quoted):
    if what == "plimsoll.h" or (quoted and os.path.exists(os.path.join(ROOT, "cli", what))):
        return None
    if quoted or what.split("/")[0] in ROOMS:
        return f"the program includes {what}: the public header and its own are all it may"
    return None


def check_includes():
    for path in files("src"):
        if path.endswith(SOURCES):
            if room_of(path) not in ROOMS:
                yield f"{path}: '{room_of(path)}' is not a room of ARCHITECTURE.md"
                continue
            for line, what, quoted in includes(path):
                problem = check_room_include(path, what, quoted)
                if problem:
                    yield f"{path}:{line}: {problem}"
    for path in files("cli"):
        for line, what, quoted in includes(path) if path.endswith(SOURCES) else ():
            problem = check_program_include(path, what, quoted)
            if problem:
                yield f"{path}:{line}: {problem}"
    for line, what, quoted in includes("include/plimsoll.h"):
        if quoted:
            yield f"include/plimsoll.h:{line}: the public header includes {what}"


def check_names():
    seen = {}
    for path in [*files("include"), *files("src"), *files("cli")]:
        name = os.path.basename(path)
        if name in seen and name.endswith(SOURCES):
            yield f"{path}: {seen[name]} has the same name"
        seen.setdefault(name, path)


def check_first_lines():
    for path in [*files("include"), *files("src"), *files("cli"), *files("tests"), *files("fuzz")]:
        name = os.path.basename(path)
        if name.endswith(SOURCES) and not text_of(path).startswith(f"/* {name} - "):
            yield f"{path}:1: does not begin with '/* {name} - '"


def check_rooms_of_the_document():
    """The table of ARCHITECTURE.md has the same rooms in an order that the includes allow."""
    told = re.findall(r"^\| `src/(\w+)/` \|", text_of("ARCHITECTURE.md"), re.M)
    if told != ROOMS:
        yield f"ARCHITECTURE.md: its rooms are {', '.join(told)}; this test has {', '.join(ROOMS)}"
    there = sorted(e.name for e in os.scandir(os.path.join(ROOT, "src")) if e.is_dir())
    if there != sorted(ROOMS):
        yield f"src: its folders are {', '.join(there)}; this test has {', '.join(sorted(ROOMS))}"


def main():
    failed = 0
    for check in (check_includes, check_names, check_first_lines, check_rooms_of_the_document):
        problems = list(check())
        print(*problems, sep="\n", end="\n" if problems else "")
        print(f"{check.__name__} ... {'FAIL' if problems else 'ok'}")
        failed += bool(problems)
    return failed


if __name__ == "__main__":
    sys.exit(main())
