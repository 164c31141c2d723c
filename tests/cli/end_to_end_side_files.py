"""end_to_end_side_files.py PLIM [TEST...] - files beside the data that take more than the budget: counted first, refused with the figure,
in a cgroup of exactly the stated budget."""
import json, os, resource, struct, subprocess, sys, tempfile, unittest, zipfile

PLIM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
CGROUPS = [os.path.join("/sys/fs/cgroup", name) for name in ("memory/memory.limit_in_bytes", "cgroup.controllers")]

TRAIN = "model: [Dense: 1]\ntrain: {loss: mse, optimizer: sgd}\n"
RANDOM = "data: {train: {random: {elements: 100, shape: [4], classes: 2, seed: 1}, pipeline: [batch: 10]}}\n"
WORDS = "data: {train: {csv: {files: x.csv, label: y}, pipeline: [map: [%s], batch: 10]}}\n" + TRAIN


class SideFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        cls.folder = cls.temporary.name
        cls.write("x.csv", "a,y\nw1,1\nw2,0\n")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def write(cls, name, *pieces):
        """Texts, or lists of them, one after another: this process must stay small, its size counts in that of its children."""
        with open(os.path.join(cls.folder, name), "w") as f:
            for piece in pieces:
                f.writelines([piece] if isinstance(piece, str) else piece)

    def run_inside(self, memory, *arguments):
        """plim in a cgroup of the budget: nobody is killed, and the peak of its resident size stays below."""
        figures = os.path.join(self.folder, "figures")
        command = [os.path.join(ROOT, "tools", "in-cgroup"), str(memory), figures, "timeout", "60", PLIM, *arguments]
        with open(os.path.join(self.folder, "said"), "w+") as said:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, cwd=self.folder)
            usage = os.wait4(process.pid, 0)
            said.seek(0)
            code, text = os.waitstatus_to_exitcode(usage[1]), said.read()
            process.returncode = code
        if code == 125:
            if os.environ.get("CI") or os.geteuid() == 0 and any(map(os.path.exists, CGROUPS)):
                self.fail("no cgroup can be made here")
            self.skipTest("no cgroup can be made here (needs root and a memory controller)")
        with open(figures) as f:
            self.assertEqual(f.read().split()[3], "0", f"killed: {text}")
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss # a child begins as a copy of its parent, and the kernel remembers
        self.assertLessEqual(usage[2].ru_maxrss * 1024, max(memory, own * 1024))
        return code, text

    def refused(self, memory, job, *words):
        self.write("job.yaml", f"memory: {memory}MiB\n" + job)
        code, text = self.run_inside(memory * MIB, "plan", "job.yaml")
        self.assertEqual(code, 4, text)
        for word in words:
            self.assertIn(word, text)
        self.assertEqual(text.count("\n"), 1, text)
        print(f"    {text.strip()}", flush=True)

    def test_vocabulary(self):
        self.write("v.txt", (f"w{i}\n" for i in range(4000000)))
        self.refused(32, WORDS % "string_lookup: {vocabulary: v.txt}", "v.txt: its 4,000,000 words take ", " are left for it")
        self.refused(32, WORDS % "text_vectorization: {vocabulary: v.txt, output_sequence_length: 4}", "v.txt: its 4,000,000 words take ")
        self.write("v.txt", (f"w{i}\n" for i in range(1000000)))
        self.refused(16, WORDS % "string_lookup: {vocabulary: v.txt}", "v.txt: its 1,000,000 words take 16.1 MiB")

    def test_bpe(self):
        job = WORDS % "bpe: {vocabulary: vocab.json, merges: merges.txt, length: 8}"
        self.write("merges.txt", "")
        self.write("vocab.json", '{"!": 1500000', (f', "t{i}": {i}' for i in range(1500000)), "}")
        self.refused(24, job, "vocab.json: its 1,500,001 tokens take ")
        self.write("vocab.json", '{"a": 0, "b": 1, "ab": 2}')
        self.write("merges.txt", ("a b\n" for i in range(1500000)))
        self.refused(24, job, "merges.txt: its 1,500,000 merges take ")

    def test_weights(self):
        self.write("many.safetensors", "\0" * 8, '{"__metadata__":{}', (f',"t{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(1500000)), "}")
        with open(os.path.join(self.folder, "many.safetensors"), "r+b") as f:
            f.write(struct.pack("<Q", os.path.getsize(f.name) - 8))
        job = RANDOM + TRAIN.replace("sgd}", "sgd, load_weights: many.safetensors}")
        self.refused(32, job, "many.safetensors: its 1,500,000 tensors take ")

    def test_braces(self):
        for pattern, count in (("a{000000000..999999999}", "1,000,000,000"), ("{0..99999}/{a,b}{0..999}", "200,000,000")):
            self.refused(32, f'data: {{train: {{text: "{pattern}", pipeline: [batch: 10]}}}}\n' + TRAIN, f"{pattern}: its {count} files take ")

    def test_folders(self):
        os.makedirs(os.path.join(self.folder, "many", "class"))
        for i in range(60000):
            os.close(os.open(os.path.join(self.folder, "many", "class", "n" * 190 + f"{i}.png"), os.O_CREAT | os.O_WRONLY))
        images = "data: {train: {images: many, pipeline: [batch: 10]}}\n" + TRAIN
        self.refused(16, images, "many: its 60,000 files take ")
        self.refused(16, 'data: {train: {text: "many/*/*.png", pipeline: [batch: 10]}}\n' + TRAIN, "many/*/*.png: its 60,000 files take ")

    def test_model_files(self):
        self.write("config.json", '{"config": [', ("1," for i in range(1000000)), "1]}")
        self.refused(32, RANDOM + TRAIN.replace("[Dense: 1]", "config.json"), "config.json: its 1,000,003 values take ")
        with zipfile.ZipFile(os.path.join(self.folder, "m.keras"), "w", zipfile.ZIP_DEFLATED) as z, z.open("config.json", "w") as f:
            for i in range(16):
                f.write(b" " * MIB)
        self.refused(16, RANDOM + TRAIN.replace("[Dense: 1]", "m.keras"), "m.keras: its 16,777,216 bytes of config.json take 16.0 MiB")

    def test_job_files(self):
        """libfyaml's own memory: what would take much is refused while it is parsed, wherever quotes and brackets stand."""
        size = MIB - 100
        jobs = {"open brackets": ("[", ""), "braces": ("{", ""), "brackets over lines": ("[\n", ""), "commas": (",", "["), "empty lists": ("[]", ""),
                "a map in a line": ("a: 1, ", "{"), "lists in a line": ("[a], ", "["), "anchors": ("&a ", ""), "quoted texts": ('"a" ', '["a" '),
                "doubled quotes": ("''", "x: '"), "escapes": ("\\n", 'x: "'), "a list in an entry": ("a, ", "- ["), "empty lines": (" \n", "x: |\n"),
                "a quote in a block": ("[", "x: |\n  '\n"), "a quote in a text": ("[a], ", "x: a, 'b\n"), "anchors behind a quote": ("&a ", "x: a, 'b\n"),
                "a map behind a quote": ("{a: 1, ", "x: a, 'b\n"), "a quote in a list": ("[", "x: [b- ', "), "a text over two lines": ("[", "x: a\n  'b\ny: z\n")}
        for name, (piece, begin) in jobs.items():
            with self.subTest(name):
                self.write("hostile.yaml", begin, (piece for i in range((size - len(begin)) // len(piece))))
                code, said = self.run_inside(20 * MIB, "plan", "hostile.yaml", "--memory", "20MiB")
                self.assertIn(code, (2, 4), said)
                self.assertIn("hostile.yaml", said)

    def test_a_job_in_one_line(self):
        """As json.dump writes it: no limit but the budget's."""
        layers = [{"Dense": {"units": 8, "activation": "relu"}}] * 2000 + [{"Dense": 1}]
        job = {"memory": "64MiB", "data": {"train": {"random": {"elements": 64, "shape": [8], "classes": 1, "seed": 1}, "pipeline": [{"batch": 8}]}},
               "model": layers, "train": {"optimizer": "sgd", "loss": "mse"}}
        self.write("one.yaml", json.dumps(job))
        code, said = self.run_inside(64 * MIB, "plan", "one.yaml")
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
