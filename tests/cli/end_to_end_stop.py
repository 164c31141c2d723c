"""end_to_end_stop.py PLIM [TEST...] - a stop is answered at once wherever the program waits or works; children end with it;
lines that nobody got are told.

What is waited for lasts 30 s and more, and the bound is 5 s: the promise is half a second, the rest is for slow machines."""
import fcntl, json, os, pty, signal, struct, subprocess, sys, tempfile, termios, time, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
BOUND_S = 5
MEMORY = "16GiB" if "SANITIZED" in os.environ else "64MiB"
JOB = """memory: %s
data:
  train: %s
model: [Dense: {units: 3, activation: softmax}]
train: {optimizer: adam, loss: sparse_categorical_crossentropy, epochs: %d}
"""
RANDOM = "{random: {elements: 4000, shape: [4], classes: 3, seed: 1}, pipeline: [batch: 8]}"
COMMAND = '{command: {run: "%s", features: {x: "float32[4]", y: int64}}, pipeline: [%sbatch: 8]}'


def crc(data):
    """TFRecord's masked CRC-32C."""
    sum_ = 0xffffffff
    for byte in data:
        sum_ ^= byte
        for _ in range(8):
            sum_ = sum_ >> 1 ^ (0x82f63b78 if sum_ & 1 else 0)
    sum_ ^= 0xffffffff
    return ((sum_ >> 15 | sum_ << 17) + 0xa282ead8) & 0xffffffff


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", crc(head)) + data + struct.pack("<I", crc(data))


