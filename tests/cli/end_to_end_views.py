"""end_to_end_views.py PLIM [TEST...] - a plan as people look at it: its text, its plot and its page say what the plan says."""
import html.parser, json, os, re, subprocess, sys, tempfile, unittest
import xml.etree.ElementTree as ElementTree

PLIM = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
NAME, TAG, OFFSET, BYTES, FIRST, LAST = range(6)  # of a block
KIND, SECONDS, READS, WRITES = range(1, 5)  # of an instruction

JOB = """seed: 7
data:
  train: {random: {elements: 64, shape: [32, 32, 3], classes: 10, seed: 1}, pipeline: [batch: 32]}
model:
  - Conv2D: {filters: 32, kernel_size: 3, padding: same, activation: relu}
  - Conv2D: {filters: 32, kernel_size: 3, padding: same, activation: gelu}
  - BatchNormalization
  - Conv2D: {filters: 32, kernel_size: 3, padding: same, activation: gelu}
  - Flatten
  - Dense: {units: 64, activation: gelu, name: "<!--<script>"}
  - Dense: {units: 10, activation: softmax}
train: {optimizer: adam, loss: sparse_categorical_crossentropy, epochs: 1, callbacks: [checkpoint: none]}
"""


class Scripts(html.parser.HTMLParser):
    """The scripts of a page, as a browser finds them, and what the page would load."""
    def __init__(self, text):
        super().__init__()
        self.scripts, self.loads, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "script"
        self.scripts += [""] * self.inside
        self.loads += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


