"""end_to_end_states.py PLIM [TEST...] - layers that carry something from batch to batch: the same bits at any budget, on any number of
threads, stopped or killed and resumed; batches of another size are refused."""
import json, os, signal, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
SANITIZED = "SANITIZED" in os.environ  # no memory figure means anything then

TRAIN = "train: {optimizer: adam, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 3}\n"
STATEFUL = """memory: %s
seed: 7
data:
  train: {random: {elements: 960, shape: [12, 6], classes: 3, seed: 1}, pipeline: [shuffle: exact, batch: {size: 24, drop_remainder: true}]}
  validation: {random: {elements: 240, shape: [12, 6], classes: 3, seed: 2}, pipeline: [batch: {size: 24, drop_remainder: true}]}
model:
  - Bidirectional: {layer: {GRU: {units: 9, return_sequences: true, stateful: true}}}
  - LSTM: {units: 17, stateful: true, recurrent_dropout: 0.2}
  - Dense: {units: 3, activation: softmax}
""" % ("16GiB" if SANITIZED else "64MiB") + TRAIN
PICTURES = """memory: %s
seed: 7
data:
  train: {random: {elements: 96, shape: [7, 10, 9, 2], classes: 3, seed: 1}, pipeline: [batch: {size: 16, drop_remainder: true}]}
  validation: {random: {elements: 32, shape: [7, 10, 9, 2], classes: 3, seed: 2}, pipeline: [batch: {size: 16, drop_remainder: true}]}
model:
  - ConvLSTM2D: {filters: 6, kernel_size: 3, padding: same, return_sequences: true, dropout: 0.1, recurrent_dropout: 0.1}
  - ConvLSTM2D: {filters: 5, kernel_size: 3, strides: 2, stateful: true}
  - SpectralNormalization: {layer: {Conv2D: {filters: 8, kernel_size: 3, activation: relu}}, power_iterations: 2}
  - Flatten
  - SpectralNormalization: {layer: {Dense: 3}}
  - Softmax
""" % ("16GiB" if SANITIZED else "128MiB") + TRAIN


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(self.folder.cleanup)

    def job(self, text):
        path = os.path.join(self.folder.name, "job.yaml")
        with open(path, "w") as f:
            f.write(text)
        return path

    def plim(self, *arguments, code=0):
        r = subprocess.run([PLIM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder.name, timeout=280)
        self.assertEqual(r.returncode, code, f"plim {' '.join(map(str, arguments))}\n{r.stderr}")
        return r

    def train(self, job, *arguments):
        """What came out of it: digests, and the figures of the last epoch; then the event of the end."""
        events = [json.loads(line) for line in self.plim("train", job, "--json", "--digest", *arguments).stdout.splitlines()]
        end, epoch = events[-1], [e for e in events if e["event"] == "epoch"][-1]
        return (end["weights_digest"], end["optimizer_digest"], epoch["loss"], epoch["val_loss"]), end

    def stop_at(self, job, folder, step, sent):
        p = subprocess.Popen([PLIM, "train", job, "--json=steps", "--checkpoint", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        steps = 0
        for line in p.stdout:
            steps += '"event":"step"' in line
            if '"event":"step"' in line and steps == step:
                p.send_signal(sent)
        p.stdout.close()
        return p.wait()


class States(Case):
    def equal_everywhere(self, text):
        job = self.job(text)
        want, _ = self.train(job, "--threads", 1)
        smallest = next(json.loads(line) for line in self.plim("plan", job, "--json").stdout.splitlines())["smallest_budget_bytes"]
        for threads in (2, 4):
            got, end = self.train(job, "--threads", threads)
            self.assertEqual(got, want, f"{threads} threads")
            predicted, measured = end["predicted_peak_bytes"], end["peak_rss_bytes"]
            if not SANITIZED:
                self.assertLessEqual(measured, predicted)
                self.assertLessEqual(predicted - measured, 4 * MIB)
        if not SANITIZED:
            self.assertEqual(self.train(job, "--memory", smallest)[0], want, "the smallest budget")

    def test_same_bits(self):
        self.equal_everywhere(STATEFUL)

    def test_same_bits_of_pictures(self):
        self.equal_everywhere(PICTURES)

    def resumes(self, text, points):
        job = self.job(text)
        want, _ = self.train(job, "--checkpoint", os.path.join(self.folder.name, "whole"))
        for i, (step, sent) in enumerate(points):
            folder = os.path.join(self.folder.name, f"c{i}")
            code = self.stop_at(job, folder, step, sent)
            self.assertIn(code, (0, 7) if sent == signal.SIGTERM else (0, -signal.SIGKILL))
            got = self.train(job, "--checkpoint", folder, "--resume", "--threads", 1 + i % 2)[0] if code else None
            self.assertIn(got, (want, None), f"stopped at step {step}")

    def test_stopped_and_resumed(self):
        """At the end of an epoch the signal comes in the middle of validation, which moves the states too: it is done again from before it."""
        self.resumes(STATEFUL, [(step, signal.SIGTERM) for step in (1, 17, 39, 40, 41, 79, 80, 80, 80, 81, 100, 119)])

    def test_killed_and_resumed(self):
        text = STATEFUL.replace("epochs: 3", "epochs: 3, callbacks: [checkpoint: {every: 7}]")
        self.resumes(text, [(step, signal.SIGKILL) for step in (9, 30, 40, 41, 60, 80, 81, 110)])

    def test_pictures_stopped_and_resumed(self):
        self.resumes(PICTURES, [(step, signal.SIGTERM) for step in (1, 5, 6, 7, 12, 14)])

    def test_the_states_matter(self):
        job = self.job(STATEFUL)
        with_states = self.train(job)[0]
        without = self.train(self.job(STATEFUL.replace("stateful: true", "stateful: false")))[0]
        self.assertNotEqual(with_states[0], without[0])

    def test_weights_go_without_states(self):
        """A file of weights has none; a checkpoint's are passed over, in a model of another batch and in one without them."""
        job = self.job(STATEFUL.replace("epochs: 3", "epochs: 1, save_weights: w.safetensors"))
        self.plim("train", job, "--checkpoint", "c")
        with open(os.path.join(self.folder.name, "w.safetensors"), "rb") as f:
            self.assertNotIn(b"rnn_state", f.read())
        for old, new in (("size: 24", "size: 12"), ("stateful: true", "stateful: false")):
            text = STATEFUL.replace(old, new).replace("epochs: 3", "epochs: 1, load_weights: c/checkpoint.safetensors")
            self.plim("train", self.job(text))

    def test_refused(self):
        short = "a stateful layer takes batches of 24 samples, the last of train has 8"
        for old, new, code, message in (
                ("elements: 960", "elements: 200", 0, ""),
                ("elements: 960, shape: [12, 6], classes: 3, seed: 1}, pipeline: [shuffle: exact, batch: {size: 24, drop_remainder: true}]",
                 "elements: 200, shape: [12, 6], classes: 3, seed: 1}, pipeline: [batch: 24]", 2, short),
                ("elements: 240, shape: [12, 6], classes: 3, seed: 2}, pipeline: [batch: {size: 24, drop_remainder: true}]",
                 "elements: 240, shape: [12, 6], classes: 3, seed: 2}, pipeline: [batch: {size: 20, drop_remainder: true}]", 2,
                 "a stateful layer takes batches of 24 samples, those of validation have 20"),
                ("elements: 240, shape: [12, 6], classes: 3, seed: 2}, pipeline: [batch: {size: 24, drop_remainder: true}]",
                 "elements: 250, shape: [12, 6], classes: 3, seed: 2}, pipeline: [batch: 24]", 2,
                 "a stateful layer takes batches of 24 samples, the last of validation has 10"),
                ("stateful: true, rec", "stateful: maybe, rec", 2, "stateful")):
            self.assertIn(old, STATEFUL)
            r = self.plim("train", self.job(STATEFUL.replace(old, new)), code=code)
            self.assertIn(message, r.stderr)
            self.assertEqual(len(r.stderr.strip().splitlines()) if code else 1, 1, r.stderr)
            self.assertIn("drop_remainder: true" if "takes" in message else "", r.stderr)
        fewer = STATEFUL.replace("elements: 960", "elements: 200").replace("batch: {size: 24, drop_remainder: true}", "batch: 24", 1)
        self.plim("train", self.job(fewer.replace("epochs: 3", "epochs: 3, steps_per_epoch: 8")))

    def test_the_largest_batch(self):
        """Both splits take it, so the search plans both with it: it is as large as without states, or nearly so."""
        largest = []
        for text in (STATEFUL, STATEFUL.replace("stateful: true", "stateful: false")):
            events = [json.loads(line) for line in self.plim("plan", self.job(text), "--json").stdout.splitlines()]
            largest.append([e for e in events if e["event"] == "plan"][-1]["largest_batch"])
        self.assertGreater(largest[0], 24)
        self.assertGreaterEqual(largest[0], 0.9 * largest[1])

    def test_refused_when_it_comes(self):
        """How many are left nobody knows before they have been read."""
        text = STATEFUL.replace("shuffle: exact, batch: {size: 24, drop_remainder: true}", "filter: 'y < 2', batch: 24")
        r = self.plim("train", self.job(text), code=3)
        self.assertIn("a stateful layer takes batches of 24 samples, this one has", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
