"""end_to_end_figures.py PLIM [TEST...] - what a plan tells is what then runs, and the budget binds from the first byte: while a job is
opened and planned, too. TOLD_RUNS (10): how often a told budget is tried."""
import glob, json, os, re, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
TOLD_RUNS = int(os.environ.get("TOLD_RUNS", "10"))

JOB = """seed: 7
data:
  train: {random: {elements: 2000, shape: %s, classes: %d, seed: 1}, pipeline: [shuffle: exact, batch: %d, prefetch: auto]}
model: %s
train: {optimizer: adam, loss: %s, epochs: 1, steps_per_epoch: 2, callbacks: [checkpoint: none]}
"""


def dense(count, units):
    return [{"Dense": {"units": units, "activation": "relu"}}] * count


def job(layers, shape=(100,), classes=1, batch=32, loss="binary_crossentropy"):
    return JOB % (json.dumps(shape), classes, batch, json.dumps(layers), loss)


CLASSES = {"classes": 10, "batch": 8, "loss": "sparse_categorical_crossentropy"}
LAST = [{"Dense": {"units": 10, "activation": "softmax"}}]
MODELS = {
    "one layer": job([{"Dense": 1}]),
    "two layers": job(dense(1, 64) + [{"Dense": 1}]),
    "40 layers": job(dense(40, 32) + [{"Dense": 1}], batch=16),
    "400 layers": job(dense(400, 8) + [{"Dense": 1}], batch=4),
    "lstm": job([{"LSTM": 16}] + LAST, shape=(10, 8), **CLASSES),
    "convolutions": job([{"Conv2D": {"filters": 8, "kernel_size": 3}}, {"MaxPooling2D": 2}, "BatchNormalization", "Flatten", {"Dropout": 0.5}] + LAST,
                        shape=(16, 16, 3), **CLASSES),
    "separable": job([{"SeparableConv2D": {"filters": 8, "kernel_size": 3}}, "GlobalAveragePooling2D"] + LAST, shape=(16, 16, 3), **CLASSES),
}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(self.folder.cleanup)

    def job(self, text, name="job.yaml"):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def plim(self, *arguments, code=0, prefix=(), environment=None):
        r = subprocess.run([*prefix, PLIM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder.name, timeout=280,
                           env={**os.environ, **(environment or {})})
        self.assertEqual(r.returncode, code, f"plim {' '.join(map(str, arguments))}\n{r.stderr}")
        return r

    def event(self, kind, *arguments, **more):
        lines = [json.loads(line) for line in self.plim(*arguments, "--json", **more).stdout.splitlines()]
        return next(e for e in reversed(lines) if e["event"] == kind)

    def in_cgroup(self, limit, *arguments, code=0):
        """Where the kernel enforces it. No cgroup to be had is a failure: this is what the test is about."""
        figures = os.path.join(self.folder.name, "figures")
        r = self.plim(*arguments, code=code, prefix=[os.path.join(ROOT, "tools", "in-cgroup"), str(limit), figures])
        with open(figures) as f:
            self.assertEqual(f.read().split()[3], "0", f"the kernel killed for memory\n{r.stderr}")
        return r


class Figures(Case):
    def test_no_budget_makes_a_good_job_a_bad_one(self):
        """Wherever in opening and planning the budget ends: exit code 4, the file, and a command to try."""
        path = self.job(MODELS["two layers"])
        for kib in range(2048, 8192, 32):
            r = subprocess.run([PLIM, "train", path, "--memory", f"{kib}KiB", "--json"], capture_output=True, text=True, cwd=self.folder.name)
            if r.returncode == 0:
                break
            error = json.loads(r.stdout.splitlines()[-1])
            self.assertEqual((r.returncode, error["where"][:len(path)]), (4, path), f"{kib} KiB: {r.stderr}")
            self.assertRegex(error["try"], r"^plim train ", f"{kib} KiB: {r.stderr}")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_a_summary_is_whole_or_refused(self):
        """Of many layers, so that the table itself is what does not fit."""
        model = [{"Input": {"shape": [100]}}] + [{"Dense": {"units": 8, "name": f"a_layer_with_a_long_name_{i}"}} for i in range(1200)]
        codes = set()
        for kib in range(5120, 9216, 32):
            path = self.job(f"memory: {kib}KiB\nmodel: {json.dumps(model)}\n")
            r = subprocess.run([PLIM, "summary", path], capture_output=True, text=True, cwd=self.folder.name)
            codes.add(r.returncode)
            if r.returncode == 0:
                self.assertIn("a_layer_with_a_long_name_1199", r.stdout, f"{kib} KiB: {r.stderr}")
            else:
                self.assertRegex(r.stderr, rf"^plim: {re.escape(path)}: .*; try: plim summary --set memory=auto ", f"{kib} KiB")
        self.assertEqual(codes, {0, 4})

    def test_the_told_budget_runs_each_time(self):
        """In any surroundings: sizes of the environment move the stack, output as JSON takes other buffers."""
        for name, text in MODELS.items():
            with self.subTest(name):
                path = self.job(text)
                told = self.event("plan", "plan", path, "--memory", "1GiB")["smallest_budget_bytes"]
                for i in range(TOLD_RUNS):
                    self.plim("train", path, "--memory", told, *(["--json"] if i % 2 else []), environment={"PADDING": "x" * (i * 331 % 30000)})
                    if i < 10:
                        r = self.plim("train", path, "--memory", told * 99 // 100, code=4)
                        self.assertIn("plim train", r.stderr)

    def test_the_figure_does_not_depend_on_the_page_cache(self):
        """Pages of oneDNN that were evicted are not mapped around a fault: the plan reads them again before it measures."""
        path = self.job(MODELS["convolutions"])
        told = []
        for i in range(4):
            told.append(self.event("plan", "plan", path, "--memory", "1GiB")["smallest_budget_bytes"])
            for library in glob.glob("/usr/lib/*/libdnnl.so.*"):
                with open(library, "rb") as f:
                    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self.assertLessEqual(max(told) - min(told), 64 * 1024, told)

    def test_plan_and_train_predict_the_same(self):
        """By tag: what is measured differs from process to process (same_prediction compares that, too), what is computed does not."""
        for name, text in MODELS.items():
            path = self.job(text)
            for memory in ("32MiB", "64MiB", "1GiB"):
                with self.subTest(name, memory=memory):
                    plan, run = self.event("plan", "plan", path, "--memory", memory), self.event("plan", "train", path, "--memory", memory)
                    slack = 32 * 1024
                    for tag, bytes in plan["by_tag"].items():
                        measured = tag in ("process", "kernel", "planner")  # planner: up to the peak of planning
                        self.assertLessEqual(abs(bytes - run["by_tag"][tag]), slack if measured else 0, tag)
                    self.assertLessEqual(abs(plan["predicted_peak_bytes"] - run["predicted_peak_bytes"]), slack)
                    for key in ("techniques", "arena_bytes", "threads", "peak_at"):
                        self.assertEqual(plan[key], run[key])
                    self.assertGreaterEqual(plan["largest_batch"], 4)
                    self.assertIsNone(run["largest_batch"])  # only a plan looks for it

    def test_the_own_batch_fits_where_the_job_does(self):
        path = self.job(MODELS["400 layers"])
        told = self.event("plan", "plan", path, "--memory", "1GiB")["smallest_budget_bytes"]
        plan = self.event("plan", "plan", path, "--memory", told)
        self.assertTrue(plan["fits"])
        self.assertGreaterEqual(plan["largest_batch"], 4)
        self.plim("train", path, "--memory", told, "--set", f"data.train.pipeline.batch={plan['largest_batch']}")

    def test_the_largest_batch_runs(self):
        for name, text in MODELS.items():
            path = self.job(text.replace("elements: 2000", "elements: 10000000"))
            for precision in ("float32", "mixed_bfloat16"):
                for memory in ("24MiB", "100MiB"):
                    with self.subTest(name, precision=precision, memory=memory):
                        words = ["--memory", memory, "--set", f"train.precision={precision}"]
                        largest = self.event("plan", "plan", path, *words)["largest_batch"]
                        self.assertGreater(largest, 0)
                        self.plim("plan", path, *words, "--set", f"data.train.pipeline.batch={largest}")

    def test_what_is_made_again_is_counted(self):
        gelu = {"Dense": {"units": 256, "activation": "gelu"}}
        path = self.job(job([gelu, "LayerNormalization", gelu, "LayerNormalization", "GlobalAveragePooling1D"] + LAST, shape=(64, 128), **CLASSES))
        plan = self.event("plan", "plan", path, "--memory", "256MiB")
        again = plan["techniques"]["recompute"]
        self.assertGreater(again, 0)
        text = self.plim("plan", path, "--memory", "256MiB").stdout
        self.assertIn(f"recompute {again}", text)
        for literal in ("spill", "micro-batch", "+0 %"):
            self.assertNotIn(literal, text)


class Bound(Case):
    """The budget holds for the whole process while a job is opened and planned."""

    def test_planning_that_does_not_fit(self):
        """Its own tables are larger than the budget: refused before they are."""
        path = self.job(job([{"Input": {"shape": [100], "name": "x"}}] + [{"Dense": {"units": 4, "name": f"d{i}", "inputs": "x"}} for i in range(60)] +
                            [{"Add": {"name": f"a{i}", "inputs": [f"d{k}" for k in range(59)] + [f"a{i - 1}" if i else "d59"]}} for i in range(300)] + [{"Dense": {"units": 1, "inputs": "a299"}}]))
        for command in ("plan", "train"):
            r = self.in_cgroup(8 * MIB, command, path, "--memory", "8MiB", code=4)
            self.assertIn(f"plim {command} --memory auto", r.stderr)
            self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)

    def test_a_library_that_does_not_fit(self):
        """oneDNN takes more than is left: it is not opened, and what the job needs is told about right."""
        path = self.job(MODELS["convolutions"])
        told = self.event("plan", "plan", path, "--memory", "1GiB")
        self.assertFalse(told["smallest_is_estimate"])
        r = self.in_cgroup(8 * MIB, "train", path, "--memory", "8MiB", code=4)
        self.assertIn("needs about", r.stderr)
        command = r.stderr.split("try: plim ")[1].split()
        self.plim(*command)
        about = int(command[command.index("--memory") + 1].removesuffix("KiB")) * 1024
        self.assertLess(abs(about - told["smallest_budget_bytes"]), 3 * MIB)

    def test_less_than_the_bare_process(self):
        path = self.job(MODELS["one layer"])
        for budget in ("1MiB", "2MiB", "100KiB"):
            for command in (["train", path], ["plan", path], ["data", "bench", path]):
                r = self.plim(*command, "--memory", budget, code=4)
                self.assertIn("process itself", r.stderr)

    def test_the_job_file_binds_its_own_parser(self):
        """A file that takes much to parse, in a cgroup of what it states: refused, not killed; in both styles."""
        lists = "[" * 400000
        for text in ("memory: 12MiB\nmodel: " + lists, '{"memory": "12MiB", "model": ' + lists):
            r = self.in_cgroup(12 * MIB, "plan", self.job(text), code=4)
            self.assertIn("of 12.0 MiB are taken", r.stderr)

    def test_a_budget_that_is_set_goes_before_the_file(self):
        """While the file is parsed, too: a long one, with less stated in it than its parser takes."""
        layers = [{"Dense": {"units": 8, "activation": "relu"}}] * 1500 + [{"Dense": 1}]
        text = json.dumps({"memory": "8MiB", "data": {"train": {"random": {"elements": 64, "shape": [8], "classes": 1, "seed": 1},
                                                                "pipeline": [{"batch": 8}]}}, "model": layers, "train": {"optimizer": "sgd", "loss": "mse"}})
        path = self.job(text)
        self.plim("plan", path, "--set", "memory=64MiB")
        self.plim("plan", path, code=4)

    def test_the_budget_of_the_job_file_binds(self):
        path = self.job("memory: 2MiB\n" + MODELS["one layer"])
        self.assertIn("process itself", self.plim("train", path, code=4).stderr)
        self.plim("train", path, "--memory", "64MiB")


if __name__ == "__main__":
    unittest.main(verbosity=2)
