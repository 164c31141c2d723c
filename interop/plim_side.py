"""What comparisons share: running plim from given weights on given data, and judging errors.

Error is max|a-b| / max|b|."""
import json, subprocess, tempfile
import numpy as np
from safetensors.numpy import load_file, save_file

results = {True: 0, False: 0}


def check(what, error, bar):
    good = bool(error <= bar)
    results[good] += 1
    print(f"{'ok   ' if good else 'FAILS'} {what}: {error:.2e} (bar {bar:.0e})", flush=True)


def error(a, b, beside=0):
    """beside: what a and b are compared with where it is more than b."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape or not np.isfinite(a).all():
        return np.inf
    return np.abs(a - b).max() / max(np.abs(b).max(), beside, 1e-30)


def path_inside(layer, weight):
    """What plim calls a weight of a layer that has layers inside: cells of recurrent layers go by their class, but for those of RNN."""
    of_class = {} if type(layer).__name__ in ("RNN", "StackedRNNCells") else {
        "LSTMCell": "lstm_cell", "GRUCell": "gru_cell", "SimpleRNNCell": "simple_rnn_cell"}
    for inner in layer._flatten_layers(include_self=False, recursive=False):
        if any(w is weight for w in inner.weights):
            name = of_class.get(type(inner).__name__, inner.name)
            return f"{name}/{path_inside(inner, weight)}"
    return weight.name


def finish():
    print(f"{results[True]} passed, {results[False]} failed")
    return results[False] > 0


def train(plim, weights, model, arrays, batch, steps, memory="1GiB", validation=None, before=None, repeat=True, **words):
    """weights: plim's names to arrays; None: those of the model's file. arrays: columns in order, or by name. words: of the job's
    part `train`. validation: arrays by name for another split; before: makes files in the folder. Returns losses by step, the epoch's event and weights afterwards; None when plim fails."""
    source = {"npz": "data.npz"} if isinstance(arrays, dict) else {"npy": [f"{i}.npy" for i in range(len(arrays))]}
    job = {"memory": memory, "seed": 1, "model": model,
           "data": {"train": {**source, "pipeline": [{"repeat": -1}, {"batch": batch}] if repeat else [{"batch": batch}]}},
           "train": {"epochs": 1, "steps_per_epoch": steps, "save_weights": "after.safetensors", **words}}
    if weights is not None:
        job["train"]["load_weights"] = "before.safetensors"
    if validation:
        job["data"]["validation"] = {"npz": "validation.npz", "pipeline": [{"batch": batch}]}
    with tempfile.TemporaryDirectory() as folder:
        if before:
            before(folder)
        if validation:
            np.savez(f"{folder}/validation.npz", **validation)
        if isinstance(arrays, dict):
            np.savez(f"{folder}/data.npz", **arrays)
        else:
            for i, a in enumerate(arrays):
                np.save(f"{folder}/{i}.npy", a)
        if weights is not None:
            save_file({k: np.ascontiguousarray(w).reshape(np.shape(w)) for k, w in weights.items()}, f"{folder}/before.safetensors")
        with open(f"{folder}/job.yaml", "w") as f:
            json.dump(job, f)
        r = subprocess.run([plim, "train", f"{folder}/job.yaml", "--json=steps"], capture_output=True, text=True, timeout=600)
        if r.returncode:
            print(r.stderr)
            return None
        events = [json.loads(line) for line in r.stdout.splitlines()]
        return ([e["loss"] for e in events if e["event"] == "step"], [e for e in events if e["event"] == "epoch"][-1],
                load_file(f"{folder}/after.safetensors"))


def run_plim(plim, weights, model, x, y, optimizer, loss, batch, steps, metrics=("accuracy",), memory="1GiB"):
    """The same for x (an array, or arrays by name) and y; the accuracy in the place of the event."""
    arrays = {**x, "label": y} if isinstance(x, dict) else [x, y]
    ran = train(plim, weights, model, arrays, batch, steps, memory, optimizer=optimizer, loss=loss, metrics=list(metrics))
    return ran and (ran[0], ran[1].get("accuracy"), ran[2])
