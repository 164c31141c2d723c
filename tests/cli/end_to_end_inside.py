"""end_to_end_inside.py PLIM [TEST...] - what is told before or while a job runs, and would be silence otherwise: ids and shapes that layers
inside layers read, values that brightness is too much for; and prefetch before batch."""
import json, os, struct, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
MEMORY = "16GiB" if "SANITIZED" in os.environ else "64MiB"
TRAIN = {"optimizer": "sgd", "loss": "mse", "epochs": 1, "callbacks": [{"checkpoint": "none"}]}
TABLE = {"Embedding": {"input_dim": 6, "output_dim": 2}}
END = ["Flatten", {"Dense": 1}]


def npy(path, descr, shape, data):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        npy(self.folder.name + "/y.npy", "<f4", (8, 1), struct.pack("<8f", *range(8)))

    def run_job(self, model, pipeline=({"batch": 4},), *words, source=None):
        job = {"memory": MEMORY, "seed": 1, "model": model, "train": TRAIN,
               "data": {"train": {**(source or {"npy": ["x.npy", "y.npy"]}), "pipeline": list(pipeline)}}}
        with open(self.folder.name + "/job.yaml", "w") as f:
            json.dump(job, f)
        return subprocess.run([PLIM, "train", "job.yaml", *words], cwd=self.folder.name, capture_output=True, text=True)


class Inside(Case):
    def ids(self, most):
        """8 samples of 2 steps of 3 ids."""
        npy(self.folder.name + "/x.npy", "<i4", (8, 2, 3), struct.pack("<48i", *([0, 1, 2, 3, 4, most] * 8)))

    MODELS = {"TimeDistributed": [{"TimeDistributed": {"layer": TABLE}}, *END],
              "a model inside": [{"TimeDistributed": {"layer": {"Sequential": [{"Reshape": [3, 1]}, "Flatten", TABLE]}}}, *END],
              "Flatten": ["Flatten", TABLE, *END],
              "Reshape, Permute, RepeatVector": [{"Reshape": [3, 2]}, {"Permute": [2, 1]}, "Flatten", {"RepeatVector": 2}, TABLE, *END]}

    def test_ids_without_a_row_are_refused(self):
        for what, model in self.MODELS.items():
            with self.subTest(what):
                self.ids(5)
                ran = self.run_job(model)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.ids(6)
                ran = self.run_job(model)
                self.assertEqual(ran.returncode, 3, ran.stdout + ran.stderr)
                self.assertIn("is 6, not one of 6 ids", ran.stderr)

    def test_what_is_left_out_is_not_asked(self):
        self.ids(6)
        ran = self.run_job([{"Cropping1D": [0, 1]}, "Flatten", TABLE, *END])
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_casts_that_change_values_are_not_asked_through(self):
        """0.5 and -0.5 are 0 as int32, 6 is 1 as bool, 256 is 0 as uint8; behind a cast that changes nothing, ids are checked."""
        def run(*types):
            casts = [{"Op": {"op": "cast", "arguments": word}} for word in types]
            return self.run_job([*casts, TABLE, *END])
        npy(self.folder.name + "/x.npy", "<f4", (8, 2), struct.pack("<16f", *([0.5, -0.5] * 8)))
        self.assertEqual(run("int32").returncode, 0, "fractions are cut off")
        npy(self.folder.name + "/x.npy", "<i4", (8, 2), struct.pack("<16i", *([6, 256] * 8)))
        for types in (("bool", "int32"), ("bool", "float32")):
            self.assertEqual(run(*types).returncode, 0, types)
        npy(self.folder.name + "/x.npy", "<i4", (8, 2), struct.pack("<16i", *([5, 256] * 8)))
        self.assertEqual(run("uint8", "int32").returncode, 0, "uint8 wraps")
        for types in (("int64",), ("float32",), ("int64", "float64")):
            ran = run(*types)
            self.assertEqual(ran.returncode, 3, types)
            self.assertIn("not one of 6 ids", ran.stderr)

    def test_an_input_inside_has_its_shape(self):
        self.ids(5)
        inner = {"Sequential": [{"Input": {"shape": [4], "name": "four"}}, {"Dense": 3}]}
        for what, layers in (("all steps at once", inner), ("step by step", {"Sequential": [inner["Sequential"][0], "Flatten", {"Dense": 3}]}),
                             ("in a model inside", {"Sequential": [{"Dense": 3}, "Flatten", inner]})):
            with self.subTest(what):
                ran = self.run_job([{"TimeDistributed": {"layer": layers}}, *END])
                self.assertEqual(ran.returncode, 2, ran.stdout + ran.stderr)
                self.assertIn("says (4,), what it is given is (3,)", ran.stderr)
                right = json.loads(json.dumps(layers).replace('"shape": [4]', '"shape": [3]'))
                ran = self.run_job([{"TimeDistributed": {"layer": right}}, *END])
                self.assertEqual(ran.returncode, 0, ran.stderr)


