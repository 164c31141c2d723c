"""end_to_end.py PLIM [TEST...] - the promises, on the real program: budget, prediction, same bits, resuming, bad input.

Each test is a process or several; figures are the kernel's. Times are never judged here."""
import fcntl, gzip, hashlib, json, os, pty, random, re, signal, struct, subprocess, sys, tempfile, termios, time, unittest, zlib

PLIM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
SANITIZED = "SANITIZED" in os.environ  # no memory figure means anything then

MLP = """memory: 64MiB
seed: 7
data:
  train: {random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}, pipeline: [shuffle: exact, batch: 32, prefetch: auto]}
  validation: {random: {elements: 500, shape: [100], classes: 2, seed: 2, learnable: true}, pipeline: [batch: 32]}
model: [Dense: {units: 64, activation: relu}, Dense: {units: 1, activation: sigmoid}]
train: {optimizer: adam, loss: binary_crossentropy, metrics: [accuracy], epochs: 2}
"""
CNN = """memory: 128MiB
seed: 7
data:
  train: {random: {elements: 150, shape: [64, 64, 3], classes: 10, seed: 1}, pipeline: [shuffle: exact, batch: 32, prefetch: auto]}
model:
  - Conv2D: {filters: 32, kernel_size: 3, activation: relu}
  - MaxPooling2D: 2
  - Conv2D: {filters: 64, kernel_size: 3, activation: relu}
  - MaxPooling2D: 2
  - Flatten
  - Dense: {units: 128, activation: relu}
  - Dense: {units: 10, activation: softmax}
train: {optimizer: adam, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 2}
"""
# Steps that are told are at most a full pipe ahead of who reads them: an epoch here is longer than that.
LONG = MLP.replace("elements: 4000", "elements: 64000")
FASHION = os.path.join(ROOT, "examples", "fashion.yaml")
if SANITIZED:
    MLP, CNN, LONG = (text.replace("memory: ", "memory: 16GiB  # not ") for text in (MLP, CNN, LONG))


