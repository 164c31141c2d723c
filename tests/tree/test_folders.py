"""test_folders.py - who includes whom: a folder of src/ only the folders before it, the program only the public header.

Also: at most MOST_SOURCES sources in a folder, names that are unique across the tree, a first line that says what the file
is for, and at most MOST_PARAMETERS for what folders call of each other. There are no exceptions; a violation is one line."""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ["base", "graph", "ops", "transform", "backends", "plan", "image", "formats", "pipeline", "model", "train",
         "report", "job", "api"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
SOURCES = (".c", ".h", ".def")
MOST_SOURCES = 25
MOST_PARAMETERS = 6
NOT_SOURCES = ("tests/golden", "fuzz/corpus")  # data


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


def folder_of(path):
    return path.split(os.sep)[1]


def check_folder_include(path, what, quoted):
    folder, target = folder_of(path), what.split("/")[0]
    if what == "plimsoll.h":
        return None
    if target not in FOLDERS:
        return f"{what} is named without its folder" if quoted else None
    if FOLDERS.index(target) > FOLDERS.index(folder):
        return f"{folder} includes {what}: {target} comes after {folder}"
    if not os.path.exists(os.path.join(ROOT, "src", what)):
        return f"{what} does not exist"
    return None


def check_program_include(path, what, quoted):
    if what == "plimsoll.h" or (quoted and os.path.exists(os.path.join(ROOT, "cli", what))):
        return None
    if quoted or what.split("/")[0] in FOLDERS:
        return f"the program includes {what}: the public header and its own are all it may"
    return None


def check_includes():
    for path in files("src"):
        if path.endswith(SOURCES):
            if folder_of(path) not in FOLDERS:
                yield f"{path}: '{folder_of(path)}' is not a folder of ARCHITECTURE.md"
                continue
            for line, what, quoted in includes(path):
                problem = check_folder_include(path, what, quoted)
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


def check_sizes():
    count = {}
    for path in [*files("src"), *files("cli"), *files("tests")]:
        folder = os.path.dirname(path)
        if not folder.startswith(NOT_SOURCES) and path.endswith((*SOURCES, ".py")):
            count[folder] = count.get(folder, 0) + 1
    for folder, sources in sorted(count.items()):
        if sources > MOST_SOURCES:
            yield f"{folder}: {sources} sources, at most {MOST_SOURCES}: a family becomes a folder of its own"


def check_tests_mirror():
    """tests/ has the folders of src/, and others by name."""
    there = {e.name for e in os.scandir(os.path.join(ROOT, "tests")) if e.is_dir()}
    for name in sorted(there - set(FOLDERS) - {"golden", "support", "cli", "tree", "__pycache__"}):
        yield f"tests/{name}: there is no src/{name}"


def check_first_lines():
    for path in [*files("include"), *files("src"), *files("cli"), *files("tests"), *files("fuzz")]:
        name = os.path.basename(path)
        if name.endswith(SOURCES) and not text_of(path).startswith(f"/* {name} - "):
            yield f"{path}:1: does not begin with '/* {name} - '"


def check_folders_of_the_document():
    """The table of ARCHITECTURE.md has the same folders in an order that the includes allow."""
    told = re.findall(r"^\| `src/(\w+)/` \|", text_of("ARCHITECTURE.md"), re.M)
    if told != FOLDERS:
        yield f"ARCHITECTURE.md: its folders are {', '.join(told)}; this test has {', '.join(FOLDERS)}"
    there = sorted(e.name for e in os.scandir(os.path.join(ROOT, "src")) if e.is_dir())
    if there != sorted(FOLDERS):
        yield f"src: its folders are {', '.join(there)}; this test has {', '.join(sorted(FOLDERS))}"


def code_of(path):
    """The text without comments, strings, lines of the preprocessor and attributes."""
    text = re.sub(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", " ", text_of(path), flags=re.S)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", " ", text)


def group_end(code, start):
    """Behind the bracket that closes the one at start."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] in "({[") - (code[i] in ")}]")
        if not depth:
            return i + 1
    return len(code)


def declarations(code):
    """The texts of declarations: at file scope and in structures, and what stands before the bodies of functions."""
    begin = i = 0
    while i < len(code):
        if code[i] == "(":
            i = group_end(code, i)
            continue
        if code[i] in ";{}":
            yield code[begin:i]
            body = code[i] == "{" and "(" in code[begin:i]
            begin = i = group_end(code, i) if body else i + 1
        else:
            i += 1


def declared(declaration):
    """(name, how many parameters) of a function, or of a callback; or None. `(*name)(...)` and VARIANT(name)(...) have two
    groups."""
    match = re.search(r"\b(?!_Alignas\b|_Static_assert\b)(\w+)\s*\(", declaration)
    if not match:
        return None
    name, start = match[1], match.end() - 1
    end = group_end(declaration, start)
    second = re.match(r"\s*\(", declaration[end:])
    if second:
        name = (re.findall(r"\w+", declaration[start:end]) or [name])[-1]
        start = end + second.end() - 1
        end = group_end(declaration, start)
    parameters = declaration[start + 1:end - 1].strip()
    while "(" in parameters:  # of callbacks among them
        inner = parameters.index("(")
        parameters = parameters[:inner] + parameters[group_end(parameters, inner):]
    return name, 0 if parameters in ("", "void") else parameters.count(",") + 1


def check_parameters():
    """What is public, or is declared in one folder and named in another."""
    code = {path: code_of(path) for top in ("include", "src", "cli") for path in files(top) if path.endswith(SOURCES)}
    folders = {}
    for path, text in code.items():
        for word in set(re.findall(r"\w+", text)):
            folders.setdefault(word, set()).add(os.path.dirname(path))
    for path, text in code.items():
        for name, count in filter(None, map(declared, declarations(text))) if path.endswith(".h") else ():
            public = path.startswith("include") or folders[name] - {os.path.dirname(path)}
            if public and count > MOST_PARAMETERS:
                yield f"{path}: {name} has {count} parameters, at most {MOST_PARAMETERS}: what belongs together is a struct"


def main():
    failed = 0
    for check in (check_includes, check_names, check_sizes, check_tests_mirror, check_first_lines, check_folders_of_the_document, check_parameters):
        problems = list(check())
        print(*problems, sep="\n", end="\n" if problems else "")
        print(f"{check.__name__} ... {'FAIL' if problems else 'ok'}")
        failed += bool(problems)
    return failed


if __name__ == "__main__":
    sys.exit(main())
