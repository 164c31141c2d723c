"""test_documents.py - the documents against the tables of the sources.

doc/ops.md and doc/layers.md: every op and layer once, what the tables say of it word for word, arguments that the layer
takes. doc/data.md: every source, stage and function of map:, each with every option. doc/training.md, doc/job-files.md,
doc/models.md, doc/budget.md, doc/errors.md, doc/json.md, doc/plim.1: every word, key, tag, status, field and option.
All pages: no line is too long, README.md has at most a page, links lead somewhere.

usage: test_documents.py PRINT_FACTS [--write]. With --write the columns that the tables decide are written anew."""
import glob, os, re, subprocess, sys

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


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def source(name):
    """The text of a file below src/, whose name is unique there, or of all files that a pattern names."""
    paths = sorted(glob.glob(os.path.join(ROOT, "src", "**", name), recursive=True))
    if not paths or (len(paths) > 1 and "*" not in name):
        raise FileNotFoundError(f"src/**/{name}: {len(paths)} files")
    return "\n".join(read(path) for path in paths)


def between(text, begin, end):
    """What lies behind `begin`, up to `end` (or the end of the text)."""
    text = text[text.index(begin) + len(begin):]
    return text[:text.index(end)] if end and end in text else text


def lacking(page, kind, words, named):
    """Complaints for words that are not in `named`; one where no words were found at all."""
    if not words:
        return [f"{page}: no {kind} was found in the sources: test_documents.py no longer reads them"]
    return [f"{page}: {kind} {w} is missing" for w in dict.fromkeys(words) if w not in named]


def code_words(text):
    """Words in backquotes, alone or at the head of what stands there."""
    return set(re.findall(r"`(\w+)", text))


TRAINING = {  # what training.md has to name: a file, where its table begins (it ends with "};"), and how words stand in it
    "optimizer": ("optimizer_types.c", None, r'\.name = "(\w+)"'),
    "argument of an optimizer": ("optimizer_types.c", None, r'(?:(?:BETA|NUMBER|TRUTH)\("(\w+)"|\{"(\w+)", AT)'),
    "argument of all optimizers": ("optimizer.c", "common_options[] = {", r'(?:\{|\.word = )"(\w+)"'),
    "schedule": ("schedule_read.c", None, r'\{"(\w+)",\s*SCHEDULE_'),
    "argument of a schedule": ("schedule_read.c", None, r'"(\w+)", (?:option|read)_'),
    "loss": ("losses.c", "losses[] = {", r'(?:name|alias) = "(\w+)"'),
    "argument of a loss": ("losses.c", None, r'"(\w+)", (?:option|read)_'),
    "metric": ("metrics.c", "metric_type metrics[] = {", r'\{(?:\.name = )?"(\w+)"'),
    "metric of sums": ("metric_sums.c", "summed_metrics[] = {", r'(?:\.name = |[A-Z]+\()"(\w+)"'),
    "initializer": ("initializer.c", "words[] = {", r'\{"(\w+)"'),
    "regularizer or constraint": ("weight_options.c", "regularizers[] =", r'\{"(\w+)",\s*(?:NULL|")'),
}


def check_refused(path):
    """What is refused by name is listed, all of it and nothing else: layers and functions of map:."""
    text = read(path)
    named = set(re.findall(r"`(\w+)`", text[text.index("## Refused by name"):])) - {"map"}
    words = re.findall(r"KERAS\((\w+)\)", source("keras_layers.def").split("\n", 1)[1])
    functions = re.findall(r'"(\w+)"', between(source("map_functions.c"), "later_functions[] = {", "};"))
    if not words or not functions:
        return [f"{path}: nothing that is refused was found: test_documents.py no longer reads it"]
    words = set(words + functions)
    return [f"{path}: {w} is refused by name and not listed" for w in sorted(words - named)] + [
        f"{path}: {w} is listed as refused and is not" for w in sorted(named - words)]


def check_training(path):
    """Every word of the tables stands in the page."""
    named, bad = set(re.findall(r"`(\w+)`", read(path))), []
    for kind, (name, begin, word) in TRAINING.items():
        text = between(source(name), begin, "\n};") if begin else source(name)
        words = [match[1] or match[2] if match.re.groups > 1 else match[1] for match in re.finditer(word, text)]
        bad += lacking(path, kind, words, named)
    return bad


# ---- doc/data.md ----

SETTING = re.compile(r'\{\s*"(\w+)", SETTING_')