class Run:
    def __init__(self, *arguments, cwd, prefix=(), timeout=280):
        r = subprocess.run([*prefix, PLIM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=timeout)
        self.code, self.error, self.output = r.returncode, r.stderr, r.stdout
        self.events = [json.loads(line) for line in r.stdout.splitlines() if line.startswith("{")]

    def last(self, kind):
        return next((e for e in reversed(self.events) if e["event"] == kind), None)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(self.folder.cleanup)

    def job(self, text, name="job.yaml"):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def run_plim(self, *arguments, code=0, **more):
        r = Run(*arguments, cwd=self.folder.name, **more)
        self.assertEqual(r.code, code, f"plim {' '.join(map(str, arguments))}\n{r.error}")
        return r

    def train(self, job, *arguments, **more):
        return self.run_plim("train", job, "--json", "--digest", *arguments, **more)


class Prediction(Case):
    """Measured is never above predicted, and at most 5 % or 4 MiB below."""

    def hold(self, job, *arguments):
        for threads in (1, 2):
            with self.subTest(threads=threads):
                end = self.train(job, "--threads", threads, *arguments).last("end")
                predicted, measured = end["predicted_peak_bytes"], end["peak_rss_bytes"]
                print(f"    {threads} thread(s): predicted {predicted / MIB:.2f} MiB, measured {measured / MIB:.2f} MiB", flush=True)
                self.assertLessEqual(measured, predicted)
                self.assertLessEqual(predicted - measured, max(4 * MIB, predicted * 0.05))

    def test_mlp(self):
        self.hold(self.job(MLP))

    def test_mlp_large_batch(self):
        self.hold(self.job(MLP), "--set", "data.train.pipeline.batch=2000")

    def test_cnn(self):
        self.hold(self.job(CNN))

    def test_many_layers(self):
        """The tables of a deep model are larger than its tensors: planning is then the peak."""
        layers = "model: [" + "Dense: {units: 10, activation: relu}, " * 700 + "Dense: {units: 1, activation: sigmoid}]"
        text = "\n".join(layers if line.startswith("model:") else line for line in MLP.splitlines())
        self.hold(self.job(text), "--set", "train.epochs=1", "--set", "train.steps_per_epoch=3", "--set", "train.validation_steps=2")

    def test_fashion(self):
        self.hold(FASHION, "--checkpoint", os.path.join(self.folder.name, "c"), "--set", "train.epochs=1", "--set",
                  "train.steps_per_epoch=40", "--set", "train.validation_steps=10")


class Budget(Case):
    def smallest_works(self, job, *arguments):
        plan = self.run_plim("plan", job, "--json", *arguments).last("plan")
        smallest = plan["smallest_budget_bytes"]
        for _ in range(3):
            r = self.train(job, "--memory", smallest, *arguments)
            self.assertLessEqual(r.last("end")["peak_rss_bytes"], smallest)
            r = self.train(job, "--memory", int(smallest * 0.99), *arguments, code=4)
            error = r.last("error")
            self.assertEqual((error["code"], error["exit"]), ("OVER_BUDGET", 4))
            self.assertIn("plim train", error["try"])

    def test_mlp(self):
        self.smallest_works(self.job(MLP), "--set", "train.epochs=1")

    def test_batches_at_which_other_nodes_are_worth_it(self):
        """What is kept as bits depends on its size: the search for the largest batch meets nodes that the job has not."""
        job = self.job(CNN.split("model:")[0].replace("shape: [64, 64, 3]", "shape: [28, 28, 1]") + """
model: [Conv2D: {filters: 8, kernel_size: 3, activation: relu}, GlobalAveragePooling2D, Dense: {units: 10, activation: softmax}]
train: {optimizer: sgd, loss: sparse_categorical_crossentropy}
""")
        encoded = set()
        for batch in (8, 12, 13, 64):
            plan = self.run_plim("plan", job, "--set", f"data.train.pipeline.batch={batch}", "--memory", "400MiB").output
            encoded.add(re.search(r"encode (\d)", plan)[1])
        self.assertEqual(encoded, {"0", "1"})
        told = self.run_plim("plan", job, "--set", "data.train.pipeline.batch=64", "--json").last("plan")["smallest_budget_bytes"]
        r = self.run_plim("plan", job, "--set", "data.train.pipeline.batch=64", "--memory", told * 98 // 100, code=4)
        self.assertIn("smallest workable budget", r.output)

    def test_cnn(self):
        self.smallest_works(self.job(CNN), "--set", "train.epochs=1")

    def test_caches_that_are_given_up(self):
        text = MLP.replace("exact, batch", "exact, cache: auto, batch").replace("pipeline: [batch: 32]", "pipeline: [cache: auto, batch: 32]")
        plan = self.run_plim("plan", self.job(text), "--json").last("plan")
        self.assertGreater(plan["by_tag"]["cache"], 4500 * 400)  # both of them
        self.assertGreater(plan["predicted_peak_bytes"], plan["smallest_budget_bytes"] + 4500 * 400 // 2)
        self.smallest_works(self.job(text), "--set", "train.epochs=1")

    def test_weights_with_a_large_header(self):
        """What is read before the first step counts, too: beside an arena that is larger than what planning took."""
        wide = MLP.replace("elements: 4000", "elements: 40000").replace("exact, batch: 32", "exact, batch: 40000")
        self.train(self.job(MLP.replace("epochs: 2", "epochs: 1, save_weights: w.safetensors")))
        path = os.path.join(self.folder.name, "w.safetensors")
        with open(path, "rb") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header, data = json.loads(f.read(size)), f.read()
        header["__metadata__"] = {"note": "x" * 20 * MIB}
        header = json.dumps(header).encode()
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header + data)
        self.smallest_works(self.job(wide.replace("epochs: 2", "epochs: 1, load_weights: w.safetensors")))

    def test_the_largest_batch_of_data_nobody_counted(self):
        """Lines of a file may be as many as they like: only the budget bounds the batch, and the figure holds."""
        with open(os.path.join(self.folder.name, "rows.csv"), "w") as f:
            f.write("a,b,y\n1,2,0\n3,4,1\n5,6,0\n")
        text = MLP[:MLP.index("  train:")] + "  train: {csv: {files: rows.csv, columns: {x: [a..b], y: y}}, pipeline: [batch: %d]}\n" + MLP[MLP.index("model:"):]
        largest = self.run_plim("plan", self.job(text % 2), "--json", "--memory", "48MiB").last("plan")["largest_batch"]
        self.assertGreater(largest, 1 << 20)
        self.run_plim("plan", self.job(text % largest), "--memory", "48MiB")
        self.run_plim("plan", self.job(text % (largest * 11 // 10)), "--memory", "48MiB", code=4)

    def test_the_command_of_a_refusal_works(self):
        job = self.job(MLP)
        r = self.train(job, "--memory", "3MiB", code=4)
        command = r.last("error")["try"].split()
        self.assertEqual(command[:2], ["plim", "train"])
        self.run_plim("train", *command[2:])

    def test_refused_before_data_is_read(self):
        """Data that is broken beyond its header: with too small a budget nobody gets to see that."""
        with open(os.path.join(self.folder.name, "x.npy"), "wb") as f:
            f.write(npy_header("<f4", "(10, 100)") + bytes(4000))
        with open(os.path.join(self.folder.name, "y.npy"), "wb") as f:
            f.write(npy_header("<f4", "(10,)") + bytes(40))
        job = self.job(MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}", "npy: [x.npy, y.npy]"))
        self.train(job, "--memory", "2MiB", code=4)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "job.plim")))

    def test_peak_does_not_depend_on_rows(self):
        peaks = []
        for rows in (10 ** 4, 10 ** 5, 10 ** 6, 10 ** 7):
            path = os.path.join(self.folder.name, "table.npy")
            header = npy_header("<f4", f"({rows}, 101)")
            with open(path, "wb") as f:
                f.write(header)
                f.truncate(len(header) + rows * 404)
            job = self.job(MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}",
                                       "npy: {files: table.npy, columns: {x: [0, 100], y: 100}}"))
            end = self.train(job, "--set", "train.epochs=1", "--set", "train.steps_per_epoch=300").last("end")
            peaks.append(end["peak_rss_bytes"])
        print("    peaks:", *(f"{p / MIB:.2f}" for p in peaks), "MiB", flush=True)
        self.assertLessEqual(max(peaks) - min(peaks), MIB)

    def test_nothing_allocated_after_warm_up(self):
        for text in (MLP, CNN):
            end = self.train(self.job(text.replace("epochs: 2", "epochs: 60" if text is CNN else "epochs: 4"))).last("end") if text is MLP else \
                self.train(self.job(CNN.replace("epochs: 2", "epochs: 24"))).last("end")
            self.assertEqual(end["allocations_per_step"], 0)
            self.assertEqual(end["malloc_growth_bytes"], 0)

    def test_address_space(self):
        """A limit of the kernel on mappings: refused with its name, not killed."""
        r = self.run_plim("train", self.job(CNN, "bad.yaml"), "--set", "plan.page=never", code=4, prefix=["sh", "-c", 'ulimit -v 80000; exec "$@"', "sh"])
        self.assertIn("RLIMIT_AS", r.error)

    def test_more_than_the_machine_has(self):
        """A stated budget does not make memory: the headroom of the cgroup refuses, nobody is killed."""
        figures = os.path.join(self.folder.name, "figures")
        prefix = [os.path.join(ROOT, "tools", "in-cgroup"), str(40 * MIB), figures]
        if subprocess.run([*prefix, "true"]).returncode == 125:
            if os.environ.get("CI"):
                self.fail("no cgroup can be made here")
            self.skipTest("no cgroup can be made here (needs root and a memory controller)")
        r = self.run_plim("train", self.job(MLP.replace("memory: 64MiB", "memory: 8GiB"), "bad.yaml"), "--set", "data.train.pipeline.batch=100000",
                          "--set", "data.train.random.elements=100000", code=4, prefix=prefix)
        self.assertIn("leaves less", r.error)


class Cgroup(Case):
    """Training where the kernel enforces the budget. Where no cgroup can be made the test says so; in CI that is a failure."""

    def test_fashion_in_48_mib(self):
        figures = os.path.join(self.folder.name, "figures")
        prefix = [os.path.join(ROOT, "tools", "in-cgroup"), str(48 * MIB), figures]
        if subprocess.run([*prefix, "true"]).returncode == 125:
            if os.environ.get("CI"):
                self.fail("no cgroup can be made here")
            self.skipTest("no cgroup can be made here (needs root and a memory controller)")
        r = self.train(FASHION, "--memory", "48MiB", "--checkpoint", os.path.join(self.folder.name, "c"), prefix=prefix, timeout=580)
        kind, limit, peak, kills = open(figures).read().split()
        accuracy = r.last("epoch")["val_accuracy"]
        print(f"    cgroup {kind}: limit {int(limit) / MIB:.1f} MiB, peak with page cache {int(peak) / MIB:.1f} MiB, kills {kills}, "
              f"accuracy {accuracy:.4f}", flush=True)
        self.assertEqual(kills, "0")
        self.assertLessEqual(r.last("end")["peak_rss_bytes"], 48 * MIB)
        self.assertLessEqual(r.last("epoch")["epoch"], 3)
        self.assertGreaterEqual(accuracy, 0.88)