class Brightness(Case):
    """Told once, in text and in JSON; not where the range fits."""
    SOURCE = {"random": {"elements": 8, "shape": [4, 4, 3], "classes": 2, "seed": 1}}
    LAYERS = [{"Flatten": {}}, {"Dense": 1}]

    def told(self, wanted, model, *pipeline):
        pipeline = [*pipeline, {"batch": 4}]
        ran = self.run_job(model, pipeline, source=self.SOURCE)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout.count("note: "), 1 if wanted else 0, ran.stdout)
        events = [json.loads(line) for line in self.run_job(model, pipeline, "--json", source=self.SOURCE).stdout.splitlines()]
        note = events[-1].get("note", "")
        for words in wanted:
            self.assertIn(words, ran.stdout)
            self.assertIn(words, note)
        self.assertTrue(wanted or not note, note)

    def test_in_a_pipeline(self):
        scale = {"map": {"x": [{"rescale": "1/255"}, {"random_brightness": 0.2}]}}
        self.told(["random_brightness of column 'x'", "[0, 255]", "value_range: [0, 1]"], self.LAYERS, scale)
        self.told([], self.LAYERS, {"map": {"x": [{"rescale": "1/255"}, {"random_brightness": {"factor": 0.2, "value_range": [0, 1]}}]}})
        self.told([], self.LAYERS, {"map": {"x": [{"random_brightness": 0.2}, {"rescale": "1/255"}]}})

    def test_in_layers(self):
        bright = {"RandomBrightness": {"factor": 0.2, "name": "light"}}
        self.told(["RandomBrightness 'light'", "value_range: [-1, 1]"], [{"Rescaling": {"scale": "1/127.5", "offset": -1}}, "RandomFlip", bright, *self.LAYERS])
        self.told(["RandomBrightness 'light'", "value_range: [0, 1]"], [bright, *self.LAYERS], {"map": {"x": [{"rescale": "1/255"}]}})
        self.told([], [bright, {"Rescaling": "1/255"}, *self.LAYERS])
        self.told([], [{"Rescaling": "1/255"}, {"RandomBrightness": {"factor": 0.2, "value_range": [0, 1]}}, *self.LAYERS])


class PrefetchFirst(Case):
    def test_the_batches_are_the_same(self):
        npy(self.folder.name + "/x.npy", "<f4", (8, 3), struct.pack("<24f", *range(24)))
        digests = set()
        for pipeline in ([{"batch": 3}], [{"prefetch": 2}, {"batch": 3}], [{"prefetch": "auto"}, {"batch": 3}, {"prefetch": 1}]):
            ran = self.run_job([{"Dense": 1}], [{"shuffle": "exact"}, *pipeline], "--json", "--digest")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            digests.add(json.loads(ran.stdout.splitlines()[-1])["weights_digest"])
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