def data_parts(text):
    """{name: what the page says of it}: the rows that name it in their first cell, and tables and sections that name it
    in their heading."""
    parts = {}

    def add(names, more):
        for name in names:
            parts[name] = parts.get(name, "") + "\n" + more
    heading, table = [], []
    for line in text.split("\n"):
        first = line.split("|")[1] if line.startswith("|") else ""
        if line.startswith("#"):
            heading = re.findall(r"`(\w+)`", line)
        if not first:
            table = []
        elif first.startswith(" option of "):
            table = re.findall(r"`(\w+)`", first)
        add(heading + table, line)
        add([name for name in re.findall(r"`(\w+)`", first) if name not in heading + table], line)
    return parts


def check_options(page, kind, names, parts, text, here):
    """Each of `names` has a part in the page; each option of `text` is in the part of one that is defined `here`."""
    bad = lacking(page, kind, names, parts)
    said = code_words("\n".join(parts.get(name, "") for name in here))
    alone = set(here)  # {"batch", SETTING_WHOLE}: the value without its option
    bad += [f"{page}: option {option} of {kind} {', '.join(here)} is missing"
            for option in dict.fromkeys(SETTING.findall(text)) if option not in said | alone]
    return bad


def check_sources(page, text):
    parts, shared, bad = data_parts(text), SETTING.findall(source("file_keys.*").replace("\\\n", "")), []
    many = code_words(between(text, "### Options of sources that read many files", "\n### "))
    bad += lacking(page, "option of many files", shared, many)
    keys = re.findall(r"^SOURCE\((\w+)\)", source("sources.def"), re.M)
    bad += [f"{page}: source {key} has no section" for key in keys if not re.search(rf"^### `{key}`$", text, re.M)]
    for key in keys:
        bad += check_options(page, "source", [key], parts, source(f"key_{key}.c"), [key])
    return bad if keys else bad + lacking(page, "source", keys, [])


def check_stages(page, text):
    parts, bad = data_parts(text), []
    stages = re.findall(r"^STAGE\((\w+)\)", source("stages.def"), re.M)
    bad += lacking(page, "stage", stages, parts)
    for path in sorted(glob.glob(os.path.join(ROOT, "src", "pipeline", "stages", "**", "*.c"), recursive=True)):
        here = [s for s in re.findall(r"const struct stage stage_(\w+) = \{", read(path)) if s in stages]
        if here:
            bad += check_options(page, "stage", here, parts, read(path), here)
    return bad


def check_functions(page, text):
    parts, bad, found = data_parts(text), [], set()
    functions = re.findall(r"^MAP_FUNCTION\((\w+)\)", source("map_functions.def"), re.M)
    bad += lacking(page, "function of map:", functions, parts)
    for path in sorted(glob.glob(os.path.join(ROOT, "src", "pipeline", "maps", "**", "map_*.c"), recursive=True)):
        here = [f for f in re.findall(r'(?:\.name = "|^[A-Z_]+\()(\w+)', read(path), re.M) if f in functions]
        found |= set(here)
        if here:
            bad += check_options(page, "function of map:", here, parts, read(path), here)
    return bad + [f"no file of src/pipeline/maps defines {f}: test_documents.py no longer reads it"
                  for f in functions if f not in found]


def check_data():
    page = "doc/data.md"
    text = read(page)
    return (check_sources(page, between(text, "\n## Sources", "\n## Stages")) +
            check_stages(page, between(text, "\n## Stages", "\n## Functions of map")) +
            check_functions(page, between(text, "\n## Functions of map", "\n### Expressions")) +
            lacking(page, "function of expressions",
                    re.findall(r'^    \{"(\w+)", \d, \d, ', source("expression_parse.c"), re.M),
                    code_words(between(text, "\n### Expressions", "\n## "))))


# ---- the other pages ----

def settings_of(name, table):
    return SETTING.findall(between(source(name), table + "[] = {", "\n};"))


def check_job_files():
    top, train = read("doc/job-files.md"), between(read("doc/job-files.md"), "## Keys of `train`", "\n## ")
    models = read("doc/models.md")
    bad = lacking("doc/job-files.md", "key", settings_of("job_read.c", "top_settings"),
                  code_words(between(top, "## Keys at the top", "\n## ")))
    bad += lacking("doc/job-files.md", "key of data:", settings_of("job_read.c", "data_settings"),
                   code_words(between(top, "## Keys of `data`", "\n## ")))
    bad += lacking("doc/job-files.md", "key of train:", settings_of("job_read.c", "train_settings"), code_words(train))
    for name, table in (("job_model.c", "model_settings"), ("model_read.c", "scope_settings"), ("model_read.c", "use_settings")):
        bad += lacking("doc/models.md", "key of a model", settings_of(name, table), set(re.findall(r"\w+", models)))
    policies = re.findall(r'\{"(\w+)", TYPE_', between(source("policy.c"), "policies[] = ", "};"))
    return bad + lacking("doc/models.md", "policy", policies, code_words(models))