class SameBits(Case):
    def test_heavy_layers_with_accumulated_gradients(self):
        text = MLP.replace("units: 64", "units: 700").replace("elements: 4000", "elements: 400").replace("epochs: 2", "epochs: 1")
        self.equal_everywhere(text.replace("optimizer: adam", "optimizer: {adam: {gradient_accumulation_steps: 2}}"))

    def digests(self, job, *arguments):
        end = self.train(job, *arguments).last("end")
        return end["weights_digest"], end["optimizer_digest"]

    def fresh(self, job, *arguments):
        """Without the checkpoints of an earlier run."""
        return self.digests(job, "--checkpoint", tempfile.mkdtemp(dir=self.folder.name), *arguments)

    def equal_everywhere(self, text):
        job = self.job(text)
        want = self.fresh(job)
        self.assertEqual(self.fresh(job), want, "twice")
        for threads in (1, 2, 4):
            self.assertEqual(self.fresh(job, "--threads", threads), want, f"{threads} threads")
        self.assertEqual(self.fresh(job, "--threads", "compute=1,data=0"), want, "no reader thread")
        self.assertEqual(self.fresh(job, "--memory", "1GiB"), want, "a larger budget")
        if not SANITIZED:
            smallest = self.run_plim("plan", job, "--json").last("plan")["smallest_budget_bytes"]
            self.assertEqual(self.fresh(job, "--memory", smallest), want, "the smallest budget")
        self.assertNotEqual(self.fresh(job, "--set", "seed=8"), want, "another seed must differ")

    def test_mlp(self):
        self.equal_everywhere(MLP)

    def test_a_batch_of_one(self):
        """Its activations are shared by the team, element by element."""
        text = MLP.replace("elements: 4000", "elements: 30").replace("elements: 500", "elements: 20").replace("batch: 32", "batch: 1").replace("epochs: 2", "epochs: 1")
        text = text.replace("Dense: {units: 1,", "RepeatVector: 1111, Activation: gelu, Dense: {units: 64, activation: mish}, GlobalAveragePooling1D, Dense: {units: 1,")
        for precision in ("float32", "mixed_bfloat16"):
            self.equal_everywhere(text.replace("epochs: 1}", f"epochs: 1, precision: {precision}}}"))

    def test_mlp_large_batch(self):
        self.equal_everywhere(MLP.replace("batch: 32, prefetch", "batch: 1500, prefetch"))

    def test_cnn(self):
        self.equal_everywhere(CNN)


    def test_layers_may_be_named_as_states_are(self):
        names = MLP.replace("units: 64,", "name: metric, units: 64,").replace("units: 1,", "name: validation_metric, units: 1,")
        ends = [self.digests(self.job(text), "--set", "train.epochs=1") for text in (names, MLP)]
        self.assertEqual(len({weights for weights, _ in ends}), 2, "names are part of it")
        self.assertNotEqual(self.digests(self.job(names))[0], ends[0][0], "so are weights")


