"""end_to_end_keep.py PLIM [TEST...] - what is kept and what is told: checkpoints know their data and give way to none of fewer steps; notes
and digests reach whoever reads; an error about an element names its file, the record in that file, and the byte."""
import glob, json, os, struct, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
MEMORY = "16GiB" if "SANITIZED" in os.environ else "64MiB"

JOB = """memory: %s
seed: 7
data:
  train: {%%s, pipeline: [%%s]}
%%smodel: [Dense: {units: 3, activation: softmax}]
train: {optimizer: %%s, loss: sparse_categorical_crossentropy, epochs: %%s, callbacks: [checkpoint: {every: 3}]}
""" % MEMORY


def npy(values, kind, width=0):
    """Rows of float32 (width numbers each) or int64 as an npy file's bytes."""
    shape = f"({len(values) // width}, {width})" if width else f"({len(values)},)"
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % ({"f": "<f4", "q": "<i8"}[kind], shape)
    head += " " * (-(11 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{kind}", *values)


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", crc32c(head)) + data + struct.pack("<I", crc32c(data))


def example(x, y):
    """A tf.train.Example of x: floats, y: an int64."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    floats = field(2, field(1, struct.pack(f"<{len(x)}f", *x)))
    number = field(3, field(1, bytes([y])))
    return field(1, field(1, field(1, b"x") + field(2, floats)) + field(1, field(1, b"y") + field(2, number)))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def job(self, source, pipeline="batch: 4", validation="", optimizer="sgd", epochs=2):
        if validation:
            validation = f"  validation: {{{validation}, pipeline: [batch: 4]}}\n"
        return self.write("job.yaml", JOB % (source, pipeline, validation, optimizer, epochs))

    def plim(self, *arguments, code=0):
        r = subprocess.run([PLIM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, timeout=280)
        self.assertEqual(r.returncode, code, f"plim {' '.join(map(str, arguments))}\n{r.stdout}{r.stderr}")
        return r

    def train(self, job, *arguments, code=0):
        r = self.plim("train", job, "--json", "--checkpoint", "c", *arguments, code=code)
        return [json.loads(line) for line in r.stdout.splitlines()]


class Keep(Case):
    def data(self, name, shift=0, rows=40, folder="d"):
        self.write(f"{folder}/{name}x.npy", npy([(i * 7 + shift) % 11 / 11 for i in range(rows * 5)], "f", 5))
        self.write(f"{folder}/{name}y.npy", npy([(i + shift) % 3 for i in range(rows)], "q"))
        return f"npy: [{folder}/{name}x.npy, {folder}/{name}y.npy]"

    def refused(self, job, *words):
        error = self.train(job, "--resume", "--set", "train.epochs=4", code=3)[-1]
        self.assertEqual((error["event"], error["code"]), ("error", "BAD_DATA"))
        for word in words:
            self.assertIn(word, error["message"])
        self.assertIn("--data-changed", error["try"])

    def goes_on(self, job, *arguments):
        events = self.train(job, "--resume", "--set", "train.epochs=4", *arguments)
        self.assertEqual(events[-1]["status"], "done")
        return events

    def test_other_content_is_refused(self):
        """Of the same names, sizes and times."""
        job = self.job(self.data("t"))
        self.train(job)
        before = os.stat(self.path("d/tx.npy"))
        self.data("t", shift=1)
        os.utime(self.path("d/tx.npy"), ns=(before.st_atime_ns, before.st_mtime_ns))
        self.refused(job, "training data", "2 files", "tx.npy")
        notes = " ".join(self.goes_on(job, "--data-changed")[1]["notes"])
        self.assertIn("not what the checkpoint was made with", notes)
        events = self.train(job, "--resume", "--set", "train.epochs=5")
        self.assertNotIn("notes", events[1], "from then on this data is the checkpoint's")

    def test_another_vocabulary_is_refused(self):
        """A file that a function of map: reads is data, too."""
        self.write("d/t.csv", "w,y\n" + "".join(f"{'abc'[i % 3]},{i % 3}\n" for i in range(40)))
        self.write("d/v.txt", "a\nb\nc\n")
        job = self.job("csv: {files: d/t.csv, label: y}", "map: {w: [string_lookup: {vocabulary: d/v.txt, output_mode: one_hot}]}, batch: 4")
        self.train(job)
        self.goes_on(job)
        self.write("d/v.txt", "b\na\nc\n")
        self.refused(job, "training data", "its content differs, in its files or in a vocabulary or merges")

    def test_other_sizes_are_refused(self):
        job = self.job(self.data("t"))
        self.train(job)
        self.data("t", rows=44)
        self.refused(job, "40", "44")
        self.goes_on(job, "--data-changed")

    def test_validation_data_too(self):
        job = self.job(self.data("t"), validation=self.data("v"))
        self.train(job)
        self.data("v", shift=1)
        self.refused(job, "validation data")

    def test_moved_and_touched_files_go_on(self):
        job = self.job(self.data("t"), validation=self.data("v"))
        want = self.train(job, "--set", "train.epochs=4", "--digest", "--checkpoint", "whole")[-1]["weights_digest"]
        self.train(job)
        os.rename(self.path("d"), self.path("elsewhere"))
        for name in glob.glob(self.path("elsewhere/*")):
            os.utime(name, (1, 1))
        with open(job) as f:
            text = f.read()
        self.write("job.yaml", text.replace("d/", "elsewhere/"))
        events = self.goes_on(job, "--digest")
        self.assertEqual(events[-1]["weights_digest"], want)
        self.assertNotIn("note", events[-1])

    def test_many_files(self):
        """One of many whose content alone changed, where samples look: the first and the last always are."""
        for count in (3, 40, 200, 1500):
            with self.subTest(files=count):
                for i in range(count):
                    self.write(f"m{count}/{i:05}.tfrecord", record(example([i / count] * 5, i % 3)))
                job = self.job(f"tfrecord: {{files: 'm{count}/*.tfrecord', features: {{x: 'float32[5]', y: int64}}}}", "batch: 4, take: 20")
                self.train(job, "--checkpoint", f"c{count}")
                for changed in (0, count - 1):
                    self.write(f"m{count}/{changed:05}.tfrecord", record(example([changed / count] * 5, (changed + 1) % 3)))
                    error = self.train(job, "--checkpoint", f"c{count}", "--resume", code=3)[-1]
                    self.assertIn("training data", error["message"])
                    self.write(f"m{count}/{changed:05}.tfrecord", record(example([changed / count] * 5, changed % 3)))
                self.train(job, "--checkpoint", f"c{count}", "--resume")

    def test_words_of_sources_without_files(self):
        """Another command, another seed inside sources of sources: another job."""
        inside = "concatenate: [{random: {elements: 8, shape: [5], classes: 3, seed: 1}}, {random: {elements: 8, shape: [5], classes: 3, seed: %d}}]"
        self.train(self.job(inside % 2))
        error = self.train(self.job(inside % 3), "--resume", code=3)[-1]
        self.assertIn("of another job", error["message"])
        self.write("r", b"".join(record(example([i / 9] * 5, i % 3)) for i in range(8)))
        command = "command: {run: 'cat r%s', features: {x: 'float32[5]', y: int64}}"
        self.train(self.job(command % ""), "--checkpoint", "e")
        error = self.train(self.job(command % " r"), "--checkpoint", "e", "--resume", code=3)[-1]
        self.assertIn("of another job", error["message"])

    def test_words_of_sources_with_files(self):
        """All but where the files lie and what changes speed alone."""
        for i in range(3):
            self.write(f"m/{i}.tfrecord", b"".join(record(example([(i + k) / 9] * 5, k % 3)) for k in range(8)))
            self.write(f"n/{i}.tfrecord", b"".join(record(example([(i + k) / 9] * 5, k % 3)) for k in range(8)))
        words = "tfrecord: {files: '%s/*.tfrecord', features: {x: 'float32[5]', y: int64}%s}"
        turns = ", interleave: {cycle_length: 3, block_length: %d%s}"
        self.train(self.job(words % ("m", turns % (2, ""))))
        for other in ("", turns % (1, ""), turns % (2, "") + ", shuffle_files: true"):
            with self.subTest(other):
                error = self.train(self.job(words % ("m", other)), "--resume", code=3)[-1]
                self.assertIn("of another job", error["message"])
        job = self.job(words % ("n", turns % (2, ", num_parallel_calls: 2")), epochs=3)
        self.assertEqual(self.train(job, "--resume")[-1]["status"], "done")
        self.write("d/t.csv", "a,b,a1,b1,c,y\n" + "".join(f"{i % 5},{i % 7},1,2,{i % 2},{i % 3}\n" for i in range(40)))
        words = "csv: {files: d/t.csv%s}"
        columns = ", columns: {x: [a, b, a1, b1, c], y: y}"
        self.train(self.job(words % columns), "--checkpoint", "e")
        for other in (columns.replace("a, b", "b, a"), columns + ", na_value: '?'", columns + ", types: {y: int64}"):
            with self.subTest(other):
                error = self.train(self.job(words % other), "--checkpoint", "e", "--resume", code=3)[-1]
                self.assertIn("of another job", error["message"])
        self.train(self.job(words % (", buffer_size: 1MiB" + columns), epochs=3), "--checkpoint", "e", "--resume")

    def kept(self):
        return sorted(os.path.basename(p) for p in glob.glob(self.path("c/checkpoint*")))

    def steps_in(self, name):
        with open(self.path("c/" + name), "rb") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            return int(json.loads(f.read(size))["__metadata__"]["total_steps"])

    def test_more_steps_are_kept_aside(self):
        """A long run, a second start by mistake, and a third one: the long run is there still, and every start says so."""
        job = self.job(self.data("t"), epochs=10)
        self.train(job)
        older, notes = "checkpoint.older.safetensors", []
        for epochs in (1, 2, 1):
            events = self.train(job, "--set", f"train.epochs={epochs}")
            notes.append(" ".join(events[1]["notes"]))
            self.assertIn(older, notes[-1])
        self.assertEqual(self.steps_in(older), 20)
        self.assertEqual(self.steps_in("checkpoint.kept-100.safetensors"), 100)
        self.assertEqual([("checkpoint.kept-100" in note) for note in notes], [False, True, False])
        os.replace(self.path("c/checkpoint.kept-100.safetensors"), self.path("c/checkpoint.safetensors"))
        self.assertEqual(self.train(job, "--resume")[-1]["steps"], 0, "all its epochs are done")

    def test_the_note_is_printed_too(self):
        job = self.job(self.data("t"), epochs=3)
        for epochs in (3, 1, 1):
            r = self.plim("train", job, "--checkpoint", "c", "--set", f"train.epochs={epochs}")
        self.assertIn("note: ", r.stdout)
        self.assertIn("the one of 30 steps that had this name as checkpoint.kept-30.safetensors", r.stdout)

    def test_a_bounded_number_is_kept(self):
        """Eight: the one that a start has set aside, which its note names, and those of most steps."""
        job = self.job(self.data("t"))
        for epochs in range(30, 18, -1):
            events = self.train(job, "--set", f"train.epochs={epochs}", "--set", "train.callbacks=[]")
            for word in " ".join(events[1].get("notes", [])).split():
                if word.startswith("checkpoint.kept-"):
                    self.assertIn(word, self.kept())
        steps = sorted(int(name.split("-")[1].split(".")[0]) for name in self.kept() if "kept" in name)
        self.assertEqual(steps, [210] + [10 * epochs for epochs in range(24, 31)])

    def test_names_that_were_not_given_here(self):
        """Files that only look like kept ones are not counted, not removed, and no reason to search for ever."""
        job = self.job(self.data("t"), epochs=3)
        self.train(job)
        self.train(job, "--set", "train.epochs=1")
        odd = [f"checkpoint.kept-0{i}.safetensors" for i in range(1, 10)] + ["checkpoint.kept-99999999999999999999.safetensors",
               "checkpoint.kept-5-1.safetensors", "checkpoint.kept-unknown-1.safetensors", "checkpoint.kept-.safetensors"]
        for name in odd:
            self.write("c/" + name, "x")
        self.train(job, "--set", "train.epochs=1")
        self.assertLessEqual(set(odd) | {"checkpoint.kept-30.safetensors"}, set(self.kept()))

    def test_runs_of_equal_steps_are_kept_both(self):
        job = self.job(self.data("t"), epochs=3)
        for epochs in (3, 1, 3, 1, 1):
            events = self.train(job, "--set", f"train.epochs={epochs}")
        self.assertIn("checkpoint.kept-30-2.safetensors", " ".join(events[1]["notes"]))
        self.assertEqual([self.steps_in(f"checkpoint.kept-30{copy}.safetensors") for copy in ("", "-2")], [30, 30])

    def flip(self, name):
        """One bit of the last tensor or of the seal: the header stays as it is."""
        with open(self.path("c/" + name), "r+b") as f:
            f.seek(-40, os.SEEK_END)
            byte = f.read(1)[0]
            f.seek(-40, os.SEEK_END)
            f.write(bytes([byte ^ 1]))

    def test_a_damaged_one_takes_no_whole_ones_place(self):
        job = self.job(self.data("t"), epochs=2)
        self.train(job)
        previous = self.steps_in("checkpoint.previous.safetensors")
        self.flip("checkpoint.safetensors")
        self.train(job, "--set", "train.epochs=1")
        older = "checkpoint.older.safetensors"
        self.assertEqual(self.steps_in(older), previous)
        os.remove(self.path("c/checkpoint.previous.safetensors"))
        self.flip("checkpoint.safetensors")  # of 10 steps; `older`, which is whole, has more or as many and stays
        self.train(job, "--set", "train.epochs=1")
        os.replace(self.path("c/" + next(n for n in self.kept() if "kept" in n or n == older and self.steps_in(n) == previous)),
                   self.path("c/checkpoint.safetensors"))
        self.assertEqual(self.train(job, "--resume")[-1]["status"], "done")

    def test_a_damaged_one_of_more_steps_does_not_replace_older(self):
        job = self.job(self.data("t"), epochs=3)
        self.train(job, "--set", "train.epochs=1")
        self.train(job)  # `older` has 10 steps
        os.remove(self.path("c/checkpoint.previous.safetensors"))
        self.flip("checkpoint.safetensors")
        self.train(job)
        self.assertEqual(self.steps_in("checkpoint.older.safetensors"), 10)

    def test_a_shorter_epoch_ends(self):
        """The checkpoint is at a step that the data does not have any more."""
        job = self.job(self.data("t", rows=400), epochs=3)
        stop = subprocess.Popen([PLIM, "train", job, "--json=steps", "--checkpoint", "c", "--set", "train.epochs=4000"],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in stop.stdout:
            event = json.loads(line)
            if event.get("event") == "step" and event["step"] == 60:
                stop.terminate()
                break
        stop.communicate(timeout=280)
        self.assertEqual(stop.returncode, 7)
        epochs = str(event["epoch"] + 2)
        self.data("t", rows=40)
        events = self.train(job, "--resume", "--data-changed", "--set", f"train.epochs={epochs}")
        self.assertIn("the epoch is shorter now: it ends here, at step 10", " ".join(events[1]["notes"]))
        self.assertEqual((events[-1]["status"], events[-1]["steps"]), ("done", 20))

    def test_data_changed_needs_resume(self):
        error = self.train(self.job(self.data("t")), "--data-changed", code=2)[-1]
        self.assertEqual(error["code"], "USAGE")
        self.assertIn("--resume --data-changed", error["try"])

    def test_validation_that_was_added(self):
        train = self.data("t")
        self.train(self.job(train))
        events = self.train(self.job(train, validation=self.data("v")), "--resume", "--set", "train.epochs=4")
        self.assertIn("without validation data, or by an older version", " ".join(events[1]["notes"]))

    def bitmap(self, name, shade):
        self.write(name, b"BM" + struct.pack("<IHHIIiiHHIIiiII", 58, 0, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + bytes([shade] * 4))

    def test_a_file_of_another_class(self):
        """Moved from the end of one class to the start of the next it keeps its place in the order."""
        for i in range(12):
            self.bitmap(f"p/{'abc'[i // 4]}/{i:02}.bmp", 20 * i)
        job = self.job("images: p", "map: [decode_bmp: 3, resize: [1, 1], rescale: 1/255, reshape: [3]], batch: 4")
        self.train(job)
        self.goes_on(job)
        os.rename(self.path("p/a/03.bmp"), self.path("p/b/03.bmp"))
        error = self.train(job, "--resume", "--set", "train.epochs=5", code=3)[-1]
        self.assertIn("its content differs", error["message"])

    def test_sizes_of_all_files(self):
        for i in range(1500):
            self.write(f"m/{i:05}.tfrecord", record(example([i / 1500] * 5, i % 3)))
        job = self.job("tfrecord: {files: 'm/*.tfrecord', features: {x: 'float32[5]', y: int64}}", "batch: 4, take: 20")
        self.train(job)
        self.write("m/00003.tfrecord", 2 * record(example([0.5] * 5, 1)))
        self.assertIn("training data", self.train(job, "--resume", code=3)[-1]["message"])

    def test_a_long_path_is_cut_between_characters(self):
        """Its end is shown, behind three dots."""
        job, parts = self.job(self.data("t")), ["\u00e9" * 120, "x" + "\u00e9" * 120]
        folder = os.path.join(*parts)
        for arguments in (("--resume",), ()):
            r = self.plim("train", job, "--json", "--checkpoint", folder, *arguments)
            notes = " ".join(json.loads(r.stdout.splitlines()[1])["notes"])
            self.assertIn("...\u00e9", notes)
            self.assertIn("\u00e9: starting" if arguments else "\u00e9/checkpoint.older", notes)
            self.assertNotIn("\ufffd", notes)


class Told(Case):
    SOURCE = "random: {elements: 40, shape: [5], classes: 3, seed: 1}"

    def large(self, rows=8):
        """Numbers so large that the loss is nan."""
        self.write("x.npy", npy([3e38] * rows * 5, "f", 5))
        self.write("y.npy", npy([i % 3 for i in range(rows)], "q"))
        return self.job("npy: [x.npy, y.npy]")

    def test_digests_without_json(self):
        job = self.job(self.SOURCE)
        end = self.train(job, "--digest")[-1]
        r = self.plim("train", job, "--checkpoint", "d", "--digest")
        for field in ("weights_digest", "optimizer_digest"):
            self.assertIn(f"{field} {end[field]}\n", r.stdout)
        self.assertNotIn("digest", self.plim("train", job, "--checkpoint", "e").stdout)

    def test_notes_are_in_the_events(self):
        """What the text shows as a note is in a line of --json, once, and all of it in the last."""
        job = self.large()
        for arguments in ((), ("--set", "train.steps_per_epoch=99")):
            text = self.plim("train", job, "--checkpoint", "t", *arguments).stdout
            shown = [line[len("note: "):] for line in text.splitlines() if line.startswith("note: ")]
            events = self.train(job, "--checkpoint", "j", *arguments)
            told = [note for event in events for note in event.get("notes", [])]
            shown = [note.replace("t/checkpoint", "j/checkpoint") for note in shown]
            self.assertTrue(shown)
            self.assertEqual(told, shown)
            for note in shown:
                self.assertIn(note, events[-1]["note"])

    def test_skipped_steps(self):
        """Features beyond float16's range: every step is left out."""
        events = self.train(self.large(), "--set", "train.precision=mixed_float16")
        epochs = [event for event in events if event["event"] == "epoch"]
        self.assertEqual([event["skipped_steps"] for event in epochs], [2, 4])
        self.assertEqual(events[-1]["skipped_steps"], 4)
        self.assertIn("4 of 4 steps changed no weight", events[-1]["note"])
        told = [note for event in events for note in event.get("notes", [])]
        self.assertEqual(sum("changed no weight" in note for note in told), 2, "the second and the fourth; of the first it says nan")
        self.assertEqual(self.train(self.job(self.SOURCE), "--checkpoint", "e")[-1]["skipped_steps"], 0)


class Places(Case):
    FEATURES = "features: {x: 'float32[5]', y: int64}"

    def where(self, source, pipeline, message):
        """The place of the error of a run over this data."""
        for threads in (1, 3):
            error = self.train(self.job(source, pipeline, epochs=1), "--threads", f"compute=1,data={threads}", code=3)[-1]
            self.assertEqual(error["code"], "BAD_DATA")
            self.assertIn(message, error["message"])
        return error["where"]

    def records(self, bad=0):
        """Two files; the element number 10 is the first of the second, and is one float short."""
        good = [example([i / 20] * 5, i % 3) for i in range(20)]
        size = len(record(good[0]))
        self.write("a.tfrecord", b"".join(map(record, good[:10])))
        good[10 + bad] = example([0.5] * 4, 1)
        self.write("b.tfrecord", b"".join(map(record, good[10:])))
        return f"b.tfrecord: record {bad} at byte {bad * size}"

    def test_records_of_two_files(self):
        for bad in (0, 7):
            want = self.records(bad)
            for turns in ("", ", interleave: {cycle_length: 2}", ", interleave: {cycle_length: 2, block_length: 3}", ", shuffle_files: true"):
                source = f"tfrecord: {{files: '*.tfrecord', {self.FEATURES}{turns}}}"
                for pipeline in ("batch: 4", "shuffle: {buffer_size: 8}, batch: 4", "skip: 3, batch: 4", "repeat: 2, batch: 4", "enumerate, select: [x, y], batch: 4"):
                    if "skip" in pipeline and not bad:
                        continue  # it may be among those that are skipped
                    with self.subTest(bad=bad, turns=turns, pipeline=pipeline):
                        self.assertTrue(self.where(source, pipeline, "element").endswith(want))

    def test_records_with_an_index(self):
        want = self.records(7)
        for name in ("a", "b"):
            self.plim("data", "index", f"{name}.tfrecord")
        self.assertTrue(self.where(f"tfrecord: {{files: '*.tfrecord', indexed: true, {self.FEATURES}}}", "shuffle: exact, batch: 4", "element 17").endswith(want))

    def test_damaged_records(self):
        self.records()
        with open(self.path("b.tfrecord"), "r+b") as f:
            f.seek(20)
            f.write(b"\xff")
        where = self.where(f"tfrecord: {{files: '*.tfrecord', {self.FEATURES}}}", "batch: 4", "record 0")
        self.assertIn("b.tfrecord: byte 0", where)

    def test_lines_of_two_files(self):
        self.write("a.txt", "1\n2\n3\n")
        self.write("b.txt", "0\n1\nmany\n")
        for pipeline in ("map: [to_number: int64], shuffle: {buffer_size: 2}, batch: 2", "shuffle: {buffer_size: 6}, map: [to_number: int64], batch: 2"):
            r = self.plim("data", "bench", self.job("text: '*.txt'", pipeline), "--json", code=3)
            error = json.loads(r.stdout.splitlines()[-1])
            self.assertTrue(error["where"].endswith("b.txt: record 2"), error)

    def test_labels_of_files_side_by_side(self):
        self.write("x.npy", npy([0.5] * 40 * 5, "f", 5))
        head = len(npy([0] * 40, "q")) - 40 * 8
        self.write("y.npy", npy([5 if i == 17 else i % 3 for i in range(40)], "q"))
        for pipeline in ("batch: 4", "shuffle: exact, batch: 4", "shuffle: exact, cache, batch: 4"):
            with self.subTest(pipeline=pipeline):
                where = self.where("npy: [x.npy, y.npy]", pipeline, "'y' is 5")
                if "cache" in pipeline:
                    self.assertNotIn("npy", where, "numbered anew: nobody knows")
                else:
                    self.assertTrue(where.endswith(f"y.npy: record 17 at byte {head + 17 * 8}"), where)

    def test_labels_of_joined_sources(self):
        for name, bad in (("a", -1), ("b", 3)):
            self.write(f"{name}x.npy", npy([0.5] * 8 * 5, "f", 5))
            self.write(f"{name}y.npy", npy([5 if i == bad else i % 3 for i in range(8)], "q"))
        where = self.where("concatenate: [{npy: [ax.npy, ay.npy]}, {npy: [bx.npy, by.npy]}]", "shuffle: exact, batch: 4", "element 11")
        self.assertIn("by.npy: record 3 at byte", where)

    def test_csv_of_two_files(self):
        self.write("a.csv", "a,b,c,d,e,y\n" + "1,2,3,4,5,1\n" * 6)
        self.write("b.csv", "a,b,c,d,e,y\n" + "1,2,3,4,5,1\n" * 4 + "1,2,3,4,5,7\n")
        source = "csv: {files: '*.csv', columns: {x: [a, b, c, d, e], y: y}}"
        where = self.where(source, "shuffle: {buffer_size: 4}, batch: 4", "'y' is 7")
        self.assertTrue(where.endswith("b.csv: record 4"), where)
        self.write("b.csv", "a,b,c,d,e,y\n" + "1,2,3,4,5,1\n" * 4 + "1,2,3,4,5\n")
        where = self.where(source, "batch: 4", "record 4")
        self.assertIn("b.csv: byte", where)


if __name__ == "__main__":
    unittest.main()