def check_errors():
    """Every status word with its exit code, as status.c has them."""
    page = "doc/errors.md"
    statuses = re.findall(r'\[PLIM_(\w+)\] = \{"(\w+)", (\d+)\}', source("status.c"))
    declared = re.findall(r"^    PLIM_(\w+)(?: = 0)?,?", between(read("include/plimsoll.h"), "typedef enum plim_status {", "}"), re.M)
    codes = dict(re.findall(r"^\| (\d+) \|[^|]*\|([^|]*)\|$", read(page), re.M))
    rows = re.findall(r"^\| `([A-Z_]+)` \|", between(read(page), "## Status words", "\n## "), re.M)
    bad = lacking(page, "status", [name for _, name, _ in statuses] + declared, rows)
    return bad + [f"{page}: {name} is not beside exit code {code}" for _, name, code in statuses
                  if name not in code_words(codes.get(code, ""))]


def check_json():
    """Every event has a section, every field stands in the page."""
    page = "doc/json.md"
    files = [source(name) for name in ("event_json.c", "job_explain.c", "summary.c", "data_report.c", "job_inspect.c")]
    printed = "".join(read(path) for path in sorted(glob.glob(os.path.join(ROOT, "cli", "*.c"))))
    fields = re.findall(r'json_(?:string|int|uint|double|bool|object|array)\(&?json, "(\w+)"', "".join(files))
    fields += re.findall(r'\\"(\w+)\\":', printed)
    events = re.findall(r'json_string\(&json, "event", "(\w+)"\)|begin\(report, &json, "(\w+)"\)', "".join(files))
    events = [a or b for a, b in events] + re.findall(r'\\"event\\":\\"(\w+)', printed)
    named = code_words(read(page)) | {"event"}
    named |= set(re.findall(r'"(\w+)"', " ".join(re.findall(r"`\{[^`]*\}`", read(page)))))
    bad = lacking(page, "field", fields, named)
    return bad + lacking(page, "event", events, re.findall(r"^## (\w+)$", read(page), re.M))


def check_budget():
    tags = re.findall(r"X\([A-Z]+, (\w+)\)", source("budget.h"))
    return lacking("doc/budget.md", "tag", tags, re.findall(r"^\| `(\w+)` \|", read("doc/budget.md"), re.M))


# ---- all pages ----

def anchors(text):
    """GitHub's anchors of the headings."""
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(page, text):
    bad = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        whole = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), path)) if path else os.path.join(ROOT, page)
        if not os.path.exists(whole):
            bad.append(f"{page}: the link {target} leads nowhere")
        elif anchor and anchor not in anchors(read(whole)):
            bad.append(f"{page}: the link {target} has no such heading")
    return bad


def check_lines(page, lines, most):
    """No line of more characters, but what a program printed and rows that tables decide."""
    bad, shown = [], False
    for number, line in enumerate(lines):
        shown = line == "```console" or (shown and line != "```")
        made = os.path.basename(page) in ("ops.md", "layers.md") and ROW.match(line)
        if len(line) > most and not shown and not made:
            bad.append(f"{page}:{number + 1}: {len(line)} characters; at most {most}")
    return bad


def check_pages():
    readme = read("README.md")
    bad = check_lines("README.md", readme.split("\n"), 120) + check_links("README.md", readme)
    if readme.count("\n") > 150:
        bad.append(f"README.md: {readme.count(chr(10))} lines; at most 150")
    for path in sorted(glob.glob(os.path.join(ROOT, "doc", "*.md"))):
        page = os.path.relpath(path, ROOT)
        bad += check_lines(page, read(page).split("\n"), 160) + check_links(page, read(page))
        if page not in readme:
            bad.append(f"README.md does not name {page}")
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


# ---- rows that are written: what has a line in a table and none in its page ----

def described(text):
    """The first sentence of a source's head: "take.c - the first elements of an epoch." """
    return re.match(r"/\* [\w.]+ - (.*?)(?:\.\s|\.? ?\*/)", text, re.S)[1].replace("\n  ", "")


