"""end_to_end_planner.py PLIM [TEST...] - a budget below what a step would like to hold changes time, and nothing else: the same weights,
a measured peak within the predicted one and within the budget, and a smallest budget that is the truth. BUDGETS (4): how many a model."""
import json, os, shutil, subprocess, sys, tempfile, unittest

PLIM = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
BUDGETS = int(os.environ.get("BUDGETS", "4"))

JOB = """seed: 7
data:
  train: {random: {elements: %d, shape: %s, classes: %d, seed: 1}, pipeline: [shuffle: exact, batch: %d]}
model: %s
train: {optimizer: adam, loss: %s, epochs: %d, callbacks: [checkpoint: %s]}
"""


def job(layers, shape, batch, classes=10, epochs=1, checkpoint="none"):
    loss = "binary_crossentropy" if classes == 1 else "sparse_categorical_crossentropy"
    return JOB % (3 * batch - batch // 3, json.dumps(shape), classes, batch, json.dumps(layers), loss, epochs, checkpoint)


LAST = [{"Dense": {"units": 10, "activation": "softmax"}}]


def conv(filters, size=3, **more):
    return {"Conv2D": {"filters": filters, "kernel_size": size, "padding": "same", **more}}


def residual():
    """Convolutions with normalisation and dropout, each block added to what it reads."""
    layers = [conv(16, name="x0")]
    for k in range(4):
        layers += [conv(16, 3), "BatchNormalization", "ReLU", {"Dropout": 0.25}, conv(16, 1), {"BatchNormalization": {"name": f"y{k}"}},
                   {"Add": {"inputs": [f"x{k}", f"y{k}"], "name": f"x{k + 1}"}}]
    return layers + ["GlobalAveragePooling2D", *LAST]


def skips():
    """What comes down is kept for the way up."""
    def block(filters, name):
        return [conv(filters), "BatchNormalization", {"Activation": {"activation": "gelu", "name": name}}]

    down = [*block(16, "a0"), *block(16, "a"), {"MaxPooling2D": 2}, *block(32, "b0"), *block(32, "b"), {"MaxPooling2D": 2}]
    up = [*block(32, "c"), {"UpSampling2D": {"size": 2, "name": "b2"}}, {"Concatenate": {"inputs": ["b", "b2"]}}, *block(16, "d0"), *block(16, "d"),
          {"UpSampling2D": {"size": 2, "name": "a2"}}, {"Concatenate": {"inputs": ["a", "a2"]}}, *block(16, "e")]
    return down + up + ["GlobalAveragePooling2D", *LAST]


def attention():
    layers = [{"Dense": {"units": 64, "name": "x0"}}]
    for k in range(4):
        layers += [{"LayerNormalization": {"name": f"n{k}"}}, {"MultiHeadAttention": {"num_heads": 4, "key_dim": 16, "dropout": 0.1, "inputs": [f"n{k}", f"n{k}"],
                                                                                     "name": f"h{k}"}},
                   {"Add": {"inputs": [f"x{k}", f"h{k}"], "name": f"s{k}"}}, "LayerNormalization", {"Dense": {"units": 256, "activation": "gelu"}},
                   {"Dense": {"units": 64, "name": f"m{k}"}}, {"Add": {"inputs": [f"s{k}", f"m{k}"], "name": f"x{k + 1}"}}]
    return layers + ["GlobalAveragePooling1D", *LAST]


def wide(**more):
    """Weights and states are larger than values; validation reads them too."""
    text = job([{"Dense": {"units": 700, "activation": "gelu"}}] * 4 + LAST, [300], 64, **more)
    validation = "  validation: {random: {elements: 100, shape: [300], classes: 10, seed: 2}, pipeline: [batch: 64]}\n"
    return text.replace("model:", validation + "model:", 1)


def small(**more):
    """oneDNN takes more of the process than all tensors together."""
    def valid(filters):
        return [{"Conv2D": {"filters": filters, "kernel_size": 3, "activation": "relu"}}, {"MaxPooling2D": 2}]

    return job([*valid(32), *valid(64), "Flatten", {"Dense": {"units": 128, "activation": "relu"}}, *LAST], [28, 28, 1], 16, **more)


MODELS = {
    "small": small,
    "wide": wide,
    "residual": lambda **more: job(residual(), [32, 32, 3], 32, **more),
    "skips": lambda **more: job(skips(), [32, 32, 3], 32, **more),
    "attention": lambda **more: job(attention(), [128, 32], 24, **more),
    "deep": lambda **more: job([{"Dense": {"units": 128, "activation": "gelu"}}] * 40 + [{"Dense": {"units": 1, "activation": "sigmoid"}}], [100], 1024, classes=1, **more),
}


class Planner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(self.folder.cleanup)

    def job(self, name, file="job.yaml", **more):
        path = os.path.join(self.folder.name, file)
        with open(path, "w") as f:
            f.write(MODELS[name](**more))
        return path

    def run_plim(self, *arguments, code=0):
        """The last event of each kind."""
        r = subprocess.run([PLIM, *map(str, arguments), "--json"], capture_output=True, text=True, cwd=self.folder.name, timeout=280)
        self.assertEqual(r.returncode, code, f"plim {' '.join(map(str, arguments))}\n{r.stderr}")
        return {event["event"]: event for event in map(json.loads, r.stdout.splitlines())}

    def plan(self, path, memory, code=0):
        return self.run_plim("plan", path, "--memory", memory, code=code)["plan"]

    def budgets(self, path, count):
        """From the smallest budget that works to one that leaves nothing to wish for."""
        plan = self.plan(path, "auto")
        smallest, most = plan["smallest_budget_bytes"], plan["frontier"][0]["bytes"]
        self.assertLess(smallest, most)
        return [smallest + (most + MIB - smallest) * k // (count - 1) for k in range(count)]

    def check_peak(self, end, budget):
        measured, predicted = end["peak_rss_bytes"], end["predicted_peak_bytes"]
        self.assertLessEqual(measured, budget)
        self.assertLessEqual(measured, predicted)
        self.assertLessEqual(predicted, budget)
        self.assertLessEqual(predicted - measured, max(0.05 * measured, 4 * MIB))

    def test_a_budget_changes_time_and_nothing_else(self):
        for name in MODELS:
            with self.subTest(name):
                path = self.job(name)
                ends, plans = [], []
                for k, budget in enumerate(self.budgets(path, BUDGETS)):
                    events = self.run_plim("train", path, "--memory", budget, "--digest", "--threads", 2 - k % 2)
                    self.check_peak(events["end"], budget)
                    ends.append(events["end"])
                    plans.append(events["plan"])
                self.assertEqual(len({(e["weights_digest"], e["optimizer_digest"]) for e in ends}), 1)
                self.assertGreater(plans[0]["relative_time"], 1)
                self.assertEqual(plans[-1]["relative_time"], 1)

    def test_the_smallest_budget_is_the_truth(self):
        for name in MODELS:
            with self.subTest(name):
                path = self.job(name)
                smallest = self.plan(path, "auto")["smallest_budget_bytes"]
                self.check_peak(self.run_plim("train", path, "--memory", smallest)["end"], smallest)
                error = self.run_plim("train", path, "--memory", smallest * 99 // 100, code=4)["error"]
                self.assertEqual(error["code"], "OVER_BUDGET")
                told = int(error["try"].split("--memory ")[1].split("KiB")[0]) * 1024
                self.assertLessEqual(abs(told - smallest), 256 * 1024)

    def test_more_memory_is_never_slower(self):
        for name in MODELS:
            path = self.job(name)
            plans = [self.plan(path, budget) for budget in self.budgets(path, 3 * BUDGETS)]
            for less, more in zip(plans, plans[1:]):
                self.assertLessEqual(more["relative_time"], less["relative_time"], name)
            for plan in plans:
                self.assertLessEqual(plan["predicted_peak_bytes"], plan["budget_bytes"], name)
            frontier = plans[0]["frontier"]
            for more, less in zip(frontier, frontier[1:]):
                self.assertLess(less["bytes"], more["bytes"], name)
                self.assertGreater(less["relative_time"], more["relative_time"], name)
            self.assertEqual(frontier[-1]["bytes"], plans[0]["smallest_budget_bytes"])

    def test_what_is_dropped_can_be_stated(self):
        path = self.job("residual")
        free = self.plan(path, "auto")
        never, always = (self.run_plim("train", path, "--digest", "--set", f"plan={{recompute: {rule}, spill: never}}") for rule in ("never", "always"))
        some = self.run_plim("train", path, "--digest", "--set", "plan={recompute: [conv2d_1, y0], spill: never}")
        self.assertEqual(len({e["end"]["weights_digest"] for e in (never, always, some)}), 1)
        self.assertEqual((never["plan"]["techniques"]["recompute"], never["plan"]["relative_time"], len(never["plan"]["frontier"])), (0, 1, 1))
        self.assertAlmostEqual(never["plan"]["smallest_budget_bytes"], free["frontier"][0]["bytes"], delta=256 * 1024)
        self.assertGreater(always["plan"]["techniques"]["recompute"], some["plan"]["techniques"]["recompute"])
        self.assertGreater(some["plan"]["techniques"]["recompute"], 0)
        self.assertGreater(always["plan"]["relative_time"], some["plan"]["relative_time"])
        self.assertGreater(some["plan"]["relative_time"], 1)
        self.assertEqual(len(always["plan"]["frontier"]), 1)
        self.check_peak(always["end"], always["plan"]["smallest_budget_bytes"])
        self.run_plim("train", path, "--set", "plan={recompute: never, spill: never}", "--memory", free["smallest_budget_bytes"], code=4)

    def test_what_is_spilled_can_be_stated(self):
        for name in set(MODELS) - {"wide", "small"}:  # which have no values that are worth it
            path = self.job(name)
            with self.subTest(name):
                never, always, both = (self.run_plim("train", path, "--digest", "--set", f"plan={rules}", "--threads", threads)
                                       for threads, rules in enumerate(("{recompute: never, spill: never}", "{recompute: never, spill: always}",
                                                                        "{recompute: always, spill: always}"), 1))
                self.assertEqual(len({(e["end"]["weights_digest"], e["end"]["optimizer_digest"]) for e in (never, always, both)}), 1)
                self.assertEqual((never["plan"]["techniques"]["spill"], never["plan"]["spill_bytes"]), (0, 0))
                for e in (always, both):
                    self.check_peak(e["end"], e["plan"]["budget_bytes"])
                    self.assertGreater(e["plan"]["relative_time"], 1)
                self.assertGreater(always["plan"]["techniques"]["spill"], 0)
                self.assertGreater(always["plan"]["spill_bytes"], always["plan"]["techniques"]["spill"] << 18)
                if name != "attention":  # its peak is inside one layer's gradient
                    self.assertLess(always["plan"]["smallest_budget_bytes"], never["plan"]["smallest_budget_bytes"])

    def test_what_is_paged_can_be_stated(self):
        path = self.job("wide")
        rules = ("never", "[optimizer]", "[weights]", "[weights, optimizer]")
        runs = [self.run_plim("train", path, "--digest", "--set", f"plan.page={rule}", "--threads", 1 + k % 2) for k, rule in enumerate(rules)]
        self.assertEqual(len({(r["end"]["weights_digest"], r["end"]["optimizer_digest"], r["end"].get("val_loss")) for r in runs}), 1)
        self.assertEqual((runs[0]["plan"]["techniques"]["page"], runs[0]["plan"]["page_bytes"]), (0, 0))
        for r in runs[1:]:
            self.assertGreater(r["plan"]["techniques"]["page"], 2)
            self.assertGreater(r["plan"]["page_bytes"], r["plan"]["techniques"]["page"] << 18)
            self.assertGreater(r["plan"]["relative_time"], 1)
            self.check_peak(r["end"], r["plan"]["budget_bytes"])
            self.assertLess(r["plan"]["smallest_budget_bytes"], runs[0]["plan"]["smallest_budget_bytes"])
        self.assertLess(runs[3]["plan"]["smallest_budget_bytes"], runs[1]["plan"]["smallest_budget_bytes"])
        averaged = self.run_plim("train", path, "--set", "train.optimizer={adam: {use_ema: true}}", "--set", "plan.page=[weights, optimizer]")
        self.assertEqual(averaged["plan"]["techniques"]["page"], 0)  # an average and its weight change places in the end
        for rule, told in (("nver", "unknown word 'nver'"), ("[states]", "unknown word 'states'"), ("{weights: 1}", "expected a word or a list")):
            self.assertIn(told, self.run_plim("plan", path, "--set", f"plan={{page: {rule}}}", code=2)["error"]["message"])
        for disk, why in (("0MiB", "nothing can be paged"), ("2MiB", "what is paged passes")):
            for command in ("plan", "train"):
                error = self.run_plim(command, path, "--set", "plan.page=[weights]", "--disk", disk, code=4)["error"]
                self.assertEqual(error["code"], "OVER_DISK")
                self.assertIn(why, error["message"])

    def test_states_of_every_optimizer_pass_in_pieces(self):
        """Those of a layer have more than 8 MiB; what else an update computes shares their instructions."""
        layers = [{"Dense": {"units": 1100, "activation": "relu"}}] * 2 + LAST
        path = os.path.join(self.folder.name, "pieces.yaml")
        with open(path, "w") as f:
            f.write(job(layers, [64], 16))
        scaled = "{loss_scale_optimizer: {inner_optimizer: {lamb: {weight_decay: 0.01}}}}"
        for optimizer in ("{adamw: {clipnorm: 1.0}}", "{lamb: {weight_decay: 0.01}}", scaled, "{rmsprop: {centered: true, momentum: 0.9}}",
                          "{adam: {amsgrad: true, global_clipnorm: 1.0}}", "{adam: {gradient_accumulation_steps: 2}}", "nadam", "ftrl"):
            for precision in ("float32", "mixed_float16"):
                with self.subTest(optimizer, precision=precision):
                    rules = ["--set", f"train.optimizer={optimizer}", "--set", f"train.precision={precision}", "--digest"]
                    kept, paged = (self.run_plim("train", path, *rules, "--set", f"plan.page={page}") for page in ("never", "[optimizer]"))
                    self.assertGreater(paged["plan"]["techniques"]["page"], 0)
                    for digest in ("weights_digest", "optimizer_digest"):
                        self.assertEqual(kept["end"][digest], paged["end"][digest])

    def test_what_was_paged_comes_back(self):
        """Checkpoints, given weights and a killed run."""
        path = self.job("wide", epochs=2, checkpoint="{every: 1}")
        smallest = self.plan(path, "auto")["smallest_budget_bytes"]
        expected = self.run_plim("train", path, "--digest", "--checkpoint", "whole")["end"]
        first = self.job("wide", "first.yaml", epochs=1, checkpoint="{every: 1}")
        self.run_plim("train", first, "--memory", smallest, "--checkpoint", "paged", "--set", "train.save_weights=paged.safetensors")
        self.run_plim("train", first, "--checkpoint", "resident", "--set", "train.save_weights=resident.safetensors")
        saved = []
        for name in ("paged", "resident"):
            with open(os.path.join(self.folder.name, f"{name}.safetensors"), "rb") as f:
                saved.append(f.read())
        self.assertEqual(*saved)
        for folder, memory in (("paged", "auto"), ("resident", smallest)):
            end = self.run_plim("train", path, "--memory", memory, "--checkpoint", folder, "--resume", "--digest")["end"]
            self.assertEqual((end["weights_digest"], end["optimizer_digest"]), (expected["weights_digest"], expected["optimizer_digest"]), folder)
        given = [self.run_plim("train", first, "--memory", memory, "--digest", "--checkpoint", "given", "--set", "train.load_weights=paged.safetensors")["end"]
                 for memory in ("auto", smallest)]
        self.assertEqual(given[0]["weights_digest"], given[1]["weights_digest"])

    def test_no_more_is_spilled_than_the_disk_has_room_for(self):
        path = self.job("residual")
        whole = self.run_plim("plan", path, "--set", "plan.spill=always")["plan"]
        for disk in (whole["spill_bytes"] // 2, 2 * whole["spill_bytes"]):
            plan = self.run_plim("train", path, "--set", "plan.spill=always", "--disk", disk)["plan"]
            self.assertGreater(plan["spill_bytes"], disk // 4)
            self.assertLessEqual(plan["spill_bytes"], disk // 2)
        smallest = whole["frontier"][0]["bytes"]
        for options, why in ((["--scratch", "/dev/shm"], "it is in memory"), (["--scratch", "/not/there"], "no scratch file can be made"),
                             (["--disk", "0MiB"], "--disk leaves no room")):
            error = self.run_plim("train", path, "--set", "plan.spill=always", *options, code=4)["error"]
            self.assertIn(why, error["message"])
            events = self.run_plim("train", path, *options)  # what is not needed is not asked for
            self.assertEqual(events["plan"]["spill_bytes"], 0)

    def test_the_disk_does_not_make_plans_worse(self):
        """Within what the model of a step is off by: plans of the smallest models differ from it by some percent."""
        for name in MODELS:
            path = self.job(name)
            with self.subTest(name):
                never = self.run_plim("plan", path, "--set", "plan.spill=never")["plan"]
                self.assertLessEqual(self.plan(path, "auto")["smallest_budget_bytes"], 1.05 * never["smallest_budget_bytes"])
                for point in never["frontier"][1::2]:
                    budget = int(1.05 * point["bytes"])
                    stated = self.run_plim("plan", path, "--memory", budget, "--set", "plan.spill=never")["plan"]["relative_time"]
                    self.assertLessEqual(self.plan(path, budget)["relative_time"], stated + 0.05)

    def test_a_run_says_what_the_next_plan_goes_by(self):
        path = self.job("residual", epochs=3, checkpoint="{every: 100}")
        kept = os.path.join(self.folder.name, "job.plim", "calibration.json")
        nominal = self.plan(path, "auto")
        self.assertFalse(nominal["calibrated"])
        budget = (nominal["smallest_budget_bytes"] + nominal["frontier"][0]["bytes"]) // 2
        first = self.run_plim("train", path, "--memory", budget, "--digest")
        with open(kept) as f:
            told = json.load(f)
        self.assertGreater(told["disk_bytes"], 1e6)
        self.assertGreater(len(told["ops"]), 30)
        self.assertTrue(all(0 < seconds < 10 and nominal > 0 for op, layer, seconds, nominal in told["ops"]))
        told["ops"] = [[op, layer, (20 if "conv" in op else 1) * nominal, nominal] for op, layer, seconds, nominal in told["ops"]]
        with open(kept, "w") as f:
            json.dump(told, f)
        plans = [self.plan(path, budget), self.run_plim("plan", path, "--memory", budget)["plan"]]
        second = self.run_plim("train", path, "--memory", budget, "--digest")
        plans.append(second["plan"])
        for plan in plans:
            self.assertTrue(plan["calibrated"])
            self.assertEqual((plan["techniques"], plan["relative_time"]), (plans[0]["techniques"], plans[0]["relative_time"]))
            self.assertEqual([p["relative_time"] for p in plan["frontier"]], [p["relative_time"] for p in plans[0]["frontier"]])
        self.assertNotEqual([p["relative_time"] for p in plans[0]["frontier"]], [p["relative_time"] for p in nominal["frontier"]])
        self.assertEqual(first["end"]["weights_digest"], second["end"]["weights_digest"])
        with open(kept) as f:
            rate = json.load(f)["disk_bytes"]
        self.assertEqual(self.run_plim("train", path, "--memory", "auto")["plan"]["spill_bytes"], 0)
        with open(kept) as f:
            self.assertEqual(json.load(f)["disk_bytes"], rate)  # a run that moves nothing hands it on
        self.assertFalse(self.run_plim("plan", path, "--threads", 1)["plan"]["calibrated"])
        for text in ("", "{", "[]", '{"format": "plimsoll calibration 2"}', '{"ops": [["a", "b", 1, 0]]}', json.dumps(told) + "x", json.dumps(told).replace("avx", "neon")):
            with open(kept, "w") as f:
                f.write(text)
            plan = self.plan(path, budget)
            self.assertEqual((plan["calibrated"], plan["techniques"]), (False, first["plan"]["techniques"]), text[:60])

    def test_what_a_run_says_takes_no_memory(self):
        """Whatever it says: where the job has run it goes on, in the smallest budget too."""
        for name in ("residual", "wide", "skips", "small"):
            path = self.job(name, epochs=1, checkpoint="{every: 100}")
            again = self.job(name, "again.yaml", epochs=2, checkpoint="{every: 100}")
            smallest = self.plan(path, "auto")["smallest_budget_bytes"]
            self.run_plim("train", self.job(name, "long.yaml", epochs=2, checkpoint="{every: 100}"), "--memory", smallest, "--checkpoint", "kept")
            with open(os.path.join(self.folder.name, "kept", "calibration.json")) as f:
                told = json.load(f)
            self.run_plim("train", path, "--memory", smallest, "--checkpoint", "kept")
            for conv, disk in ((1, told["disk_bytes"]), (20, 1e6), (0.05, 1e10), (1, 0)):
                ops = [[op, layer, (conv if "conv" in op or "matmul" in op else 1) * seconds, nominal] for op, layer, seconds, nominal in told["ops"]]
                folder = os.path.join(self.folder.name, f"kept-{name}-{conv}-{disk}")
                shutil.copytree(os.path.join(self.folder.name, "kept"), folder)
                with open(os.path.join(folder, "calibration.json"), "w") as f:
                    json.dump({**told, "disk_bytes": disk, "ops": ops}, f)
                end = self.run_plim("train", again, "--memory", smallest, "--resume", "--checkpoint", folder)
                self.assertTrue(end["plan"]["calibrated"])
                self.check_peak(end["end"], smallest)
                times = [point["relative_time"] for point in end["plan"]["frontier"]]
                self.assertEqual(times[1:], sorted(times[1:]))
            shutil.rmtree(os.path.join(self.folder.name, "kept"))

    def test_unknown_techniques_are_refused(self):
        path = self.job("residual")
        for rule, told in (("allways", "unknown word 'allways'"), ("[]", "expected a word or a list"), ("{conv2d: 1}", "expected a word or a list"),
                           ("[conv2d_1, konv]", "no layer is named 'konv'"), ("[[conv2d_1]]", "expected the name of a layer")):
            error = self.run_plim("plan", path, "--set", f"plan={{recompute: {rule}}}", code=2)["error"]
            self.assertIn(told, error["message"], rule)
        for rule, told in (("nver", "unknown word 'nver'"), ("[conv2d_1]", "expected a word")):
            self.assertIn(told, self.run_plim("plan", path, "--set", f"plan={{spill: {rule}}}", code=2)["error"]["message"])

    def test_the_largest_batch_runs(self):
        path = self.job("residual")
        smallest = self.plan(path, "auto")["smallest_budget_bytes"]
        batch = self.plan(path, smallest - 6 * MIB, code=4)["largest_batch"]
        self.assertGreater(batch, 0)
        self.assertLess(batch, 32)
        self.run_plim("train", path, "--memory", smallest - 6 * MIB, "--set", f"data.train.pipeline.batch={batch}")

    def test_a_run_goes_on_in_another_budget(self):
        whole = self.job("residual", epochs=2)
        budgets = self.budgets(whole, 3)
        expected = self.run_plim("train", whole, "--digest")["end"]
        first = self.job("residual", "first.yaml", epochs=1, checkpoint="{every: 1}")
        self.run_plim("train", first, "--memory", budgets[2], "--checkpoint", "kept")
        again = self.job("residual", "again.yaml", epochs=2, checkpoint="{every: 1}")
        for technique in ("auto", "always"):
            folder = f"kept-{technique}"
            shutil.copytree(os.path.join(self.folder.name, "kept"), os.path.join(self.folder.name, folder))
            memory = budgets[0] if technique == "auto" else budgets[1]
            end = self.run_plim("train", again, "--memory", memory, "--checkpoint", folder, "--resume", "--digest", "--set", f"plan.spill={technique}")["end"]
            self.assertEqual((end["weights_digest"], end["optimizer_digest"]), (expected["weights_digest"], expected["optimizer_digest"]))


if __name__ == "__main__":
    unittest.main()
