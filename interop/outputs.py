"""Models of several outputs: plim against Keras's compile() and fit(): losses, weights of losses, metrics by output.

One epoch of three steps of SGD, validation behind it: every number that Keras reports is compared, and every weight."""
import sys
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, train

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
only = sys.argv[2:]
rng = np.random.default_rng(7)
N, BATCH = 36, 12


def model_of(functional=True):
    """A trunk, and three outputs: classes, bits that another output reads too, and a number."""
    keras.utils.set_random_seed(4)
    x = layers.Input((6,), name="x")
    h = layers.Dense(5, activation="relu", name="trunk")(x)
    kind = layers.Dense(4, activation="softmax", name="kind")(h)
    flags = layers.Dense(3, activation="sigmoid", name="flags")(h)
    size = layers.Dense(1, name="size")(layers.Concatenate(name="both")([h, flags]))
    return keras.Model(x, [kind, flags, size])


WORDS = {"outputs": ["kind", "flags", "size"], "layers": [
    {"Input": {"shape": [6], "name": "x"}}, {"Dense": {"units": 5, "activation": "relu", "name": "trunk"}},
    {"Dense": {"units": 4, "activation": "softmax", "name": "kind", "inputs": "trunk"}},
    {"Dense": {"units": 3, "activation": "sigmoid", "name": "flags", "inputs": "trunk"}},
    {"Concatenate": {"name": "both", "inputs": ["trunk", "flags"]}}, {"Dense": {"units": 1, "name": "size", "inputs": "both"}}]}


def data(n):
    return {"x": rng.normal(size=(n, 6)).astype(np.float32), "kind": rng.integers(0, 4, n).astype(np.int32),
            "flags": rng.integers(0, 2, (n, 3)).astype(np.float32), "size": rng.normal(size=n).astype(np.float32)}


def labels(arrays, names):
    return {k: arrays[k] for k in names}


def compare(what, compiled, words, names=("kind", "flags", "size"), bar=2e-5, unnamed=False, weighted=False, whole=None):
    """compiled: of Keras's compile(); words: of the job's part train. whole: a file that says them instead."""
    if only and not any(word in what for word in only):
        return
    fit, validation = data(N), data(24)
    whose = [f"{k}_sample_weight" for k in names] if weighted == "each" else ["sample_weight"] if weighted else []
    for k in whose:
        fit[k], validation[k] = (rng.random(len(a["x"])).astype(np.float32) for a in (fit, validation))
    of_samples = lambda a: [a[k] for k in whose] if len(whose) > 1 else a[whose[0]] if whose else None
    model = model_of()
    weights = {f"{layer.name}/{w.name}": w for layer in model.layers for w in layer.weights}
    before = {k: w.numpy().copy() for k, w in weights.items()}
    model.compile(optimizer=keras.optimizers.SGD(0.5), **compiled)
    kept = ["x", *names, *whose]
    arrays, checks = {k: fit[k] for k in kept}, {k: validation[k] for k in kept}
    if unnamed:
        rename = {k: k if k == "x" else f"column_{i}" for i, k in enumerate(kept)}
        arrays, checks = ({rename[k]: v for k, v in a.items()} for a in (arrays, checks))
    if whole:
        ours = train(plim, None, "model.keras", arrays, BATCH, N // BATCH, validation=checks, before=lambda folder: model.save(f"{folder}/model.keras"), **words)
    else:
        ours = train(plim, before, WORDS, arrays, BATCH, N // BATCH, validation=checks, optimizer={"SGD": 0.5}, **words)
    y, val_y = ([a[k] if k in names else None for k in ("kind", "flags", "size")] for a in (fit, validation))
    if None in [a if a is None else 0 for a in y]:
        y, val_y = ([a for a in b if a is not None] for b in (y, val_y))
    logs = model.fit(fit["x"], y, sample_weight=of_samples(fit), batch_size=BATCH, shuffle=False, epochs=1, verbose=0,
                     validation_data=(validation["x"], val_y) + ((of_samples(validation),) if whose else ()), validation_batch_size=BATCH).history
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    _, epoch, after = ours
    for name, (value,) in logs.items():
        check(f"{what}: {name}", abs(epoch.get(name, np.inf) - value) / max(abs(value), 1), bar)
    extra = set(epoch) - set(logs) - {"event", "epoch", "steps", "samples", "seconds", "rss_bytes", "skipped_steps", "notes"}
    check(f"{what}: nothing else is reported {sorted(extra)}", len(extra), 0)
    for k, w in weights.items():
        check(f"{what}: {k}", error(after[k], w.numpy()), bar)


scce, bce = "sparse_categorical_crossentropy", "binary_crossentropy"
for unnamed in (False, True):
    compare(f"a map, {'in order' if unnamed else 'by name'}", dict(loss={"kind": scce, "flags": bce, "size": "mse"}, loss_weights={"kind": 1.0, "flags": 0.3, "size": 2.0},
            metrics={"kind": ["accuracy"], "flags": ["binary_accuracy", "mae"]}),
            dict(loss={"kind": scce, "flags": bce, "size": "mse"}, loss_weights={"kind": 1.0, "flags": 0.3, "size": 2.0},
                 metrics={"kind": ["accuracy"], "flags": ["binary_accuracy", "mae"]}), unnamed=unnamed)
compare("lists", dict(loss=[scce, bce, keras.losses.Huber(delta=0.5)], loss_weights=[0.5, 1.5, 1.0], metrics=["accuracy", ["mse", "accuracy"], "mae"]),
        dict(loss=[scce, bce, {"Huber": {"delta": 0.5}}], loss_weights=[0.5, 1.5, 1.0], metrics=["accuracy", ["mse", "accuracy"], "mae"]))
compare("weights of samples", dict(loss=[scce, bce, "mse"]), dict(loss=[scce, bce, "mse"]), weighted=True)
metered = dict(loss=[scce, bce, "mse"], metrics=["accuracy", None, "mae"], weighted_metrics=["accuracy", ["binary_accuracy", "mse"], None])
compare("weights of samples, metrics", metered, metered, weighted=True)
for unnamed in (False, True):
    compare(f"weights by output, {'in order' if unnamed else 'by name'}", metered, metered, weighted="each", unnamed=unnamed)
compare("an output without a loss", dict(loss=[scce, None, "mse"]), dict(loss={"kind": scce, "flags": None, "size": "mse"}), names=("kind", "size"))
compare("a file with compile_config", dict(loss={"kind": scce, "flags": bce, "size": "mse"}, loss_weights={"kind": 1.0, "flags": 0.3, "size": 2.0},
        metrics={"kind": ["accuracy"], "size": [keras.metrics.MeanAbsoluteError(name="far")]}), {}, whole=True)
compare("a file with compile_config, lists", dict(loss=[keras.losses.SparseCategoricalCrossentropy(), None, keras.losses.MeanAbsoluteError()], loss_weights=[0.5, 1.0, 1.0]), {},
        whole=True, names=("kind", "size"))
sys.exit(finish())