def insert_row(page, begin, row):
    """Behind the last row of the first table after `begin`; of the last table of the page where it is None."""
    lines = read(page).split("\n")
    rows = [i for i, line in enumerate(lines) if line.startswith("|")]
    if begin:
        first = next(i for i in rows if i > lines.index(begin))
        rows = [i for i in rows if i >= first and all(lines[k].startswith("|") for k in range(first, i))]
    lines.insert(rows[-1] + 1, row)
    with open(os.path.join(ROOT, page), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def sources_below(folder):
    return [read(path) for path in sorted(glob.glob(os.path.join(ROOT, "src", folder, "**", "*.[cd]*"), recursive=True))]


def defining(folder, pattern):
    """The source below a folder that has this in it."""
    for text in sources_below(folder):
        if re.search(pattern, text, re.M):
            return text
    raise SystemExit(f"test_documents.py: no source of src/{folder} has {pattern}")


def write_op(name):
    text = defining("ops", rf"const struct op op_{name} = \{{|^[A-Z_]+\({name.removesuffix('_gradient')}, ")
    formula = re.search(rf"^[A-Z_]+\({name.removesuffix('_gradient')}, .*$", text, re.M)
    what = f"`{formula[0]}`" if formula and not name.endswith("_gradient") else f"the gradient of {name.removesuffix('_gradient')}" if formula else described(text)
    insert_row("doc/ops.md", None, f"| `{name}` | {what} | as its source says | |")


def options_of(text):
    return ", ".join(f"`{option}`" for option in dict.fromkeys(SETTING.findall(text))) or "none"


def named_layer(name):
    """How a source spells the name: .name = "Dense", NAMES("Dense", or a macro of a family: POOLING(max_pooling2d, "..."."""
    return rf'(?:\.name = |\b[A-Z_]+\((?:\w+, )?)"{name}"'


def check_named(layers):
    """write_layer finds the source of every layer."""
    text = "\n".join(sources_below("model/layers"))
    return [f"src/model/layers: no source names layer {name}" for name in layers if not re.search(named_layer(name), text)]


def write_layer(name):
    text = defining("model/layers", named_layer(name))
    insert_row("doc/layers.md", "## Core", f"| `{name}` | {options_of(text)} | {described(text)} | see its source | |")


def write_data(kind, name):
    if kind == "source":
        text, lines = source(f"key_{name}.c"), read("doc/data.md").split("\n")
        at = lines.index("## Stages")
        lines[at:at] = [f"### `{name}`", f"{described(text)}. Options: {options_of(text)}.", ""]
        with open(os.path.join(ROOT, "doc/data.md"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    elif kind == "stage":
        text = defining("pipeline/stages", rf"const struct stage stage_{name} = \{{")
        insert_row("doc/data.md", "## Stages", f"| `{name}` | {options_of(text)} | {described(text)} |")
    else:
        text = defining("pipeline/maps", rf'\.name = "{name}"')
        insert_row("doc/data.md", "### Numbers and shapes", f"| `{name}` | {options_of(text)} | {described(text)} |")


def write_missing(tables):
    """A row for each op, layer, source, stage and function of map: that its page does not name, from the head of its source."""
    for kind, page, write in (("op", "doc/ops.md", write_op), ("layer", "doc/layers.md", write_layer)):
        for name in tables[kind]:
            if not re.search(rf"^\| `{name}` \|", read(page), re.M):
                write(name)
    for complaint in check_data():
        found = re.match(r"doc/data.md: (source|stage|function of map:) (\w+) (?:is missing|has no section)$", complaint)
        if found and not re.search(rf"^(?:### |\| )`{found[2]}`", read("doc/data.md"), re.M):
            write_data(found[1], found[2])


def main():
    program, write = sys.argv[1], "--write" in sys.argv
    tables = facts(program)
    if write:
        write_missing(tables)
    ops, layers = (os.path.join(ROOT, "doc", page) for page in ("ops.md", "layers.md"))
    bad, _ = check_page(ops, "op", tables["op"], expected_op, write)
    more, rows = check_page(layers, "layer", tables["layer"], expected_layer, write)
    bad += more + check_arguments(program, layers, rows)
    bad += check_refused(layers) + check_named(tables["layer"])
    bad += check_training(os.path.join(ROOT, "doc", "training.md")) + check_manual(os.path.join(ROOT, "doc", "plim.1"))
    bad += check_data() + check_job_files() + check_errors() + check_json() + check_budget() + check_pages()
    print("\n".join(bad) if bad else f"{len(tables['op'])} ops, {len(tables['layer'])} layers ... ok")
    return 1 if bad else 0


sys.exit(main())
