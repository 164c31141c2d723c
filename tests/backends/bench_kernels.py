"""bench_kernels.py BENCH [TEST...] - the speed table (bench/kernels.c): which kernel ran. How fast it was is the machine's business."""
import json, os, re, subprocess, sys, unittest

BENCH = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
SANITIZED = "SANITIZED" in os.environ  # no memory figure means anything then


class Kernels(unittest.TestCase):

    def run_bench(self, *arguments, code=0):
        run = subprocess.run([BENCH, *arguments], capture_output=True, text=True, timeout=800)
        self.assertEqual(run.returncode, code, f"bench-kernels {' '.join(arguments)}\n{run.stderr}")
        return run

    def lines(self, *arguments):
        run = self.run_bench("--json", *arguments)
        machine, *lines, end = map(json.loads, run.stdout.splitlines())
        self.assertEqual((machine["event"], end["event"], end["status"]), ("machine", "end", "done"))
        self.assertGreater(min(machine["peak_gflops"], machine["peak_gb_per_s"]), 0)
        self.assertEqual(end["lines"], len(lines))
        return lines, end

    def test_a_line_says_what_ran(self):
        lines, end = self.lines("matmul", "relu*", "conv2d", "--memory", "160MiB")
        self.assertEqual({line["op"] for line in lines}, {"matmul", "relu", "relu_gradient", "conv2d"})
        for line in lines:
            self.assertRegex(line["implementation"], "^(own (amx|avx512_bf16|avx512|avx2|plain)|onednn .*)$", line)
            self.assertFalse(line["reference"])
            self.assertIn(line["bound"], ("compute", "memory"))
            self.assertGreater(min(line["seconds"], line["gflops"], line["gb_per_s"], line["share"]), 0, line)
            self.assertGreater(line["peak_gflops"], 0)
            self.assertEqual(line["roof"] < 1, line["bound"] == "memory", line)
            self.assertFalse(line["large"] and line["roof"] < 1, line)
        self.assertTrue([line for line in lines if line["large"]])
        for model in ("gpt2 ", "mlp ", "resnet50 ", "mobilenetv2 "):
            self.assertTrue([line for line in lines if line["size"].startswith(model)], model)
        if not SANITIZED:
            self.assertLessEqual(end["peak_rss_bytes"], 160 * MIB)

    def test_every_op_is_there_and_none_is_slow(self):
        with open(os.path.join(ROOT, "doc", "ops.md")) as f:
            ops = re.findall(r"^\| `(\w+)` \|", f.read(), re.M)
        lines, end = self.lines("--once", "*loss*" if SANITIZED else "*")
        seen = {line["op"] for line in lines}
        self.assertEqual(seen, {op for op in ops if "loss" in op or not SANITIZED})
        self.assertEqual([line for line in lines if line["type"] == "float32" and line.get("reference")], [])
        self.assertEqual(end["skipped"], 0)

    def test_one_type_alone(self):
        lines, _ = self.lines("softmax", "--type", "bfloat16", "--steps", "7")
        self.assertEqual({line["type"] for line in lines}, {"bfloat16"})

    def test_people_see_a_table(self):
        run = self.run_bench("softmax")
        self.assertRegex(run.stdout, r"one thread: at best [0-9.]+ GFLOP/s")
        self.assertRegex(run.stdout, r"(?m)^softmax +\(.*\) +float32 .* %  own ")
        self.assertIn("0 by the slow reference", run.stdout)

    def test_what_it_refuses(self):
        self.assertIn("try: softmax", self.run_bench("sofmax", code=2).stderr)
        self.assertIn("--memory 64MiB", self.run_bench("relu", "--memory", "20MiB", code=4).stderr)
        self.run_bench("relu", "--set", "train.epochs=1", code=2)
        self.assertIn("bfloat16", self.run_bench("relu", "--type", "int8", code=2).stderr)
        self.assertIn("at least 1", self.run_bench("relu", "--steps", "0", code=2).stderr)
        self.assertIn("needs a value", self.run_bench("relu", "--type", code=2).stderr)
        error = json.loads(self.run_bench("sofmax", "--json", code=2).stdout)
        self.assertEqual((error["event"], error["code"], error["try"]), ("error", "USAGE", "softmax"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
