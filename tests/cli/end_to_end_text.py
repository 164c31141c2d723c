"""end_to_end_text.py PLIM [TEST...] - models trained on texts and on computed columns, chosen by name."""
import json, os, random, struct, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
SANITIZED = "SANITIZED" in os.environ  # no memory figure means anything then
MEMORY = "16GiB" if SANITIZED else "32MiB"

GOOD, BAD, REST = "fine great good lovely best".split(), "bad awful worst poor dull".split(), "the a ship film was".split()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + crc32c(length) + data + crc32c(data)


def field(number, data):
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def example(text, label):
    entries = (("text", field(1, field(1, text.encode()))), ("label", field(3, bytes([0x08, label]))))
    return field(1, b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in entries))


def texts(count, seed):
    generator = random.Random(seed)
    for _ in range(count):
        label = generator.randrange(2)
        words = generator.choices(GOOD if label else BAD, k=2) + generator.choices(REST, k=3)
        generator.shuffle(words)
        yield " ".join(words).capitalize() + generator.choice([".", "!", ""]), label


JOB = """memory: %s
seed: 7
data:
  train:
    tfrecord: {files: train.tfrecord, features: {text: string, label: int64}%s}
    pipeline:
      - shuffle: {buffer_size: 200}
      - map: {text: [%s], length: "len(text)"}
      - inputs: [text]
        label: label
      - batch: 16
      - prefetch: auto
model: [Dense: {units: 8, activation: relu}, Dense: {units: 1, activation: sigmoid}]
train: {optimizer: {adam: {learning_rate: 0.02}}, loss: binary_crossentropy, metrics: [accuracy], epochs: 4}
"""
MULTI_HOT = "text_vectorization: {vocabulary: words/list.txt, output_mode: multi_hot, dtype: float32}"
COUNTED = "lower, split, string_lookup: {vocabulary: [%s], output_mode: count}" % ", ".join(GOOD + BAD)


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("words"))
        with open(self.path("words/list.txt"), "w") as f:
            f.write("\n".join(GOOD + BAD + REST) + "\n")
        with open(self.path("train.tfrecord"), "wb") as f:
            for text, label in texts(600, 1):
                f.write(record(example(text, label)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def plim(self, *arguments, code=0):
        r = subprocess.run([PLIM, *arguments], capture_output=True, text=True, cwd="/", timeout=280)
        self.assertEqual(r.returncode, code, f"plim {' '.join(arguments)}\n{r.stdout}{r.stderr}")
        return r

    def job(self, text, name="job.yaml"):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def train(self, text, *arguments):
        r = self.plim("train", self.job(text), "--json", "--digest", *arguments)
        events = [json.loads(line) for line in r.stdout.splitlines()]
        return [e for e in events if e["event"] == "epoch"][-1], events[-1]

    def test_learns_from_texts(self):
        for words in (MULTI_HOT, COUNTED):
            epoch, end = self.train(JOB % (MEMORY, "", words))
            self.assertGreater(epoch["accuracy"], 0.97)
            if not SANITIZED:
                self.assertLessEqual(end["peak_rss_bytes"], end["predicted_peak_bytes"])

    def test_same_bits_with_any_number_of_workers(self):
        ends = [self.train(JOB % (MEMORY, "", MULTI_HOT), "--threads", f"compute=1,data={n}")[1] for n in (0, 1, 3)]
        self.assertEqual(len({(e["weights_digest"], e["optimizer_digest"]) for e in ends}), 1)

    def test_expressions_over_columns(self):
        job = """memory: %s
data:
  train:
    random: {elements: 2000, shape: [4], classes: 2, seed: 3}
    pipeline:
      - map: {x: "(x - 0.5) * 4", target: "where(x[0] + x[1] > 1, 1, 0)"}
      - {inputs: [x], label: target}
      - batch: 20
model: [Dense: {units: 8, activation: relu}, Dense: {units: 1, activation: sigmoid}]
train: {optimizer: {adam: {learning_rate: 0.02}}, loss: binary_crossentropy, metrics: [accuracy], epochs: 6}
"""
        epoch, _ = self.train(job % MEMORY)
        self.assertGreater(epoch["accuracy"], 0.95)

    def test_errors_have_a_place(self):
        job = JOB % (MEMORY, "", MULTI_HOT.replace("words/list.txt", "words/lost.txt"))
        self.assertIn(":8:", self.plim("train", self.job(job), code=3).stderr)
        job = JOB.replace("len(text)", "len(txet)") % (MEMORY, "", MULTI_HOT)
        self.assertRegex(self.plim("train", self.job(job), code=2).stderr, r"job.yaml:8:\d+: .*character 5.*'text'")
        job = (JOB % (MEMORY, "", MULTI_HOT)).replace("inputs: [text]", "inputs: [txt]")
        self.assertIn("'text'", self.plim("train", self.job(job), code=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