class Views(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(self.folder.cleanup)
        with open(self.at("job.yaml"), "w") as f:
            f.write(JOB)

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def plim(self, *arguments, code=0):
        r = subprocess.run([PLIM, "plan", "job.yaml", *map(str, arguments)], capture_output=True, text=True, cwd=self.folder.name, timeout=120)
        self.assertEqual(r.returncode, code, r.stderr)
        return r

    def plan(self, *arguments, code=0):
        return json.loads(self.plim("--json", *arguments, code=code).stdout.splitlines()[0])

    def page(self, *arguments, code=0):
        """The plan as --json has it, and as the page has it."""
        told = self.plan("--html", "page.html", *arguments, code=code)
        with open(self.at("page.html")) as f:
            found = Scripts(f.read())
        self.assertEqual(found.loads, [])
        self.assertEqual(len(found.scripts), 2)
        return told, json.loads(found.scripts[0])

    def budgets(self):
        """Of a plan that drops, spills and pages nothing, of one in the middle, of the smallest."""
        plan = self.plan("--memory", "auto")
        frontier = [point["bytes"] for point in plan["frontier"]]
        self.assertGreater(len(frontier), 2)
        return frontier[0] + MIB, (frontier[0] + frontier[-1]) // 2, plan["smallest_budget_bytes"]

    def check_blocks(self, page):
        """No two blocks that are alive at once share a byte, all lie in the arena, and what is read was written before or is always there."""
        steps, written = len(page["instructions"]), set()
        for block in page["blocks"]:
            self.assertLessEqual(block[OFFSET] + block[BYTES], page["arena"])
            self.assertTrue(0 <= block[FIRST] <= block[LAST] < steps)
        for i, instruction in enumerate(page["instructions"]):
            alive = sorted((b for b in page["blocks"] if b[FIRST] <= i <= b[LAST]), key=lambda b: b[OFFSET])
            for low, high in zip(alive, alive[1:]):
                self.assertLessEqual(low[OFFSET] + low[BYTES], high[OFFSET])
            for b in instruction[READS] + instruction[WRITES]:
                self.assertTrue(page["blocks"][b][FIRST] <= i <= page["blocks"][b][LAST], instruction[NAME])
            written.update(instruction[WRITES])
            for b in instruction[READS]:
                block = page["blocks"][b]
                self.assertTrue(b in written or block[FIRST] == 0, f"{instruction[NAME]} reads {block[NAME]}")
        for b, block in enumerate(page["blocks"]):
            persistent = page["tags"][block[TAG]] in ("weights", "optimizer") and block[FIRST] == 0 and block[LAST] == steps - 1
            self.assertTrue(b in written or persistent or block[NAME].startswith("slice buffers"), f"nobody writes {block[NAME]}")

    def check_figures(self, told, page):
        use = [sum(b[BYTES] for b in page["blocks"] if b[FIRST] <= i <= b[LAST]) for i in range(len(page["instructions"]))]
        self.assertEqual(max(use), use[page["peak_at"]])
        self.assertEqual(page["instructions"][page["peak_at"]][NAME], told["peak_at"])
        self.assertLessEqual(max(use), told["arena_bytes"])
        self.assertEqual(sum(page["outside"]) + told["arena_bytes"], told["predicted_peak_bytes"])
        self.assertEqual((page["predicted"], page["budget"], page["smallest"], page["fits"], page["arena"]),
                         (told["predicted_peak_bytes"], told["budget_bytes"], told["smallest_budget_bytes"], told["fits"], told["arena_bytes"]))
        self.assertEqual(page["tags"], list(told["by_tag"]))
        self.assertEqual([list(point.values()) for point in told["frontier"]], [point[:2] for point in page["frontier"]])
        self.assertFalse(page["frontier"][page["point"]][2])
        self.assertEqual(page["frontier"][page["point"]][1], told["relative_time"])

    def test_the_page_has_the_plan(self):
        for budget in self.budgets():
            told, page = self.page("--memory", budget)
            with self.subTest(told["techniques"]):
                self.check_figures(told, page)
                self.check_blocks(page)
                kinds = [i[KIND] for i in page["instructions"]]
                moves = told["techniques"]["spill"] + told["techniques"]["page"]
                self.assertEqual(moves > 0, "in" in kinds)
                self.assertLessEqual(set(kinds), {"compute", "out", "in", "wait"})
                self.assertTrue(all(i[SECONDS] >= 0 for i in page["instructions"]))
                self.assertTrue(any("<!--<script>" in b[NAME] for b in page["blocks"]))

    def test_what_is_paged_comes_from_the_disk(self):
        told, page = self.page("--set", "plan.page=[weights, optimizer]", "--memory", "auto")
        self.assertGreater(told["techniques"]["page"], 0)
        self.check_blocks(page)
        self.assertEqual(sum(i[KIND] == "out" for i in page["instructions"]), sum(i[KIND] == "in" for i in page["instructions"]))

    def test_what_is_spilled_goes_and_comes_back(self):
        rules = ("--set", "plan={spill: always, recompute: never}", "--memory", "auto")
        told, page = self.page(*rules)
        spilled = told["techniques"]["spill"]
        self.assertGreater(spilled, 2)
        self.check_blocks(page)
        moves = [i for i in page["instructions"] if i[KIND] in ("out", "in")]
        self.assertEqual(len(moves), 2 * spilled)
        gone = {page["blocks"][i[READS][0]][NAME] for i in moves if i[KIND] == "out"}
        self.assertEqual(gone, {page["blocks"][i[WRITES][0]][NAME] for i in moves if i[KIND] == "in"})
        lines = re.findall(r"^ +[\d.]+ MiB  spill  .*  +-  +[\d.]+  waits$", self.plim(*rules).stdout, re.M)
        self.assertEqual(len(lines), min(spilled, 8))

    def test_what_the_disk_does_beside_others_is_hidden(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "examples", "residual.yaml")) as f:
            text, count = re.subn(r"idx: \[.*\]$", "random: {elements: 960, shape: [28, 28, 1], classes: 10}", f.read(), flags=re.M)
        self.assertEqual(count, 1)
        with open(self.at("job.yaml"), "w") as f:
            f.write(text)
        most, middle, least = self.budgets()
        self.assertGreater(len(re.findall(r"^ +[\d.]+ MiB  spill  .*  hidden$", self.plim("--memory", most // 2).stdout, re.M)), 3)
        told, page = self.page("--memory", most // 2)
        self.check_figures(told, page)
        self.check_blocks(page)

    def test_the_peak_of_the_run_may_be_elsewhere(self):
        text = JOB.replace("model:", "  validation: {random: {elements: 512, shape: [32, 32, 3], classes: 10, seed: 2}, pipeline: [batch: 512]}\nmodel:", 1)
        with open(self.at("job.yaml"), "w") as f:
            f.write(text)
        told, page = self.page("--memory", "auto")
        self.assertEqual(page["run_peak_at"], told["peak_at"])
        self.assertNotEqual(page["instructions"][page["peak_at"]][NAME], told["peak_at"])
        self.check_blocks(page)

    def test_any_name_of_a_model_makes_a_whole_plot(self):
        for name in ("\u00e9" * 100, "x\ufffey\uffffz", "a & <b> 'c' \"d\"", "\u6a21\u578b" * 40):
            with open(self.at("model.json"), "w") as f:
                json.dump({"class_name": "Sequential", "config": {"name": name, "layers": [
                    {"class_name": "InputLayer", "config": {"batch_shape": [None, 32, 32, 3]}}, {"class_name": "Flatten", "config": {}},
                    {"class_name": "Dense", "config": {"units": 10}}]}}, f)
            with open(self.at("job.yaml"), "w") as f:
                f.write(re.sub(r"^model:\n(  .*\n)+", "model: model.json\n", JOB, flags=re.M))
            told, page = self.page("--plot", "plot.svg")
            title = ElementTree.parse(self.at("plot.svg")).getroot().find("{http://www.w3.org/2000/svg}text").text
            clean = name.replace("\ufffe", "").replace("\uffff", "")
            self.assertTrue(("batch 32, " + clean).startswith(title) and len(title) > 20 or title == "batch 32, " + clean, title)
            self.assertNotIn("\ufffd", page["title"])

    def test_the_plot_has_the_frontier(self):
        for budget in self.budgets():
            told = self.plan("--memory", budget, "--plot", "plot.svg")
            root = ElementTree.parse(self.at("plot.svg")).getroot()
            points = [c for c in root.iter() if c.tag.endswith("circle")]
            titles = [c[0].text for c in points]
            self.assertEqual([title.replace("about ", "") for title in titles],
                             ["%.1f MiB, %+.1f %%" % (p["bytes"] / MIB, 100 * (p["relative_time"] - 1)) for p in told["frontier"]])
            self.assertEqual(["about" in title for title in titles], [c.get("class") == "guess" for c in points])
            taken = [p["relative_time"] for p, c in zip(told["frontier"], points) if c.get("class") == "taken"]
            self.assertEqual(taken, [told["relative_time"]])
            width, height = map(float, root.get("viewBox").split()[2:])
            for c in points:
                self.assertTrue(0 < float(c.get("cx")) < width and 0 < float(c.get("cy")) < height)

    def test_a_plan_that_does_not_fit_is_shown_too(self):
        told, page = self.page("--memory", self.budgets()[2] - 2 * MIB, "--plot", "plot.svg", code=4)
        self.assertFalse(told["fits"])
        self.check_figures(told, page)
        with open(self.at("plot.svg")) as f:
            self.assertIn("too small", f.read())

    def test_the_text_says_what_was_let_go(self):
        most, middle, least = self.budgets()
        text = self.plim("--memory", most).stdout
        self.assertNotIn("let go", text)
        self.assertIn("  fastest  this plan", text)
        for budget in (middle, least):
            told, text = self.plan("--memory", budget), self.plim("--memory", budget).stdout
            count = int(re.search(r"let go between uses: +(\d+),", text)[1])
            listed = re.findall(r"^ +[\d.]+ MiB  (recompute|spill|page) ", text, re.M)
            self.assertEqual(len(listed), min(count, 8))
            self.assertGreaterEqual(count, told["techniques"]["spill"] + told["techniques"]["page"])
            if count <= 8:
                self.assertEqual([listed.count(word) for word in ("spill", "page")], [told["techniques"][word] for word in ("spill", "page")])
            marked = [line for line in text.splitlines() if line.startswith("\u25b8")]
            self.assertEqual(len(marked), 1)
            more = 100 * (told["relative_time"] - 1)
            self.assertIn(("%+.1f %%" if more < 1 else "%+.0f %%") % more, marked[0])
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
        never = self.plim("--set", "plan={recompute: never, spill: never, page: never}").stdout
        self.assertNotIn("this plan", never)

    def test_a_file_that_cannot_be_written_is_an_error(self):
        for option in ("--plot", "--html"):
            r = self.plim(option, "/not/there/file", code=6)
            self.assertIn("/not/there/file", r.stderr)
            self.assertEqual(len(r.stderr.splitlines()), 1)
            os.mkdir(self.at("folder" + option))
            self.plim(option, "folder" + option, code=6)
            os.mkfifo(self.at("pipe" + option))
            self.plim(option, "pipe" + option, code=6)
            self.assertIn("job file", self.plim(option, "job.yaml", code=2).stderr)
        self.plim("--plot", "same", "--html", "same", code=2)
        r = self.plim("--memory", self.budgets()[2] - 2 * MIB, "--html", "/not/there/file", code=4)
        self.assertIn("/not/there/file", r.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted(["job.yaml"] + [kind + option for kind in ("folder", "pipe") for option in ("--plot", "--html")]))


if __name__ == "__main__":
    unittest.main()