class Resume(Case):
    def stop_at(self, job, folder, step, sent):
        """Starts training, sends a signal when `step` is over, returns the exit code and the steps it did."""
        p = subprocess.Popen([PLIM, "train", job, "--json=steps", "--checkpoint", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        steps = 0
        for line in p.stdout:
            if '"event":"step"' in line:
                steps += 1
                if steps == step:
                    p.send_signal(sent)
        error = p.stderr.read()
        p.stderr.close()
        p.stdout.close()
        return p.wait(), steps, error

    def test_stopped_and_resumed_at_50_random_points(self):
        job = self.job(MLP)
        want = self.train(job, "--checkpoint", os.path.join(self.folder.name, "whole")).last("end")
        points = random.Random(5)
        stopped = 0
        for i in range(50):
            folder = os.path.join(self.folder.name, f"c{i}")
            code, steps, error = self.stop_at(job, folder, points.randrange(1, 240), points.choice([signal.SIGTERM, signal.SIGINT]))
            self.assertIn(code, (0, 7), error)
            stopped += code == 7
            end = self.train(job, "--checkpoint", folder, "--resume").last("end")
            self.assertEqual(end["weights_digest"], want["weights_digest"], f"stopped after step {steps}")
            self.assertEqual(end["optimizer_digest"], want["optimizer_digest"])
        print(f"    {stopped} of 50 runs were stopped before their end", flush=True)
        self.assertGreater(stopped, 30)

    def test_killed_and_resumed(self):
        job = self.job(MLP.replace("epochs: 2", "epochs: 2, callbacks: [checkpoint: {every: 7}]"))
        want = self.train(job, "--checkpoint", os.path.join(self.folder.name, "whole")).last("end")
        points = random.Random(6)
        for i in range(10):
            folder = os.path.join(self.folder.name, f"c{i}")
            self.stop_at(job, folder, points.randrange(20, 240), signal.SIGKILL)
            end = self.train(job, "--checkpoint", folder, "--resume").last("end")
            self.assertEqual(end["weights_digest"], want["weights_digest"])

    def test_cnn_stopped_and_resumed(self):
        job = self.job(CNN)
        want = self.train(job, "--checkpoint", os.path.join(self.folder.name, "whole")).last("end")
        for i, step in enumerate((1, 3, 5, 7)):
            folder = os.path.join(self.folder.name, f"c{i}")
            self.stop_at(job, folder, step, signal.SIGTERM)
            end = self.train(job, "--checkpoint", folder, "--resume", "--threads", 1 + i % 2).last("end")
            self.assertEqual(end["weights_digest"], want["weights_digest"])

    def test_epoch_figures_survive(self):
        """The loss of an epoch that was interrupted is the loss of the whole epoch."""
        job = self.job(LONG)
        want = [e["loss"] for e in self.train(job, "--checkpoint", os.path.join(self.folder.name, "whole")).events if e["event"] == "epoch"]
        folder = os.path.join(self.folder.name, "c")
        self.stop_at(job, folder, 60, signal.SIGTERM)
        got = [e["loss"] for e in self.train(job, "--checkpoint", folder, "--resume").events if e["event"] == "epoch"]
        self.assertEqual(got, want[-len(got):])

    def test_resume_without_checkpoint_starts(self):
        self.train(self.job(MLP), "--resume", "--set", "train.epochs=1")

    def test_a_new_run_is_resumed_from_its_own_beginning(self):
        """Killed in its first epoch, in the folder of a run that was finished."""
        old, new = self.job(LONG), self.job(LONG.replace("optimizer: adam", "optimizer: {adam: {learning_rate: 0.02}}"), "new.yaml")
        folder = os.path.join(self.folder.name, "c")
        older = self.train(old, "--checkpoint", folder).last("end")
        want = self.train(new, "--checkpoint", os.path.join(self.folder.name, "whole")).last("end")
        self.stop_at(new, folder, 60, signal.SIGKILL)
        end = self.train(new, "--checkpoint", folder, "--resume").last("end")
        self.assertEqual(end["weights_digest"], want["weights_digest"])
        self.assertEqual(end["steps"], want["steps"])
        os.rename(os.path.join(folder, "checkpoint.older.safetensors"), os.path.join(folder, "checkpoint.safetensors"))
        end = self.train(old, "--checkpoint", folder, "--resume").last("end")
        self.assertEqual((end["weights_digest"], end["steps"]), (older["weights_digest"], 0))

    def test_one_run_a_folder(self):
        job, folder = self.job(MLP.replace("epochs: 2", "epochs: 1000")), os.path.join(self.folder.name, "c")
        p = subprocess.Popen([PLIM, "train", job, "--json=steps", "--checkpoint", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while b'"event":"step"' not in p.stdout.readline():
            pass
        r = self.run_plim("train", job, "--checkpoint", folder, code=6)
        self.assertIn("in use by another run", r.error)
        p.kill()
        p.communicate()
        self.train(job, "--checkpoint", folder, "--set", "train.epochs=1")

    def test_a_damaged_checkpoint_replaces_no_whole_one(self):
        """The newest is damaged; the run that goes on from the one before is killed after its first save."""
        job, folder = self.job(LONG.replace("epochs: 2", "epochs: 2, callbacks: [checkpoint: {every: 50}]")), os.path.join(self.folder.name, "c")
        want = self.train(job, "--checkpoint", os.path.join(self.folder.name, "whole")).last("end")
        self.stop_at(job, folder, 150, signal.SIGKILL)
        newest, before = (os.path.join(folder, f"checkpoint{x}.safetensors") for x in ("", ".previous"))
        with open(newest, "r+b") as f:
            f.seek(5000)
            f.write(b"damage")
        with open(before, "rb") as f:
            whole = f.read()
        p = subprocess.Popen([PLIM, "train", job, "--json=steps", "--resume", "--checkpoint", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        steps = 0
        while steps < 51:  # the 51st is told after a save
            line = p.stdout.readline()
            self.assertTrue(line)
            steps += b'"event":"step"' in line
        p.kill()
        p.communicate()
        with open(before, "rb") as f:
            now = f.read()
        self.assertTrue(now == whole or b"damage" not in now)
        end = self.train(job, "--checkpoint", folder, "--resume").last("end")
        self.assertEqual(end["weights_digest"], want["weights_digest"])


    def test_a_forged_position(self):
        """Sealed as it should be, but at a step that the data does not have."""
        job, folder = self.job(MLP), os.path.join(self.folder.name, "c")
        self.train(job, "--checkpoint", folder)
        path = os.path.join(folder, "checkpoint.safetensors")
        with open(path, "rb") as f:
            whole = f.read()
        size = struct.unpack("<Q", whole[:8])[0]
        for step in ("126", "9007199254740992", "99999999999999999999"):
            header = whole[8:8 + size].replace(b'"step":"0"', b'"step":"' + step.encode() + b'"').rstrip().ljust(size)
            self.assertEqual(len(header), size)
            forged = whole[:8] + header + whole[8 + size:-32]
            with open(path, "wb") as f:
                f.write(forged + hashlib.sha256(forged).digest())
            self.train(job, "--checkpoint", folder, "--resume", "--set", "train.epochs=9", code=3)


class Remarks(Case):
    """What is no error, but worth a word: said once."""

    def remarks(self, job, *words):
        r = self.run_plim("train", job)
        self.assertEqual(r.output.count("note: "), 1, r.output)
        end = self.train(job).last("end")
        for word in words:
            self.assertIn(word, r.output)
            self.assertIn(word, end["note"])

    def test_one_number_is_no_slow_kernel(self):
        job = self.job(MLP.replace("optimizer: adam", "optimizer: {adam: {global_clipnorm: 1}}"))
        self.assertNotIn("plain C", self.run_plim("plan", job).output)

    def test_fewer_batches_than_asked_for(self):
        self.remarks(self.job(MLP.replace("epochs: 2", "epochs: 2, steps_per_epoch: 1000, callbacks: [checkpoint: none]")), "steps_per_epoch is 1000", "125 batches")
        self.remarks(self.job(MLP.replace("epochs: 2", "epochs: 1, validation_steps: 17, callbacks: [checkpoint: none]")), "validation_steps is 17", "16 batches")

    def test_a_loss_that_is_nan(self):
        text = MLP.replace("optimizer: adam", "optimizer: {sgd: 1e30}").replace("binary_crossentropy", "sparse_categorical_crossentropy")
        text = text.replace("Dense: {units: 1, activation: sigmoid}", "Dense: {units: 64, activation: relu}, Dense: {units: 2, activation: softmax}")
        self.remarks(self.job(text.replace("epochs: 2", "epochs: 2, callbacks: [checkpoint: none]")), "the loss is nan from step", "learning rate")

    def test_the_command_that_goes_on(self):
        job = self.job(LONG.replace("epochs: 2", "epochs: 1000000"), "a job.yaml")
        p = subprocess.Popen([PLIM, "train", job, "--json=steps", "--memory", "70MiB" if not SANITIZED else "16GiB", "--set", "seed=3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder.name)
        while b'"event":"step"' not in p.stdout.readline():
            pass
        p.send_signal(signal.SIGTERM)
        p.stdout.read()
        command = p.communicate()[1].decode().split("; try: ")[1].strip()
        r = subprocess.run(["bash", "-c", f'plim() {{ "$PLIM" "$@"; }}; {command} --set train.epochs=1'], env={**os.environ, "PLIM": PLIM}, capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertNotIn("starting from the beginning", r.stdout)

    def test_hints_name_their_command(self):
        for command in (["plan"], ["bench"], ["data", "bench"], ["train"]):
            r = self.run_plim(*command, self.job(MLP), "--memory", "2MiB", code=4)
            self.assertIn("try: plim " + " ".join(command) + " --memory ", r.error)


class Words(Case):
    """What people type, and what they see."""

    def in_terminal(self, *arguments, **environment):
        """All that a terminal of 80 columns gets."""
        primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        p = subprocess.Popen([PLIM, *map(str, arguments)], stdin=secondary, stdout=secondary, stderr=secondary, cwd=self.folder.name,
                             env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment})
        os.close(secondary)
        seen = b""
        try:
            while part := os.read(primary, 65536):
                seen += part
        except OSError:  # the terminal is gone
            pass
        os.close(primary)
        self.assertEqual(p.wait(), 0)
        return seen.decode()

    def test_options_of_a_command(self):
        for command, takes, takes_not in (("train", "--resume --memory --json=steps --digest", "--steps "), ("plan", "--memory --set --json", "--resume --digest --steps --json=steps"),
                                          ("summary", "--set --json", "--memory --resume"), ("bench", "--steps --memory", "--resume"), ("data", "--memory", "--steps --resume")):
            text = self.run_plim(command, "--help").output
            for word in takes.split():
                self.assertIn(f"  {word}", text)
            for word in takes_not.split():
                self.assertNotIn(f"  {word} ", text)
                self.assertIn(f"no '{word}'", self.run_plim(command, word, "1", code=2).error) if "=" not in word else None

    def test_the_word_that_was_meant(self):
        for arguments, meant in ((["tran"], "plim train"), (["train", "--memmory", "1MiB"], "--memory"), (["plan", "--jsn"], "--json"), (["bench", "--step=3"], "--steps")):
            self.assertIn("try: " + meant, self.run_plim(*arguments, code=2).error)
        self.assertIn("value of '--memory' is missing", self.run_plim("train", "x", "--memory", code=2).error)

    def test_lines_fit_the_terminal(self):
        job = self.job(CNN.replace("filters: 64,", "filters: 64, name: größe_of_a_layer_with_a_very_long_name_indeed,"))
        for command in ("plan", "summary"):
            for line in self.in_terminal(command, job).splitlines():
                self.assertLessEqual(len(line), 80, line)
        self.assertIn("größe_of", self.in_terminal("summary", job))

    def test_summary_of_what_is_there(self):
        model = "model: [{Input: {shape: [6]}}, {Dense: 5}]\n"
        data = "data: {train: {random: {elements: 9, shape: [6], classes: 3}, pipeline: [batch: 3]}}\n"
        train = "train: {optimizer: sgd, loss: mse}\n"
        for text, said in ((model, "data:"), (data + "model: [Dense: 5]\n", "train:"), (model + train, "data:"), (data + model, "train:"), (model + "data: {}\n", "data.train:")):
            job = self.job(text)
            layer = self.run_plim("summary", job, "--json").events[0]["layers"][-1]
            self.assertEqual((layer["output_shape"], layer["parameters"]), ([5], 35))
            for command in ("plan", "train"):
                self.assertIn(f"job.yaml: '{said}' is missing", self.run_plim(command, job, code=2).error)
        self.assertIn("add an Input layer", self.run_plim("summary", self.job("model: [Dense: 5]\n"), code=2).error)
        self.assertIn("'model:' is missing", self.run_plim("summary", self.job(data), code=2).error)

    def test_metrics_of_several_numbers(self):
        """A list in the JSON lines, their mean in the line that people read."""
        words = ["--set", "train.metrics=[{Recall: {thresholds: [0.7, 0.3]}}]", "--set", "train.epochs=1", "--checkpoint"]
        epoch = self.run_plim("train", self.job(MLP), "--json", *words, os.path.join(self.folder.name, "a")).last("epoch")
        for name in ("recall", "val_recall"):
            self.assertEqual(len(epoch[name]), 2)
            self.assertTrue(0 < epoch[name][0] <= epoch[name][1] <= 1, epoch[name])
        self.assertLess(*epoch["recall"])
        seen = self.run_plim("train", self.job(MLP), *words, os.path.join(self.folder.name, "b"))
        self.assertIn(f"recall: {sum(epoch['recall']) / 2:.4f}", seen.output + seen.error)

    def test_no_colour(self):
        colour = re.compile("\x1b\\[[0-9;]*m")
        job = self.job(LONG)
        seen = self.in_terminal("train", job, "--set", "train.epochs=1")
        self.assertTrue(colour.search(seen))
        seen = self.in_terminal("train", job, "--set", "train.epochs=1", NO_COLOR="1")
        self.assertFalse(colour.search(seen))
        self.assertIn("loss: ", seen)
        self.assertTrue(colour.search(self.in_terminal("train", job, "--set", "train.epochs=1", NO_COLOR="")))


class Surroundings(Case):
    """What a shell, a host or a disk may do to a run."""

    def shell(self, line, *arguments):
        """A line of shell, in which "$@" is the program and its arguments."""
        return subprocess.run(["bash", "-c", line, "bash", PLIM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder.name, timeout=280)

    def checkpoint(self):
        return os.path.exists(os.path.join(self.folder.name, "job.plim", "checkpoint.safetensors"))

    def test_closed_standard_streams(self):
        """Lines for a stream that is closed go nowhere, and above all not into unpacked data."""
        for name, header, body in (("x.gz", struct.pack(">HBBII", 0, 8, 2, 200, 100), random.Random(1).randbytes(20000)),
                                   ("y.gz", struct.pack(">HBBI", 0, 8, 1, 200), random.Random(2).randbytes(200).translate(bytes(i & 1 for i in range(256))))):
            with gzip.open(os.path.join(self.folder.name, name), "wb") as f:
                f.write(header + body)
        data = "  train: {idx: [x.gz, y.gz], pipeline: [map: {rescale: 1/255}, batch: 8]}\n"
        lines = [line for line in MLP.splitlines(True) if "validation:" not in line]
        lines[lines.index(next(line for line in lines if "train: {random" in line))] = data
        job = self.job("".join(lines).replace("epochs: 2", "epochs: 20, save_weights: weights.safetensors"))
        weights = []
        for closed in ("", ">&-", "2>&-", "<&-", "<&- >&- 2>&-"):
            r = self.shell(f'"$@" {closed}', "train", job)
            self.assertEqual(r.returncode, 0, r.stderr)
            with open(os.path.join(self.folder.name, "weights.safetensors"), "rb") as f:
                weights.append(f.read())
        self.assertEqual(len(set(weights)), 1)

    def test_a_reader_that_is_gone(self):
        for arguments in ((), ("--json=steps",)):
            r = self.shell('"$@" | head -1 > /dev/null; exit ${PIPESTATUS[0]}', "train", self.job(MLP), *arguments)
            self.assertEqual(r.returncode, 6, r.stderr)
            self.assertTrue(self.checkpoint())
            self.assertEqual(r.stderr.count("standard output"), 1, r.stderr)
            self.shell("rm -r job.plim")

    def test_stopped_with_nobody_listening(self):
        job = self.job(MLP.replace("epochs: 2", "epochs: 1000"))
        p = subprocess.Popen([PLIM, "train", job], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder.name)
        while b"Epoch 2" not in p.stdout.readline():
            pass
        p.stdout.close()
        time.sleep(0.1)
        p.terminate()
        self.assertEqual(p.wait(), 7)

    def test_output_that_cannot_be_written(self):
        job = self.job(MLP)
        for arguments in (("summary", job), ("plan", job), ("plan", job, "--json"), ("--help",), ("--version",), ("train", "--help")):
            r = self.shell('"$@" > /dev/full', *arguments)
            self.assertEqual(r.returncode, 6, arguments)
            self.assertEqual(r.stderr.count("standard output"), 1, r.stderr)
        r = self.shell('"$@" > /dev/full', "train", job, "--json")
        self.assertEqual(r.returncode, 6, r.stderr)
        self.assertEqual(r.stderr.count("standard output"), 1, r.stderr)
        self.assertTrue(self.checkpoint())

    def signalled(self, job, sent, ignored=()):
        def before():  # whoever runs the tests may ignore signals itself (nohup, a shell's background)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        p = subprocess.Popen([PLIM, "train", job, "--json=steps"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder.name, preexec_fn=before)
        while b'"event":"step"' not in p.stdout.readline():
            pass
        p.send_signal(sent)
        error = p.communicate()[1].decode()
        return p.returncode, error

    def test_signals(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.signalled(self.job(LONG.replace("epochs: 2", "epochs: 1000000")), sent)[0], 7)
            self.assertEqual(self.signalled(self.job(LONG), sent, ignored=(sent,))[0], 0)

    def test_stopped_without_checkpoint(self):
        code, error = self.signalled(self.job(LONG.replace("epochs: 2", "epochs: 1000000, callbacks: [checkpoint: none]")), signal.SIGTERM)
        self.assertEqual(code, 7)
        self.assertIn("no checkpoint was written", error)
        self.assertNotIn("--resume", error)

    def test_checkpoints_in_memory(self):
        """They count: a folder in memory needs room in the budget."""
        if SANITIZED or subprocess.run(["stat", "-f", "-c", "%T", "/dev/shm"], capture_output=True, text=True).stdout.strip() != "tmpfs":
            self.skipTest("no tmpfs at /dev/shm, or no memory figures")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            job = self.job(MLP.replace("units: 64", "units: 2000"))
            smallest = self.run_plim("plan", job, "--json").last("plan")["smallest_budget_bytes"]
            r = self.train(job, "--checkpoint", folder, "--memory", smallest, code=4)
            self.assertIn("--checkpoint", r.last("error")["try"])
            self.assertEqual(os.listdir(folder), [])
            self.train(job, "--checkpoint", folder, "--memory", smallest + 16 * MIB)

    def test_weights_that_cannot_be_saved(self):
        r = self.train(self.job(MLP.replace("epochs: 2", "epochs: 2, save_weights: none/w.safetensors")), code=6)
        self.assertIn("none/w.safetensors", r.last("error")["where"])
        self.assertIsNone(r.last("epoch"))


def npy_header(descr, shape):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def png(width, height, pixel):
    """A picture, 8 bits RGB, of the colours that pixel(x, y) gives."""
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Images(Case):
    """A folder of classes, decoded and changed by chance on the way into a small network."""
    JOB = """memory: 96MiB
seed: 7
data:
  train:
    images: photos
    pipeline:
      - shuffle: exact
      - map: [decode_image: {channels: 3, scaled: true}, resize: [16, 16], random_flip: horizontal, random_rotation: 0.05, rescale: 1/255]
      - batch: 8
      - prefetch: auto
model: [Conv2D: {filters: 8, kernel_size: 3, activation: relu}, MaxPooling2D: 2, Flatten, Dense: {units: 2, activation: softmax}]
train: {optimizer: {adam: {learning_rate: 0.01}}, loss: sparse_categorical_crossentropy, metrics: [accuracy], epochs: 6}
"""
    if SANITIZED:
        JOB = JOB.replace("memory: ", "memory: 16GiB  # not ")

    def write(self, name, data):
        path = os.path.join(self.folder.name, "photos", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)

    def setUp(self):
        super().setUp()
        noise = random.Random(3)
        for i in range(20):  # of different sizes; the classes differ in the direction of their stripes
            width, height, step = 18 + i, 30 - i // 2, 3 + i % 4
            for kind in ("across", "down"):
                shade = lambda x, y: 200 if (y if kind == "across" else x) // step % 2 else 40
                self.write(f"{kind}/{i}.png", png(width, height, lambda x, y: [shade(x, y) + noise.randrange(40) for _ in range(3)]))
        with open(os.path.join(ROOT, "tests", "golden", "images", "color.jpg"), "rb") as f:
            self.jpeg = f.read()
        self.write("down/photo.jpg", self.jpeg)

    def test_training(self):
        job, ends = self.job(self.JOB), []
        for threads in ("1", "2", "compute=1,data=0"):
            run = self.train(job, "--threads", threads, "--checkpoint", tempfile.mkdtemp(dir=self.folder.name))
            ends.append(run.last("end"))
            self.assertGreater(run.last("epoch")["accuracy"], 0.85)
            if not SANITIZED:
                self.assertLessEqual(ends[-1]["peak_rss_bytes"], ends[-1]["predicted_peak_bytes"])
                self.assertLessEqual(ends[-1]["predicted_peak_bytes"] - ends[-1]["peak_rss_bytes"], 4 * MIB)
        self.assertEqual(len({(end["weights_digest"], end["optimizer_digest"]) for end in ends}), 1, "threads change nothing")
        self.assertEqual(ends[0]["allocations_per_step"], 0)
        whole, part = ends[0], os.path.join(self.folder.name, "part")
        self.train(job, "--checkpoint", part, "--set", "train.epochs=2")
        self.assertEqual(self.train(job, "--checkpoint", part, "--resume").last("end")["weights_digest"], whole["weights_digest"])

    def test_an_image_that_is_cut_off(self):
        self.write("across/cut.jpg", self.jpeg[:700])
        r = self.run_plim("train", self.job(self.JOB), "--json", code=3)
        error = r.last("error")
        self.assertTrue(error["where"].endswith("photos/across/cut.jpg"), error)
        self.assertIn("premature end at byte 700", error["message"])

    def test_labels_and_words(self):
        job = self.job(self.JOB.replace("images: photos", "images: {folder: photos, class_names: [down]}"))
        self.assertEqual(self.run_plim("data", "bench", job, "--json").last("data")["elements"], 21)
        job = self.job(self.JOB.replace("images: photos", 'images: {files: ["photos/*/1*.png", "photos/down/*.jpg"]}'))
        self.assertEqual(self.run_plim("data", "bench", job, "--json").last("data")["elements"], 23)
        self.run_plim("data", "bench", self.job(self.JOB.replace("images: photos", "images: pictures")), code=3)


class BadInput(Case):
    """One line: where, what, what to try. An exit code of its own. Nothing left behind."""

    def refused(self, text, code, *words, arguments=()):
        before = set(os.listdir(self.folder.name)) | {"bad.yaml"}
        r = self.run_plim("train", self.job(text, "bad.yaml"), *arguments, code=code)
        lines = r.error.strip().splitlines()
        self.assertEqual(len(lines), 1, r.error)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertLessEqual(set(os.listdir(self.folder.name)), before)

    def test_unknown_key(self):
        self.refused(MLP.replace("optimizer", "optimiser"), 2, "bad.yaml:7:", "'optimiser'", "optimizer")

    def test_what_was_set(self):
        """A value that came from --set is told by that word, also where only what it is part of is wrong."""
        for said in ("memory=12Q", "threads=x", "disk=5", "train.loss=mze", "data.train.pipeline.batch=0", "model.0.Dense.units=0"):
            self.refused(MLP, 2, f"plim: --set {said}: ", arguments=["--set", said])
        self.refused(CNN, 2, "bad.yaml:6:", "with --set model.0.Conv2D.kernel_size=99: conv2d", arguments=["--set", "model.0.Conv2D.kernel_size=99"])
        self.refused(CNN, 2, "with --set train.loss=mse: mean_squared_error", arguments=["--set", "train.loss=mse"])
        self.refused(CNN, 2, "with --set train.metrics=[auc]: auc", arguments=["--set", "train.metrics=[auc]"])
        self.refused(MLP, 2, "--threads x: ", arguments=["--threads", "x"])

    def test_unknown_layer(self):
        self.refused(MLP.replace("Dense: {units: 1,", "Dence: {units: 1,"), 2, "bad.yaml:6:", "Dence", "Dense")

    def test_unknown_layer_word(self):
        self.refused(MLP.replace("units: 64", "unit: 64"), 2, "bad.yaml:6:", "unit", "units")

    def test_wrong_type(self):
        self.refused(MLP.replace("units: 64", "units: many"), 2, "bad.yaml:6:", "units", "many")

    def test_unknown_stage(self):
        self.refused(MLP.replace("shuffle: exact", "shufle: exact"), 2, "bad.yaml:4:", "shufle", "shuffle")

    def test_layer_of_keras_that_is_not_there(self):
        self.refused(MLP.replace("Dense: {units: 64, activation: relu}", "MelSpectrogram: 64"), 2, "bad.yaml:6:", "MelSpectrogram")

    def test_yaml_that_is_none(self):
        self.refused("data: [1, 2\nmodel: }", 2, "bad.yaml:")

    def test_missing_file(self):
        self.refused(MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}", "npy: [gone.npy, gone.npy]"), 3, "bad.yaml:4:", "gone.npy")

    def test_shapes_that_do_not_fit(self):
        self.refused(MLP.replace("shape: [100], classes: 2, seed: 1", "shape: [10, 10], classes: 2, seed: 1"), 2, "bad.yaml")

    def test_files_of_different_length(self):
        for name, rows in (("x.npy", "(10, 100)"), ("y.npy", "(9,)")):
            with open(os.path.join(self.folder.name, name), "wb") as f:
                f.write(npy_header("<f4", rows) + bytes(4000 if "100" in rows else 36))
        self.refused(MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}", "npy: [x.npy, y.npy]"), 3, "y.npy")

    def test_truncated_npy(self):
        for name, rows, size in (("x.npy", "(10, 100)", 3999), ("y.npy", "(10,)", 40)):
            with open(os.path.join(self.folder.name, name), "wb") as f:
                f.write(npy_header("<f4", rows) + bytes(size))
        self.refused(MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}", "npy: [x.npy, y.npy]"), 3, "x.npy", "byte")

    def test_data_that_never_ends(self):
        self.refused(MLP.replace("pipeline: [batch: 32]", "pipeline: [repeat: -1, batch: 32]"), 2, "bad.yaml:5:", "never ends", "validation_steps")

    def test_splits_of_different_shape(self):
        self.refused(MLP.replace("elements: 500, shape: [100]", "elements: 500, shape: [99]"), 2, "bad.yaml:5:", "shape")

    def test_too_large_to_count(self):
        self.refused(MLP.replace("units: 64", "units: 4000000000000000000"), 2, "bad.yaml:6:")

    def test_labels_beyond_the_classes(self):
        r = self.run_plim("train", self.job(CNN.replace("classes: 10", "classes: 11"), "bad.yaml"), code=3)
        self.assertRegex(r.error, "bad.yaml: element [0-9]+: column 'y' is 10")

    def test_ids_beyond_the_table(self):
        ids = b"".join(i.to_bytes(4, "little", signed=True) for i in range(49))
        for bad in (50, -1):
            with open(os.path.join(self.folder.name, "ids.npy"), "wb") as f:
                f.write(npy_header("<i4", "(50,)") + ids + bad.to_bytes(4, "little", signed=True))
            with open(os.path.join(self.folder.name, "y.npy"), "wb") as f:
                f.write(npy_header("<f4", "(50,)") + bytes(200))
            text = """
data: {train: {npy: [ids.npy, y.npy], pipeline: [batch: 10]}}
model: [Embedding: {input_dim: 50, output_dim: 4}, Dense: 1]
train: {optimizer: sgd, loss: mse, epochs: 1, callbacks: [checkpoint: none]}
"""
            self.refused(text, 3, "element 49: column 'x' is %d, not one of 50 ids" % bad, "from 0 to 49")

    def test_checkpoint_of_a_file_compiled_otherwise(self):
        model = {"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": [
            {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [None, 100], "name": "x"}},
            {"module": "keras.layers", "class_name": "Dense", "config": {"name": "a", "units": 1, "activation": "sigmoid"}}]},
            "compile_config": {"optimizer": {"class_name": "SGD", "module": "keras.optimizers", "config": {"learning_rate": 0.1}},
                               "loss": "binary_crossentropy"}}
        path = os.path.join(self.folder.name, "m.json")
        job = self.job(MLP.split("model:")[0] + "model: m.json\ntrain: {epochs: 2}\n", "bad.yaml")
        for loss, rate, code in (("binary_crossentropy", 0.1, 0), ("mse", 0.1, 3), ("binary_crossentropy", 5.0, 3)):
            model["compile_config"]["loss"] = loss
            model["compile_config"]["optimizer"]["config"]["learning_rate"] = rate
            with open(path, "w") as f:
                json.dump(model, f)
            arguments = ("--resume",) if code else ("--set", "train.epochs=1")
            r = self.train(job, *arguments, code=code)
            self.assertIn("another job" if code else "", r.error)

    def test_checkpoint_of_a_file_with_other_layers(self):
        """The same weights, but another function; and the same function from a file that was moved."""
        def write(name, activation, factor, shift):
            def call(*args):
                return [{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": [args[0], 0, 0]}}, *args[1:]], "kwargs": {}}]
            model = {"module": "keras", "class_name": "Functional", "config": {"name": "m", "layers": [
                {"module": "keras.layers", "class_name": "InputLayer", "name": "x", "config": {"batch_shape": [None, 100], "name": "x"}, "inbound_nodes": []},
                {"module": "keras.layers", "class_name": "Dense", "name": "a", "config": {"name": "a", "units": 4, "activation": activation}, "inbound_nodes": call("x")},
                {"module": "keras.src.ops.numpy", "class_name": "Multiply", "name": "b", "config": {"name": "b"}, "inbound_nodes": call("a", factor)},
                {"module": "keras.src.ops.numpy", "class_name": "Add", "name": "c", "config": {"name": "c"}, "inbound_nodes": call("b", {
                    "class_name": "__numpy__", "config": {"value": [0.5, 1, 2, shift], "dtype": "float32"}})},
                {"module": "keras.layers", "class_name": "Dense", "name": "d", "config": {"name": "d", "units": 1, "activation": "sigmoid"}, "inbound_nodes": call("c")}],
                "input_layers": [["x", 0, 0]], "output_layers": [["d", 0, 0]]}}
            with open(os.path.join(self.folder.name, name), "w") as f:
                json.dump(model, f)
        job = self.job(MLP.split("model:")[0] + "model: m.json\ntrain: {optimizer: adam, loss: binary_crossentropy, epochs: 1}\n", "bad.yaml")
        write("m.json", "tanh", 2.0, 3)
        self.train(job)
        for words, said in ((("sigmoid", 2.0, 3), "another job"), (("tanh", 2.5, 3), "no tensor 'constant/float32/2.5'"), (("tanh", 2.0, 4), "another job")):
            write("m.json", *words)
            self.assertIn(said, self.train(job, "--resume", "--set", "train.epochs=2", code=3).error)
        write("moved.json", "tanh", 2.0, 3)
        end = self.train(job, "--resume", "--set", "model=moved.json", "--set", "train.epochs=2", "--threads", "1").last("end")
        self.assertEqual(end["steps"], 125)

    def test_checkpoint_of_another_job(self):
        job = self.job(MLP, "bad.yaml")
        self.train(job, "--set", "train.epochs=1")
        r = self.train(job, "--resume", "--set", "train.optimizer={adam: {learning_rate: 0.5}}", code=3)
        self.assertIn("another job", r.error)

    def test_disk(self):
        r = self.run_plim("plan", FASHION, "--disk", "1MiB", code=4)
        self.assertIn("disk", r.error)

    def test_places_of_overrides(self):
        r = self.run_plim("train", self.job(MLP), "--set", "train.epoch=1", code=2)
        self.assertIn("--set train.epoch=1", r.error)

    def test_numbers_beyond_float32(self):
        for text in (MLP.replace("Dense: {units: 64,", "Rescaling: 1e39, Dense: {units: 64,"),
                     MLP.replace("units: 64,", "units: 64, bias_initializer: {constant: -4e38},"),
                     MLP.replace("optimizer: adam", "optimizer: {adam: {epsilon: 1e300}}"),
                     MLP.replace("optimizer: adam", "optimizer: {sgd: 1e39}")):
            self.refused(text, 2, "bad.yaml:", "3.4e38")

    def test_arguments_that_mean_nothing(self):
        self.refused(MLP.replace("units: 64,", "units: 64, kernel_initializer: {zeros: 5},"), 2, "bad.yaml:6:", "arguments of zeros")
        self.refused(MLP.replace("metrics: [accuracy]", "metrics: {a: accuracy}"), 2, "bad.yaml:7:", "'a'", "metrics: [accuracy]")

    def test_names_that_move_the_cursor(self):
        self.refused(MLP.replace("units: 64,", 'units: 64, name: "a\\x1b[2J",'), 2, "bad.yaml:6:", "control character")

    def test_sizes_without_unit(self):
        self.refused(MLP, 2, "'16'", "16MiB", arguments=("--memory", "16"))
        self.refused(MLP.replace("memory: ", "memory: 16  # "), 2, "bad.yaml", "16MiB")
        self.refused(MLP, 2, "'10'", "10GiB", arguments=("--disk", "10"))

    def test_weights_saved_over_what_is_read(self):
        for name, header, size in (("x.npy", "(10, 100)", 4000), ("y.npy", "(10,)", 40)):
            with open(os.path.join(self.folder.name, name), "wb") as f:
                f.write(npy_header("<f4", header) + bytes(size))
        os.link(os.path.join(self.folder.name, "x.npy"), os.path.join(self.folder.name, "link"))
        text = MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}", "npy: [x.npy, y.npy]")
        for target in ("bad.yaml", "./x.npy", "y.npy", "link", os.path.join(self.folder.name, "y.npy")):
            self.refused(text.replace("epochs: 2", f"epochs: 2, save_weights: {target}"), 2, "bad.yaml:7:", "save_weights", "that this job reads")
        self.run_plim("plan", self.job(text.replace("epochs: 2", "epochs: 2, save_weights: z.npy")))

    def test_weights_of_another_model(self):
        self.train(self.job(MLP.replace("epochs: 2", "epochs: 1, save_weights: w.safetensors")))
        for plan in ("plan", "train"):
            text = MLP.replace("epochs: 2", "epochs: 1, load_weights: w.safetensors")
            r = self.run_plim(plan, self.job(text.replace("units: 64", "units: 63"), "other.yaml"), code=3)
            self.assertIn("tensor 'dense/kernel' is float32 (100, 64)", r.error)
            self.assertFalse(os.path.exists(os.path.join(self.folder.name, "other.plim")))
        self.refused(text.replace("w.safetensors", "gone.safetensors"), 3, "bad.yaml:7:", "gone.safetensors")

    def test_nothing_is_left_of_a_start_that_failed(self):
        self.refused(MLP.replace("epochs: 2", "epochs: 2, save_weights: none/w.safetensors"), 6, "none/w.safetensors")
        with gzip.open(os.path.join(self.folder.name, "x.gz"), "wb") as f: # a header that is right, then too little
            f.write(struct.pack(">HBBII", 0, 8, 2, 4000, 100) + bytes(1000))
        with gzip.open(os.path.join(self.folder.name, "y.gz"), "wb") as f:
            f.write(struct.pack(">HBBI", 0, 8, 1, 4000) + bytes(4000))
        text = MLP.replace("random: {elements: 4000, shape: [100], classes: 2, seed: 1, learnable: true}", "idx: [x.gz, y.gz]")
        before = sorted(os.listdir(self.folder.name))
        self.run_plim("train", self.job(text, "bad.yaml"), code=3)
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted(before + ([] if "bad.yaml" in before else ["bad.yaml"])))

    def test_no_job(self):
        self.run_plim("train", code=2)

    def test_the_speed_table_is_elsewhere(self):
        self.assertIn("build/bench-kernels 'conv2d*'", self.run_plim("bench", "kernels", "conv2d*", code=2).error)

    def test_bad_memory(self):
        self.refused(MLP, 2, "plenty", arguments=("--memory", "plenty"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
