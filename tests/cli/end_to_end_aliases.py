"""end_to_end_aliases.py PLIM [TEST...] - what is said to people who write what they know from elsewhere: each message has a
next step."""
import os, struct, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
MEMORY = "16GiB" if "SANITIZED" in os.environ else "64MiB"
JOB = """memory: %s
data:
  train: {npy: [x.npy, y.npy], pipeline: [batch: 8]}
model:
  - Dense: {units: 4, activation: relu}
  - Dense: {units: 3, activation: softmax}
train: {optimizer: adam, loss: sparse_categorical_crossentropy, epochs: 1}
""" % MEMORY
CSV = "data.train.csv={files: t.csv, label: label}"


def npy(path, descr, shape, data):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


class Aliases(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = self.folder.name
        npy(path + "/x.npy", "<f4", (32, 5), struct.pack("<160f", *(i % 7 for i in range(160))))
        npy(path + "/nan.npy", "<f4", (32, 5), struct.pack("<160f", *[float("nan")] * 160))
        npy(path + "/y.npy", "<i4", (32,), struct.pack("<32i", *(i % 3 for i in range(32))))
        with open(path + "/job.yaml", "w") as f:
            f.write(JOB)
        with open(path + "/t.csv", "w") as f:
            f.write("age,score,label\n" + "".join(f"{20 + i},{i / 8},{i % 2}\n" for i in range(32)))

    def run_job(self, *changes, command=("train",), job="job.yaml"):
        sets = [word for change in changes for word in ("--set", change)]
        return subprocess.run([PLIM, *command, job, *sets], cwd=self.folder.name, capture_output=True, text=True)

    def refused(self, wanted, *changes, job="job.yaml", code=2):
        ran = self.run_job(*changes, job=job)
        self.assertEqual(ran.returncode, code, ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        for words in wanted:
            self.assertIn(words, ran.stderr)
        return ran.stderr

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)

    def test_words_of_others_lead_to_ours(self):
        self.refused(["'lr'", "did you mean 'learning_rate'"], "train.optimizer={adam: {lr: 0.1}}")
        self.refused(["'batch_size'", "did you mean 'batch'"], "data.train.pipeline=[batch_size: 8]")
        self.refused(["'sample_weight'", "npy: [x.npy, y.npy, w.npy]"], "train.sample_weight=w.npy")
        self.refused(["'validation_split'", "validation: {"], "train.validation_split=0.1")
        self.refused(["optimizer: {adam: {gradient_accumulation_steps"], "train.gradient_accumulation_steps=4")

    def test_layers_of_others_lead_to_ours(self):
        for word, hint in (("GELU", "try: Activation: gelu"), ("Gelu", "try: Activation: gelu"), ("SELU", "try: Activation: selu"),
                           ("GLU", "try: Activation: glu"), ("Tanh", "try: Activation: tanh"), ("Sigmoid", "try: Activation: sigmoid"),
                           ("SiLU", "try: Activation: silu"), ("Swish", "try: Activation: swish"), ("relu", "did you mean 'ReLU'?"),
                           ("BatchNorm", "did you mean 'BatchNormalization'?"), ("LayerNorm", "did you mean 'LayerNormalization'?"),
                           ("Linear", "did you mean 'Dense'?"), ("MultiheadAttention", "did you mean 'MultiHeadAttention'?"),
                           ("GroupqueryAttention", "did you mean 'GroupQueryAttention'?")):
            with self.subTest(word):
                self.refused([f"unknown layer '{word}'", hint], "model.0=%s" % word)

    def test_decay_was_of_the_learning_rate(self):
        said = self.refused(["'decay'", "InverseTimeDecay"], "train.optimizer={sgd: {decay: 0.001}}")
        self.assertNotIn("weight_decay", said)
        schedule = said.split("learning_rate: ", 1)[1].strip()
        ran = self.run_job("train.optimizer={sgd: {learning_rate: %s}}" % schedule)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_words_as_near_as_others_are_listed(self):
        self.assertNotIn("did you mean", self.refused(["'adamx'", "there are adam, "], "train.optimizer=adamx"))

    def test_prefetch_says_what_it_takes(self):
        self.refused(["prefetch: must be auto, or 0 and more, got -5"], "data.train.pipeline=[batch: 8, prefetch: -5]")

    def test_arguments_are_printed_clean(self):
        ran = subprocess.run([PLIM, "train", b"--\x1b[31m\xff\xe2\x80\xae\xc2\x9b\xc3\xa9"], capture_output=True)
        self.assertEqual(ran.returncode, 2)
        self.assertIn(b"'--\\x1b[31m\\xff\\xe2\\x80\\xae\\xc2\\x9b\xc3\xa9'", ran.stderr)
        for words, said in (([b"\xff\x1b"], b"unknown command '\\xff\\x1b'; try: plim --help"), ([b"data", b"\xff"], b"unknown command 'data \\xff'")):
            ran = subprocess.run([PLIM, *words], capture_output=True)
            self.assertEqual(ran.returncode, 2)
            self.assertIn(said, ran.stderr)

    def test_empty_paths(self):
        for key in ("train.save_weights", "train.load_weights", "train.callbacks.checkpoint.path"):
            self.refused([key.rpartition(".")[2] + ": must not be empty"], key + "=")
        ran = subprocess.run([PLIM, "train", "job.yaml", "--checkpoint", ""], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (2, "plim: --checkpoint: its value is empty; try: --checkpoint DIR\n"))

    def test_callbacks_are_refused_by_name(self):
        for name in ("EarlyStopping", "ReduceLROnPlateau", "early_stopping", "ModelCheckpoint"):
            said = self.refused([f"'{name}' is not supported yet", "; try: "], "train.callbacks=[%s: {patience: 3}]" % name)
            self.assertNotIn("unknown", said)

    def test_what_is_not_there_names_what_is(self):
        self.refused(["'ctc' is not supported yet", "doc/training.md"], "train.loss=ctc")
        self.refused(["'muon' is not supported yet", "there are adam, sgd, "], "train.optimizer=muon")
        self.refused(["'AutoContrast' is not supported yet", "doc/layers.md"], "model.0=AutoContrast")
        self.refused(["'StringLookup' is not supported yet", "string_lookup: {vocabulary"], "model.0=StringLookup")

    def test_what_is_spelled_alike_is_not_meant(self):
        """Words that Keras and tf.data have and plim has not: what to write instead, or no neighbour."""
        for change in ("model.0={Dense: {units: 4, input_shape: [5]}}", "model.0={Dense: {units: 4, input_dim: 5}}",
                       "model.0={Dense: {units: 4, batch_input_shape: [8, 5]}}"):
            self.refused(["unknown key", "Input: {shape: ["], change)
        for change in ("model.0=RandomHue", "model.0={RandomShear: 0.1}", "model.0=Quantization", "train.quantization=int8", "train.optimizer=muon",
                       "train.optimizer=Muon", "model.0={Dense: {units: 4, quantization: int8}}", "data.train.pipeline=[map: {x: [random_hue: 0.1]}, batch: 8]",
                       "data.train.pipeline=[map: {x: [random_saturation: 0.1]}, batch: 8]", "quantization=int8"):
            said = self.refused([], change)
            self.assertNotIn("did you mean", said)
            self.assertNotIn("nearest", said)

    def test_an_override_is_the_place_of_its_error(self):
        self.refused(["--set model.0.LSTM.units=3: ", "'LSTM' stands beside 'Dense'"], "model.0.LSTM.units=3")
        self.refused(["--set model.0={Dens: 3}: "], "model.0={Dens: 3}")

    def test_a_missing_pipeline_is_missing(self):
        self.write("job.yaml", JOB.replace(", pipeline: [batch: 8]", ""))
        self.refused(["'pipeline:' is missing"])

    def test_csv_without_index(self):
        self.write("job.yaml", JOB.replace("npy: [x.npy, y.npy]", "csv: {files: t.csv, label: label}"))
        said = self.refused(["'exact' needs data with an index", "buffer_size: 10000"],
                            "data.train.pipeline=[shuffle: exact, batch: 8]")
        self.assertNotIn("data index", said)
        self.refused(["dense: wants", "columns: {x: [age, score], y: label}"])
        self.write("job.yaml", JOB.replace("npy: [x.npy, y.npy]", "csv: {files: t.csv, columns: {x: [age, score], y: label}}"))
        ran = self.run_job("data.train.pipeline=[shuffle: 16, batch: 8]")
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_csv_errors_name_the_line(self):
        with open(self.folder.name + "/t.csv", "a") as f:
            f.write("30,seven,1\n")
        self.write("job.yaml", JOB.replace("npy: [x.npy, y.npy]", "csv: {files: t.csv, columns: {x: [age, score], y: label}, "
                                           "num_rows_for_inference: 8}"))
        self.refused(["line 34, record "], code=3)

    def test_hdf5_is_not_read_or_written_as_weights(self):
        self.write("old.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
        for change in ("model=old.h5", "train.load_weights=old.h5"):
            self.refused(["old.h5: an HDF5 file", ".keras", "safetensors"], change)
        for name in ("w.weights.h5", "w.keras"):
            self.refused(["only safetensors is written", "weights.safetensors"], "train.save_weights=" + name)
            self.assertFalse(os.path.exists(os.path.join(self.folder.name, name)))

    def test_a_folder_without_classes(self):
        os.mkdir(self.folder.name + "/photos")
        self.write("photos/1.jpg", b"")
        self.write("job.yaml", JOB.replace("npy: [x.npy, y.npy]", "images: photos"))
        self.refused(["no sub-folders: each of them is a class", "cat"], code=3)

    def test_the_budgets_differ_in_what_is_said(self):
        if "SANITIZED" in os.environ:
            self.skipTest("no memory figure means anything")
        said = self.run_job("memory=6MiB").stderr  # enough to plan in
        least = int(said.split("--memory ")[1].split("KiB")[0])
        runs = (self.run_job(f"memory={least - less}KiB") for less in range(4, least // 50, 4))
        said = next(ran.stderr for ran in runs if ran.returncode == 4)  # just below what works
        needs, states = said.split("the budget is ")
        self.assertNotEqual(needs.split("needs ")[1].split(",")[0], states.split(" (")[0])

    def test_nan_has_no_sign(self):
        ran = self.run_job("data.train.npy=[nan.npy, y.npy]")
        self.assertIn("loss: nan", ran.stdout)
        self.assertNotIn("-nan", ran.stdout)

    def test_the_note_of_an_earlier_run_comes_once(self):
        self.assertEqual(self.run_job().returncode, 0)
        npy(self.folder.name + "/y.npy", "<i4", (32,), struct.pack("<32i", *[9] * 32))
        ran = self.run_job()
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertEqual((ran.stdout + ran.stderr).count("of an earlier run is kept"), 1, ran.stdout + ran.stderr)

    def test_the_graphs_of_the_documents_train(self):
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        pixels, labels = 8 * 32 * 32, [i % 10 for i in range(8)]
        npy(self.folder.name + "/p.npy", "<f4", (8, 32, 32, 1), struct.pack(f"<{pixels}f", *(i % 2 for i in range(pixels))))
        npy(self.folder.name + "/c.npy", "<i4", (8,), struct.pack("<8i", *labels))
        for page, begin, label, loss in (("doc/layers.md", "  - Input: {shape: [32, 32, 1]", "p.npy", "binary_crossentropy"),
                                         ("doc/models.md", "  - Conv2D: {filters: 16", "c.npy", "sparse_categorical_crossentropy")):
            with open(os.path.join(root, page), encoding="utf-8") as f:
                text = f.read()
            model = text[text.index(begin):]
            model = model[:model.index("```")]
            self.write("graph.yaml", "memory: %s\ndata:\n  train: {npy: [p.npy, %s], pipeline: [batch: 4]}\nmodel:\n%s"
                       "train: {optimizer: adam, loss: %s}\n" % (MEMORY, label, model, loss))
            ran = self.run_job(job="graph.yaml")
            self.assertEqual(ran.returncode, 0, page + ": " + ran.stderr)

    def test_class_numbers_want_the_sparse_loss(self):
        self.refused(["categorical_crossentropy", "sparse_categorical_crossentropy"], "train.loss=categorical_crossentropy")


if __name__ == "__main__":
    unittest.main()