def example():
    """x: four zeros, y: 0."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    x = field(1, b"x") + field(2, field(2, field(1, bytes(16))))
    y = field(1, b"y") + field(2, field(3, field(1, b"\0")))
    return record(field(1, field(1, x) + field(1, y)))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.mark = "30." + str(os.getpid()) + str(time.monotonic_ns() % 1000000)  # a sleep that nobody else sleeps
        self.write("some.tfrecord", example() * 20)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        with open(self.path(name), "wb" if isinstance(data, bytes) else "w") as f:
            f.write(data)

    def job(self, train, epochs=1):
        self.write("job.yaml", JOB % (MEMORY, train, epochs))

    def start(self, *arguments, **more):
        def before():  # whoever runs the tests may ignore signals itself
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
        more.setdefault("stdout", subprocess.DEVNULL)
        more.setdefault("stderr", subprocess.PIPE)
        p = subprocess.Popen([PLIM, *arguments], cwd=self.folder.name, preexec_fn=before, **more)
        self.addCleanup(p.stderr.close if p.stderr else lambda: None)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def sleepers(self):
        """How many processes sleep our sleep."""
        found = 0
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
                found += words[:2] == [b"sleep", self.mark.encode()] and stat(name)[0] != "Z"
            except OSError:
                pass
        return found

    def until(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end, "it did not come to that")
            time.sleep(0.01)

    def stop(self, p, sent=signal.SIGTERM):
        """Sends the signal; the exit code and the seconds that it took."""
        begin = time.monotonic()
        p.send_signal(sent)
        try:
            code = p.wait(timeout=BOUND_S)
        except subprocess.TimeoutExpired:
            self.fail(f"{sent!r} was not answered within {BOUND_S} s")
        print(f"    {self.id().rpartition('.')[2]}: answered after {time.monotonic() - begin:.3f} s", flush=True)
        return code

    def steps_kept(self):
        with open(self.path("job.plim/checkpoint.safetensors"), "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        return int(header["__metadata__"]["total_steps"])


class Stop(Case):
    def test_a_silent_command(self):
        """20 elements are two batches; the third is waited for, and the two steps are kept."""
        for threads in ("compute=1,data=1", "compute=1,data=2"):
            for sent in (signal.SIGTERM, signal.SIGINT):
                self.job(COMMAND % (f"cat some.tfrecord; sleep {self.mark}", ""))
                p = self.start("train", "job.yaml", "--threads", threads, "--json=steps", stdout=subprocess.PIPE)
                self.addCleanup(p.stdout.close)
                steps = 0
                while steps < 2:
                    steps += b'"event":"step"' in p.stdout.readline()
                self.until(lambda: sleeps(p.pid))
                self.assertEqual(self.stop(p, sent), 7)
                self.assertIn(b"--resume", p.stderr.read())
                self.assertEqual(self.steps_kept(), 2)
                self.until(lambda: self.sleepers() == 0, BOUND_S)

    def test_a_signal_that_comes_twice(self):
        """As from a terminal that is closed, or timeout(1): to the process and to its group. The second is no other request."""
        for sent in (signal.SIGHUP, signal.SIGTERM):
            self.job(COMMAND % (f"cat some.tfrecord; sleep {self.mark}", ""))
            p = self.two_steps()
            p.send_signal(sent)
            self.assertEqual(self.stop(p, sent), 7)
            self.assertEqual(self.steps_kept(), 2)

    def test_a_stop_that_reaches_the_command_too(self):
        """What the command's end looks like must not keep the checkpoint from being written."""
        self.job(COMMAND % (f"cat some.tfrecord; exec sleep {self.mark}", ""))
        p = self.two_steps("--threads", "compute=1,data=3")
        self.until(lambda: self.sleepers() == 1)
        p.send_signal(signal.SIGSTOP)
        p.send_signal(signal.SIGTERM)
        subprocess.run(["pkill", "-TERM", "-f", f"sleep {self.mark}"], check=False)
        self.assertEqual(self.stop(p, signal.SIGCONT), 7)
        self.assertEqual(self.steps_kept(), 2)

    def two_steps(self, *arguments):
        """A training that has told of two steps."""
        p = self.start("train", "job.yaml", "--json=steps", *arguments, stdout=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        steps = 0
        while steps < 2:
            steps += b'"event":"step"' in p.stdout.readline()
        return p

    def test_a_command_that_has_closed_its_output(self):
        self.job(COMMAND % (f"cat some.tfrecord; exec >&-; sleep {self.mark}", ""))
        p = self.start("train", "job.yaml")
        self.until(lambda: self.sleepers() == 1)
        self.until(lambda: sleeps(p.pid))
        self.assertEqual(self.stop(p), 7)

    def test_a_buffer_that_does_not_fill(self):
        for stage in ("shuffle: 100, ", "cache: kept, "):
            self.job(COMMAND % (f"cat some.tfrecord; sleep {self.mark}", stage))
            p = self.start("train", "job.yaml")
            self.until(lambda: self.sleepers() == 1)
            self.assertEqual(self.stop(p), 7)
            self.until(lambda: self.sleepers() == 0, BOUND_S)

    def test_in_the_middle_of_validation(self):
        self.job(RANDOM)
        with open(self.path("job.yaml")) as f:
            text = f.read()
        self.write("job.yaml", text.replace("model:", f"  validation: {COMMAND % (f'cat some.tfrecord; sleep {self.mark}', '')}\nmodel:"))
        p = self.start("train", "job.yaml")
        self.until(lambda: self.sleepers() == 1)
        self.until(lambda: sleeps(p.pid))
        self.assertEqual(self.stop(p), 7)
        self.assertEqual(self.steps_kept(), 500)

    def test_data_without_a_model(self):
        self.job(COMMAND % (f"cat some.tfrecord; sleep {self.mark}", ""))
        for command in (["data", "bench"], ["data", "explain"], ["data", "convert", "--output", "x.npy"],
                        ["data", "shard", "--shards", "2", "--output", "part"], ["bench"]):
            if command == ["bench"]:
                self.job(COMMAND % (f"sleep {self.mark}", ""))
            p = self.start(*command, "job.yaml")
            self.until(lambda: self.sleepers() == 1)
            self.assertEqual(self.stop(p), 7, command)
            self.assertIn(b"stopped", p.stderr.read())
            self.until(lambda: self.sleepers() == 0, BOUND_S)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["job.yaml", "some.tfrecord"])  # nothing is left

    def test_a_pipe_that_nobody_reads(self):
        """The lines fill the pipe; training waits for the reader, and a stop does not."""
        for arguments in ([], ["--json=steps"]):
            self.job(RANDOM, epochs=100000)
            inside, outside = os.pipe()
            self.addCleanup(os.close, inside)
            p = self.start("train", "job.yaml", *arguments, stdout=outside)
            os.close(outside)
            self.until(lambda: full(inside))
            self.assertEqual(self.stop(p), 7)
            self.assertGreater(self.steps_kept(), 0)
            self.assertIn(b"nobody reads it", p.stderr.read())

    def test_error_output_that_nobody_reads(self):
        self.job(RANDOM, epochs=100000)
        inside, outside = os.pipe()
        self.addCleanup(os.close, inside)
        p = self.start("train", "job.yaml", "--json=steps", stdout=outside, stderr=outside)
        os.close(outside)
        self.until(lambda: full(inside))
        self.assertEqual(self.stop(p), 7)
        self.assertGreater(self.steps_kept(), 0)

    def test_while_it_plans(self):
        """A pattern of a thousand million names: nothing is written."""
        self.write("job.yaml", JOB % ("64GiB", '{text: {files: "a{000000000..999999999}"}, pipeline: [batch: 8]}', 1))
        p = self.start("train", "job.yaml")
        self.until(lambda: catches(p.pid) and ticks(p.pid) >= 5)
        code = self.stop(p)
        said = p.stderr.read()
        if code != 4:  # the names may have filled the budget first
            self.assertEqual(code, 7, said)
            self.assertIn(b"nothing was written", said)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["job.yaml", "some.tfrecord"])


