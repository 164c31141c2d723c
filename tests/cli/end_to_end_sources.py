"""end_to_end_sources.py PLIM [TEST...] - models trained from CSV, from tar files of images, from npz and from raw records."""
import io, json, os, random, struct, subprocess, sys, tarfile, tempfile, unittest, zipfile, zlib

PLIM = os.path.abspath(sys.argv.pop(1))
SANITIZED = "SANITIZED" in os.environ  # no memory figure means anything then
MEMORY = "16GiB" if SANITIZED else "32MiB"

JOB = """memory: %s
seed: 7
data:
  train:
    %s
    pipeline: %s
model: [%s]
train: {optimizer: {adam: {learning_rate: 0.02}}, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 4}
"""
DENSE = "Dense: {units: 8, activation: relu}, Dense: {units: 2, activation: softmax}"


def png(size, shade):
    """A grey square."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes([shade] * size)) * size
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def npy(code, shape, data):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


class Sources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(folder.cleanup)
        self.folder, generator = folder.name, random.Random(5)
        self.rows = [[generator.uniform(-1, 1) for _ in range(3)] for _ in range(400)]
        self.labels = [int(a + b > 0) for a, b, _ in self.rows]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def train(self, source, pipeline, model, *arguments):
        self.write("job.yaml", (JOB % (MEMORY, source, pipeline, model)).encode())
        r = subprocess.run([PLIM, "train", self.path("job.yaml"), "--json", "--digest", *arguments],
                           capture_output=True, text=True, cwd="/", timeout=200)
        self.assertEqual(r.returncode, 0, f"{source}\n{r.stdout}{r.stderr}")
        events = [json.loads(line) for line in r.stdout.splitlines()]
        return [e for e in events if e["event"] == "epoch"][-1], events[-1]

    def learns(self, source, pipeline, model=DENSE):
        ends = []
        for threads in (0, 2):
            epoch, end = self.train(source, pipeline, model, "--threads", f"compute=1,data={threads}")
            self.assertGreater(epoch["accuracy"], 0.9)
            if not SANITIZED:
                self.assertLessEqual(end["peak_rss_bytes"], end["predicted_peak_bytes"])
            ends.append((end["weights_digest"], end["optimizer_digest"]))
        self.assertEqual(ends[0], ends[1])  # the same bits with any number of workers

    def csv(self, name, part):
        lines = ["%.4f;%.4f;%.4f;%d" % (*self.rows[i], self.labels[i]) for i in part]
        self.write(name, "\n".join(["a;b;c;label", *lines]).encode())

    def test_csv(self):
        self.csv("train-0.csv", range(0, 250))
        self.csv("train-1.csv", range(250, 400))
        self.learns("csv: {files: 'train-*.csv', field_delim: ';', columns: {x: [a..c], y: label}, interleave: auto}",
                    "[shuffle: {buffer_size: 100}, batch: 16, prefetch: auto]")

    def test_tar_of_images(self):
        for shard in range(3):
            with tarfile.open(self.path(f"set-{shard:06}.tar"), "w") as tar:
                for i in range(shard, 90, 3):
                    label = i % 7 % 2
                    for name, data in ((f"{i:04}.png", png(8, 200 if label else 40)), (f"{i:04}.cls", b"%d" % label)):
                        info = tarfile.TarInfo(name)
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
        self.learns("tar: {files: 'set-{000000..000002}.tar', columns: {png: image, cls: label}, shuffle_files: true}",
                    "[map: {image: [decode_png: 1, resize: [4, 4], rescale: 1/255]}, shuffle: {buffer_size: 30}, batch: 9]",
                    "Flatten, " + DENSE)

    def test_npz(self):
        x = npy("<f4", (400, 3), b"".join(struct.pack("<3f", *row) for row in self.rows))
        y = npy("<i8", (400,), b"".join(struct.pack("<q", label) for label in self.labels))
        for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.path("set.npz"), "w", kind) as z:
                z.writestr("x.npy", x)
                z.writestr("y.npy", y)
            self.learns("npz: set.npz", "[shuffle: exact, batch: 16]")

    def test_raw_records(self):
        self.write("set.bin", b"".join(struct.pack("<4f", *row, label) for row, label in zip(self.rows, self.labels)))
        self.learns("fixed_length: {files: set.bin, record_bytes: 16}",
                    "[shuffle: exact, map: [decode_raw: {out_type: float32, shape: [4]}], "
                    "map: {x: 'record * 1', y: 'record[3]'}, {inputs: [x], label: y}, batch: 16]")


if __name__ == "__main__":
    unittest.main(verbosity=2)
