"""end_to_end_data.py PLIM [TEST...] - plim data on the real program: budgets, what it tells, what it writes."""
import array, json, os, pty, random, re, shlex, shutil, struct, subprocess, sys, tarfile, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GENERATOR, READ_DATA = os.environ.get("EXAMPLE_GENERATOR"), os.environ.get("EXAMPLE_READ_DATA")
CUSTOM_LOOP = os.environ.get("EXAMPLE_CUSTOM_LOOP")
MIB = 1 << 20
SANITIZED = "SANITIZED" in os.environ  # no memory figure means anything then


def write_npy(path, code, shape, data):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def job(self, train, name="job.yaml"):
        with open(self.path(name), "w") as f:
            f.write(f"data: {{train: {train}}}\n")
        return name

    def plim(self, *arguments, code=0):
        r = subprocess.run([PLIM, "data", *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertEqual(r.returncode, code, f"plim data {' '.join(map(str, arguments))}\n{r.stdout}{r.stderr}")
        return r

    def tell(self, *arguments, code=0):
        return json.loads(self.plim(*arguments, "--json", code=code).stdout.splitlines()[-1])

    def arrays(self, rows=1000):
        generator = random.Random(1)
        x = array.array("f", (generator.random() for _ in range(rows * 10)))
        y = array.array("q", (generator.randrange(-5, 10) for _ in range(rows)))
        write_npy(self.path("x.npy"), "<f4", (rows, 10), x.tobytes())
        write_npy(self.path("y.npy"), "<i8", (rows,), y.tobytes())
        return x, y


PIPELINES = [
    "{range: 200000}",
    "{range: 200000, pipeline: [shuffle: exact, map: [cast: float32], batch: 32, prefetch: auto]}",
    "{random: {elements: 3000, shape: [40, 40], classes: 10}, pipeline: [batch: 256, prefetch: 4]}",
    "{range: 100000, pipeline: [batch: 512, map: [cast: float64], prefetch: 1]}",
    "{range: 50000, pipeline: [repeat: 3, skip: 7, take: 90000, batch: {size: 100, drop_remainder: true}]}",
]


@unittest.skipIf(SANITIZED, "figures of memory")
class DataBudget(Case):
    def test_predicted_is_measured(self):
        for train in PIPELINES:
            with self.subTest(train=train):
                figures = self.tell("bench", self.job(train), "--memory", "64MiB")
                predicted, measured = figures["predicted_peak_bytes"], figures["peak_rss_bytes"]
                self.assertLessEqual(measured, predicted)
                self.assertLessEqual(predicted - measured, max(4 * MIB, predicted * 0.05))

    def test_what_the_budget_has_no_room_for(self):
        """A cache is kept, and blocks are held, where they fit; the elements are the same where they do not."""
        self.arrays(50000)
        for stages, word, held in (("shuffle: blocks, cache: auto", "cache", ("memory", "none")), ("shuffle: blocks", "blocks_held", (True, False))):
            job = self.job(f"{{npy: [x.npy, y.npy], pipeline: [{stages}, batch: 32, prefetch: auto]}}")
            least = str(self.tell("explain", job, "--plan")["smallest_budget_bytes"])
            for memory, expected in zip(("64MiB", least), held):
                self.assertEqual(self.tell("explain", job, "--memory", memory)["chosen"][word], expected)
                self.plim("convert", job, "--output", f"{expected}.tfrecord", "--memory", memory if memory != least else int(least) + MIB)
            with open(self.path(f"{held[0]}.tfrecord"), "rb") as a, open(self.path(f"{held[1]}.tfrecord"), "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_floor(self):
        """Below the smallest budget: refused with each stage's part, and with a command that works."""
        for train in PIPELINES:
            with self.subTest(train=train):
                job = self.job(train)
                smallest = self.tell("explain", job, "--plan")["smallest_budget_bytes"]
                self.assertLessEqual(self.tell("bench", job, "--memory", smallest)["peak_rss_bytes"], smallest)
                error = self.tell("bench", job, "--memory", int(smallest * 0.97), code=4)
                self.assertEqual(error["code"], "OVER_BUDGET")
                self.assertIn("the process itself", error["message"])
                self.assertRegex(error["message"], r"(batch|range) \d")
                command = shlex.split(error["try"])
                self.assertEqual(command[:3], ["plim", "data", "bench"])
                self.plim(*command[2:])


class DataDisk(Case):
    """Caches in files count against --disk."""

    def test_known_beforehand(self):
        job = self.job("{range: 100000, pipeline: [cache: kept, batch: 32]}")
        for command in ("bench", "explain"):
            error = self.tell(command, job, "--disk", "100KiB", code=4)
            self.assertEqual(error["code"], "OVER_DISK")
            self.assertIn("unpacked sources and caches take 782", error["message"])
            self.assertFalse(os.path.exists(self.path("kept")))
        option, size = error["try"].split()
        self.assertEqual(self.tell("bench", job, option, size)["elements"], 100000)
        self.assertLessEqual(os.path.getsize(self.path("kept")), int(size.removesuffix("KiB")) * 1024)
        self.tell("bench", job, "--disk", "100KiB")  # it is there: nothing is written

    def test_met_while_writing(self):
        with open(self.path("lines.txt"), "w") as f:
            f.writelines(f"line {i} of some\n" for i in range(20000))
        job = self.job("{text: lines.txt, pipeline: [cache: kept, batch: 32]}")
        error = self.tell("bench", job, "--disk", "100KiB", code=4)
        self.assertEqual(error["code"], "OVER_DISK")
        self.assertIn("kept", error["where"])
        self.assertIn("--disk", error["try"])
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("kept")], [])
        self.assertEqual(self.tell("bench", job, "--disk", "2MiB")["elements"], 20000)


class DataTold(Case):
    def test_explain(self):
        told = self.tell("explain", self.job(PIPELINES[1].replace("200000", "20000")))
        names = [stage["name"] for stage in told["stages"]]
        self.assertEqual(names, ["range", "shuffle", "map cast", "batch", "prefetch"])
        self.assertIn(told["bottleneck"], names)
        self.assertEqual(told["elements"], 20000)
        self.assertEqual(told["chosen"]["slots"], 3)
        self.assertAlmostEqual(sum(stage.get("share", 0) for stage in told["stages"]), 1, places=3)
        batch = told["stages"][3]
        self.assertEqual((batch["cardinality"], batch["columns"][0]["shape"]), (625, [-1]))
        text = self.plim("explain", "job.yaml").stdout
        for word in (*names, "bottleneck", "readiness", "slots 3", "smallest workable budget"):
            self.assertIn(word, text)

    def test_a_plan_runs_nothing(self):
        told = self.tell("explain", self.job("{range: 1000000000000, pipeline: [shuffle: exact, batch: 8]}"), "--plan")
        self.assertNotIn("bottleneck", told)
        self.assertEqual(told["stages"][2]["cardinality"], 125000000000)

    def test_inspect(self):
        self.arrays()
        told = self.tell("inspect", "x.npy", "y.npy")
        self.assertEqual((told["source"], told["cardinality"]), ("npy", 1000))
        self.assertEqual(told["columns"], [{"name": "x", "type": "float32", "shape": [10]},
                                           {"name": "y", "type": "int64", "shape": []}])
        self.assertEqual(len(told["first"]), 3)
        self.plim("convert", "x.npy", "y.npy", "--output", "set.tfrecord")
        self.assertEqual(self.tell("inspect", "set.tfrecord")["example"], "{x: 'float32[10]', y: int64}")  # as a job file takes it

    def test_padded_batches(self):
        """Batches of lengths of their own have samples of none: told, with what to do about it, and that works."""
        with open(self.path("lines.txt"), "w") as f:
            f.write("a b c\nd e\nf\ng h i j\nk\n")
        padded = "{text: lines.txt, pipeline: [map: [split], padded_batch: 2%s]}"
        for command in (["inspect"], ["convert", "--output", "words.tfrecord"], ["convert", "--output", "words"]):
            error = self.tell(command[0], self.job(padded % ""), *command[1:], code=2)
            self.assertEqual(error["code"], "UNSUPPORTED")
            self.assertIn("'line' is padded to another length", error["message"])
            self.assertIn("unbatch", error["try"])
            self.assertFalse(os.path.exists(self.path("words.tfrecord")) or os.path.exists(self.path("words")))
        first = self.tell("inspect", self.job(padded % ", unbatch"))["first"]
        self.assertEqual(first, ["line ['a' 'b' 'c'] (3,)", "line ['d' 'e' ''] (3,)", "line ['f' '' '' ''] (4,)"])
        self.assertEqual(self.tell("convert", "job.yaml", "--output", "words")["elements"], 5)

    def test_words(self):
        self.assertIn("plim data explain", self.plim("explian", code=2).stderr)
        self.plim(code=2)
        self.plim("bench", code=2)
        self.plim("bench", "job.yaml", "--plan", code=2)
        self.assertIn("No such file", self.plim("inspect", "nothing.npy", code=6).stderr)
        with open(self.path("what.ever"), "w") as f:
            f.write("?")
        self.assertIn("no known format", self.plim("inspect", "what.ever", code=3).stderr)


class DataWritten(Case):
    FEATURES = "{tfrecord: {files: \"%s\", features: {x: \"float32[10]\", y: int64}}}"

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def test_there_and_back(self):
        self.arrays()
        for name in ("set.tfrecord", "set.tfrecord.gz"):
            self.assertEqual(self.tell("convert", "x.npy", "y.npy", "--output", name)["elements"], 1000)
            said = self.plim("convert", self.job(self.FEATURES % name), "--output", "back.npy").stdout
            self.assertEqual(said, "back.x.npy, back.y.npy: 1000 elements\n", "the files that there are")
            for column in "xy":
                self.assertEqual(self.read(f"back.{column}.npy")[128:], self.read(f"{column}.npy")[128:])
                self.assertEqual(self.tell("inspect", f"back.{column}.npy")["cardinality"], 1000)
        self.plim("convert", "x.npy", "y.npy", "--output", "saved")
        self.assertEqual(self.tell("inspect", "saved")["cardinality"], 1000)
        self.plim("convert", "saved", "--output", "again.npy")
        self.assertEqual(self.read("again.x.npy"), self.read("x.npy"))
        self.assertEqual(self.plim("convert", "x.npy", "--output", "copy.npy").stdout, "copy.npy: 1000 elements\n")
        self.assertEqual(self.read("copy.npy"), self.read("x.npy"))

    def test_through_a_pipeline(self):
        self.job("{range: 100, pipeline: [skip: 10, take: 20, batch: 8, prefetch: auto]}")
        self.assertEqual(self.tell("convert", "job.yaml", "--output", "few.npy")["elements"], 20)
        self.assertEqual(array.array("q", self.read("few.npy")[128:]).tolist(), list(range(10, 30)))
        error = self.tell("convert", self.job("{range: 5, pipeline: [repeat]}"), "--output", "x.npy", code=2)
        self.assertIn("never ends", error["message"])

    def test_tar(self):
        x, y = self.arrays(20)
        self.plim("convert", "x.npy", "y.npy", "--output", "set.tar")
        with tarfile.open(self.path("set.tar")) as tar:
            names = tar.getnames()
            self.assertEqual(names[:3], ["000000000.x.npy", "000000000.y.npy", "000000001.x.npy"])
            self.assertEqual(len(names), 40)
            self.assertEqual(array.array("q", tar.extractfile("000000007.y.npy").read()[128:])[0], y[7])

    def test_shards_and_index(self):
        self.arrays(103)
        self.plim("shard", "x.npy", "y.npy", "--shards", 4, "--output", "part")
        names = [f"part-{i:05}-of-00004.tfrecord" for i in range(4)]
        counts = []
        for name in names:
            self.assertIn(name + ".index", self.plim("index", name).stdout)
            counts.append(self.tell("index", name)["records"])
        self.assertEqual(counts, [26, 26, 26, 25])
        self.plim("convert", self.job(self.FEATURES % "part-*.tfrecord"), "--output", "all.npy")
        self.assertEqual(sorted(array.array("q", self.read("all.y.npy")[128:])), sorted(array.array("q", self.read("y.npy")[128:])))
        self.plim("index", "x.npy", code=3)

    def test_nothing_half_written(self):
        self.arrays()
        self.plim("convert", "x.npy", "y.npy", "--output", "set.tfrecord")
        whole = self.read("set.tfrecord")
        with open(self.path("cut.tfrecord"), "wb") as f:
            f.write(whole[: len(whole) * 2 // 3])
        before = sorted(os.listdir(self.folder))
        for output in ("out.tfrecord", "out.npy", "out.tar", "out"):
            source = self.job(self.FEATURES % "cut.tfrecord")
            self.assertIn("cut.tfrecord", self.plim("convert", source, "--output", output, code=3).stderr)
            self.assertEqual(sorted(set(os.listdir(self.folder)) - {"job.yaml"}), before)
        self.assertIn("none of .tfrecord", self.plim("convert", "x.npy", "--output", "out.what", code=2).stderr)
        self.plim("convert", "x.npy", "--output", "nowhere/out.npy", code=6)

    def test_hostile_files(self):
        """Truncated or with a bit flipped: told, or an error of one line that names the file."""
        self.arrays(8)
        self.plim("convert", "x.npy", "y.npy", "--output", "set.tfrecord")
        generator = random.Random(2)
        for name in ("x.npy", "set.tfrecord"):
            whole = self.read(name)
            for i in range(40):
                data = bytearray(whole)
                if i % 2:
                    data = data[: generator.randrange(len(data))]
                else:
                    data[generator.randrange(min(len(data), 300))] ^= 1 << generator.randrange(8)
                hostile = "bad" + os.path.splitext(name)[1]
                with open(self.path(hostile), "wb") as f:
                    f.write(data)
                r = subprocess.run([PLIM, "data", "inspect", hostile], capture_output=True, text=True, cwd=self.folder, timeout=60)
                self.assertIn(r.returncode, (0, 2, 3), r.stderr)
                if r.returncode:
                    self.assertEqual(r.stderr.count("\n"), 1)
                    self.assertIn(hostile, r.stderr)

    def test_names_that_are_not_utf8(self):
        """No place in a job file is told, which nobody has written."""
        folder = os.path.join(os.fsencode(self.folder), b"d\xff")
        os.mkdir(folder)
        with open(os.path.join(folder, b"x.csv"), "w") as f:
            f.write("a,b\n1,2\n")
        name = os.fsdecode(b"d\xff/x.csv")
        for words in (["inspect"], ["explain"], ["bench"], ["convert", "--output", "o.tfrecord"]):
            said = self.plim(*words, name, code=2).stderr
            self.assertEqual(said, "plim: d\\xff/x.csv: the file's name is not UTF-8; try: rename it, or the folder it is in\n")
        self.assertIn("d\\xff/y.csv: cannot open", self.plim("inspect", os.fsdecode(b"d\xff/y.csv"), code=6).stderr)
        with open(os.path.join(folder, b"job.yaml"), "w") as f:
            f.write("data: {train: {csv: x.csv}}\n") # the folder's name is in no text
        self.assertEqual(self.tell("inspect", os.fsdecode(b"d\xff/job.yaml"))["source"], "csv")

    def test_what_is_made_of_the_arguments_has_no_places(self):
        with open(self.path("wide.csv"), "w") as f:
            f.write(",".join(f"c{i}" for i in range(65)) + "\n" + ",".join("1" * 65) + "\n")
        self.assertTrue(self.plim("inspect", "wide.csv", code=2).stderr.startswith("plim: wide.csv: more than 64 columns; try: "))
        self.job("{csv: wide.csv}", "wide.yaml")
        self.assertTrue(self.plim("inspect", "wide.yaml", code=2).stderr.startswith("plim: wide.yaml:1:"))

    def test_a_terminal_sees_a_bar(self):
        self.job("{range: 3000000}")
        master, slave = pty.openpty()
        with open(os.devnull, "w") as nothing:
            r = subprocess.Popen([PLIM, "data", "convert", "job.yaml", "--output", "lo\x1b[2Jng.npy"], stdout=nothing, stderr=slave,
                                 cwd=self.folder, env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        seen = b""
        try:
            while part := os.read(master, 65536):
                seen += part
        except OSError:  # the terminal is gone with the program
            pass
        os.close(master)
        self.assertEqual(r.wait(), 0)
        self.assertRegex(seen, rb"lo\\x1b\[2Jng\.npy  \[=*>\.*\] +\d+ %")  # how far it came before it was done is the machine's affair
        self.assertTrue(seen.endswith(b"\r\x1b[K"))
        quiet = self.plim("convert", "job.yaml", "--output", "long.npy")
        self.assertEqual(quiet.stderr, "")


def table(text, title):
    """The rows of the first table behind a title: lists of cells."""
    lines = text[text.index(title):].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[begin + 1:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


class DataDocument(Case):
    """doc/tf.data.md says what is true."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(ROOT, "doc", "tf.data.md"), encoding="utf-8") as f:
            self.text = f.read()

    def stages(self, title, before=""):
        rows = table(self.text, title)
        self.assertTrue(rows)
        for row in rows:
            stage = re.fullmatch("`(.*)`", row[1]).group(1)
            with self.subTest(stage=stage):
                self.plim("inspect", self.job("{range: 1000, pipeline: [%s%s]}" % (before, stage)),
                          "--memory", "64MiB" if not SANITIZED else "16GiB")

    def test_stages(self):
        self.stages("## Stages")

    def test_stages_behind_batch(self):
        self.stages("Behind a batch", "batch: 8, ")
        self.stages("On a column of classes", "take: 2, ")

    def test_several_into_one(self):
        for row in table(self.text, "Several into one"):
            source = row[1].strip("`")
            with self.subTest(source=source):
                self.plim("inspect", self.job("{%s}" % source), *(["--memory", "16GiB"] if SANITIZED else []))

    def test_functions_are_declared(self):
        with open(os.path.join(ROOT, "include", "plimsoll.h"), encoding="utf-8") as f:
            header = f.read()
        names = set(re.findall(r"\bplim_\w+(?=\()", self.text))
        self.assertGreater(len(names), 30)
        for name in sorted(names):
            self.assertRegex(header, rf"\b{name}\(")

    def test_every_builder_is_told(self):
        with open(os.path.join(ROOT, "include", "plimsoll.h"), encoding="utf-8") as f:
            builders = set(re.findall(r"plim_dataset \*(plim_dataset_\w+)\(", f.read()))
        told = {"plim_dataset_ref", "plim_dataset_filter_expression", "plim_dataset_take_while_expression"}
        self.assertEqual(builders - told - set(re.findall(r"plim_dataset_\w+", self.text)), set())


class GraphDocument(unittest.TestCase):
    """doc/c-api.md lists every op, with its words, and names functions that there are."""

    def setUp(self):
        self.text, self.header, self.words = (self.read(*path) for path in (
            ("doc", "c-api.md"), ("include", "plimsoll.h"), ("src", "model", "ops", "op_words.def")))

    def read(self, *path):
        with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
            return f.read()

    def test_ops(self):
        ops = re.findall(r"^(?:OP_WORD|UNARY|BINARY|REDUCTION)\((\w+), (.*(?:\n {8}.*)*)\)$", self.words, re.M)
        self.assertGreater(len(ops), 80)
        for op, rest in ops:
            lines = [line for line in self.text.splitlines() if line.startswith("|") and f"`{op}`" in line.split("|")[1]]
            self.assertEqual(len(lines), 1, op)
            for word in re.findall(r'(?:FIRST|SECOND|THIRD|NODE|TRUTH|WHOLE|WORD)\("(\w+)"', rest):
                self.assertIn(f"`{word}`", lines[0], op)

    def test_functions_are_declared(self):
        names = set(re.findall(r"\bplim_\w+(?=\()", self.text))
        self.assertGreater(len(names), 10)
        for name in sorted(names):
            self.assertRegex(self.header, rf"\b{name}\(")


class DataExamples(Case):
    def setUp(self):
        super().setUp()
        for name in os.listdir(os.path.join(ROOT, "examples")):
            if name.endswith((".yaml", ".py")):
                shutil.copy(os.path.join(ROOT, "examples", name), self.folder)

    def make_data(self, rows):
        subprocess.run([sys.executable, "make_data.py", "data", str(rows)], cwd=self.folder, check=True)

    def train(self, job, *arguments):
        more = ["--memory", "16GiB"] if SANITIZED else []
        r = subprocess.run([PLIM, "train", job, "--json", *arguments, *more], capture_output=True, text=True, cwd=self.folder,
                           timeout=250)
        self.assertEqual(r.returncode, 0, r.stderr)
        events = [json.loads(line) for line in r.stdout.splitlines()]
        end = events[-1]
        self.assertEqual(end["event"], "end")
        if not SANITIZED:
            plan = next(e for e in events if e["event"] == "plan")
            self.assertLessEqual(end["peak_rss_bytes"], plan["budget_bytes"])
        return end, [e for e in events if e["event"] == "epoch"][-1]

    def test_tfrecord(self):
        self.make_data(4000)
        self.plim("shard", "data/x.npy", "data/y.npy", "--shards", 4, "--output", "data/train")
        end, epoch = self.train("tfrecord.yaml")
        self.assertEqual(end["samples"], 8000)
        self.assertGreater(epoch["accuracy"], 0.7)
        if READ_DATA:
            text = "{tfrecord: {files: 'data/train-*.tfrecord', features: {x: 'float32[100]', y: int64}}, pipeline: [batch: 32]}"
            r = subprocess.run([READ_DATA, text], capture_output=True, text=True, cwd=self.folder, timeout=60)
            self.assertIn("4000 samples in 125 batches", r.stdout, r.stderr)

    def test_images(self):
        self.make_data(10)
        end, epoch = self.train("images.yaml")
        self.assertEqual(end["samples"], 384)
        self.assertGreater(epoch["accuracy"], 0.9)

    def test_beyond_memory(self):
        self.make_data(50000)  # 20 MB, more than the budget
        end, epoch = self.train("beyond_memory.yaml")
        self.assertEqual(end["samples"], 50000)
        self.assertGreater(epoch["accuracy"], 0.7)

    @unittest.skipUnless(GENERATOR, "no program given")
    def test_custom_loop(self):
        r = subprocess.run([CUSTOM_LOOP], capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)
        epochs = [list(map(float, re.findall(r"\d+\.\d+", line))) for line in r.stdout.splitlines()]
        self.assertEqual(len(epochs), 3)
        self.assertLess(epochs[2][0], epochs[0][0])  # loss
        self.assertGreater(epochs[2][3], 0.8)  # of classes that were not trained on
        self.assertEqual(r.stdout, subprocess.run([CUSTOM_LOOP], capture_output=True, text=True, timeout=120).stdout)

    def test_generator(self):
        r = subprocess.run([GENERATOR], capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        x, y, x2, y2 = map(float, re.findall(r"-?\d+\.\d+", r.stdout))
        self.assertEqual((x, y), (x2, y2))
        self.assertAlmostEqual(y, 0.3 * x + 1, places=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