def full(descriptor):
    """Whether a pipe has stopped filling."""
    def held():
        return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0]
    before = held()
    time.sleep(0.5)
    return before > 0 and held() == before


def catches(pid):
    """Whether the process has a handler for TERM."""
    with open(f"/proc/{pid}/status") as f:
        caught = next(line for line in f if line.startswith("SigCgt:")).split()[1]
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


def stat(path):
    """What /proc tells of a process or thread behind its name."""
    with open(f"/proc/{path}/stat") as f:
        return f.read().rpartition(")")[2].split()


def sleeps(pid):
    """Whether all threads of a process wait for something, and did so a moment before."""
    def states():
        return [stat(f"{pid}/task/{thread}")[0] for thread in os.listdir(f"/proc/{pid}/task")]
    return "R" not in states() + states()


def ticks(pid):
    """Hundredths of a second that a process has computed for."""
    return int(stat(pid)[11])


class Children(Case):
    def test_they_do_not_outlive_a_kill(self):
        """What the shell has started too."""
        for command in (f"sleep {self.mark}", f"cat some.tfrecord; sleep {self.mark} | cat", f"sleep {self.mark} & wait"):
            self.job(COMMAND % (command, ""))
            p = self.start("train", "job.yaml")
            self.until(lambda: self.sleepers() == 1)
            p.kill()
            self.until(lambda: self.sleepers() == 0, 10)
            self.assertEqual(p.wait(), -signal.SIGKILL)

    def test_what_a_command_leaves_behind_ends_with_it(self):
        self.job(COMMAND % (f"sleep {self.mark} >&- & cat some.tfrecord", ""), epochs=3)
        p = self.start("train", "job.yaml")
        self.assertEqual(p.wait(timeout=60), 0)
        self.until(lambda: self.sleepers() == 0, BOUND_S)


class Lost(Case):
    """Lines that did not arrive: what was to be done is done, and the exit code is 6."""

    def gone(self):
        inside, outside = os.pipe()
        os.close(inside)
        return outside

    def full(self):
        return os.open("/dev/full", os.O_WRONLY)

    def check(self, *arguments):
        for broken in (self.gone, self.full):
            output = broken()
            p = self.start(*arguments, stdout=output)
            os.close(output)
            self.assertEqual(p.wait(timeout=120), 6, f"{broken.__name__} {arguments}")
            self.assertEqual(p.stderr.read().count(b"standard output"), 1, f"{broken.__name__} {arguments}")

    def test_training(self):
        self.job(RANDOM)
        for arguments in ([], ["--json"], ["--json=steps"]):
            self.check("train", "job.yaml", *arguments)
            self.assertEqual(self.steps_kept(), 500)
            os.remove(self.path("job.plim/checkpoint.safetensors"))

    def test_a_terminal_that_is_gone(self):
        self.job(RANDOM, epochs=20)
        ours, theirs = pty.openpty()
        p = self.start("train", "job.yaml", stdout=theirs)
        os.close(theirs)
        os.read(ours, 1)
        os.close(ours)
        self.assertEqual(p.wait(timeout=120), 6)
        self.assertEqual(self.steps_kept(), 10000)

    def test_the_others(self):
        self.job(RANDOM)
        for arguments in (["--help"], ["--version"], ["train", "--help"], ["plan", "job.yaml"], ["plan", "job.yaml", "--json"],
                          ["summary", "job.yaml"], ["summary", "job.yaml", "--json"], ["bench", "job.yaml", "--steps", "3"],
                          ["bench", "job.yaml", "--steps", "3", "--json"], ["data", "--help"], ["data", "inspect", "job.yaml"],
                          ["data", "inspect", "job.yaml", "--json"], ["data", "explain", "job.yaml", "--plan"],
                          ["data", "bench", "job.yaml"], ["data", "bench", "job.yaml", "--json"],
                          ["data", "index", "some.tfrecord"], ["data", "convert", "job.yaml", "--output", "x.tfrecord"],
                          ["data", "shard", "job.yaml", "--shards", "2", "--output", "part", "--json"]):
            self.check(*arguments)


if __name__ == "__main__":
    unittest.main(verbosity=2)
