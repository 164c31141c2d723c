"""Trains the same models from the same weights on the same data in plim and in Keras, and compares.

The gradient of every weight is compared through one step of SGD with learning rate 1:
the change of the weight is its gradient.
Prints a line a comparison and 'N passed, N failed' last."""
import glob, importlib, os, sys
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, path_inside, run_plim

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))


def names(model):
    """plim's name of every weight: the layer's name and Keras's word for the weight."""
    return {f"{layer.name}/{path_inside(layer, w)}": w for layer in model.layers for w in layer.weights}


def fresh_names(model):
    """Keras numbers layers over the whole process; plim over the model, as a new process would."""
    seen = {}
    for layer in model.layers:
        kind = keras.src.utils.naming.to_snake_case(type(layer).__name__)
        n = seen.get(kind, 0)
        seen[kind] = n + 1
        layer.name = f"{kind}_{n}" if n else kind
    return model


def run_keras(model, x, y, optimizer, loss, batch, steps):
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])
    losses = []
    for i in range(steps):
        rows = np.arange(i * batch, (i + 1) * batch) % len(x)
        logs = model.train_on_batch(x[rows], y[rows], return_dict=True)
        losses.append(float(logs["loss"]))
        model.reset_metrics() if i + 1 < steps else None
    return losses, float(logs["accuracy"])


def compare(what, model, layer_list, x, y, loss, batch, steps, bar, optimizer, metrics=("accuracy",), zero=()):
    """optimizer: (plim's words, Keras's object). zero: weights whose gradient is 0 but for rounding, in both."""
    fresh_names(model)
    before = {k: w.numpy().copy() for k, w in names(model).items()}
    ours = run_plim(plim, before, layer_list, x, y, optimizer[0], loss, batch, steps, metrics)
    theirs, their_accuracy = run_keras(model, x, y, optimizer[1], loss, batch, steps)
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    losses, accuracy, after = ours
    check(f"{what}: loss of {steps} step(s)", error(losses, theirs), bar)
    if steps == 1 and metrics:
        check(f"{what}: accuracy", abs(accuracy - their_accuracy), 1e-6)
    largest = max((np.abs(before[k] - w.numpy()).max() for k, w in names(model).items()), default=0)
    for k, w in names(model).items():
        if k in zero:
            if steps == 1:
                check(f"{what}: no gradient of {k}", np.abs(before[k] - after[k]).max() / largest, 1e-5)
        elif steps == 1:
            check(f"{what}: gradient of {k}", error(before[k] - after[k], before[k] - w.numpy()), bar)
        else:
            check(f"{what}: {k} after {steps} steps", error(after[k], w.numpy()), bar)


def both(what, build, layer_list, x, y, loss, batch, first_bar, more=None, metrics=("accuracy",), zero=()):
    """The first step's gradients, then `more` steps (count, bar, learning rate) of Adam."""
    compare(f"{what}, first step", build(), layer_list, x, y, loss, batch, 1, first_bar,
            ({"sgd": {"learning_rate": FAR}}, keras.optimizers.SGD(FAR)), metrics, zero)
    if more:
        steps, bar, rate = more
        compare(f"{what}, Adam", build(), layer_list, x, y, loss, batch, steps, bar,
                ({"adam": {"learning_rate": rate}}, keras.optimizers.Adam(rate)), zero=zero)


FAR = 4096.0  # so large a step that the weight before it takes no digits of the gradient
rng = np.random.default_rng(0)


def seeded(build):
    def make():
        keras.utils.set_random_seed(3)
        return build()
    return make


def images(n, h, w, c, classes=10):
    return rng.random((n, h, w, c), dtype=np.float32), rng.integers(0, classes, n).astype(np.int32)


# The two models that are used throughout.
x, y = rng.random((640, 100), dtype=np.float32), rng.integers(0, 2, 640).astype(np.float32)
both("MLP", seeded(lambda: keras.Sequential([layers.Input((100,)), layers.Dense(64, activation="relu"), layers.Dense(1, activation="sigmoid")])),
     [{"Dense": {"units": 64, "activation": "relu"}}, {"Dense": {"units": 1, "activation": "sigmoid"}}],
     x, y, "binary_crossentropy", 32, 1e-5, (50, 1e-4, 1e-3))

x, y = images(160, 64, 64, 3)
both("CNN", seeded(lambda: keras.Sequential([layers.Input((64, 64, 3)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
     layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(128, activation="relu"),
     layers.Dense(10, activation="softmax")])),
     [{"Conv2D": {"filters": 32, "kernel_size": 3, "activation": "relu"}}, {"MaxPooling2D": 2},
      {"Conv2D": {"filters": 64, "kernel_size": 3, "activation": "relu"}}, {"MaxPooling2D": 2}, "Flatten",
      {"Dense": {"units": 128, "activation": "relu"}}, {"Dense": {"units": 10, "activation": "softmax"}}],
     x, y, "sparse_categorical_crossentropy", 32, 1e-5, (5, 1e-3, 1e-4))

# Corners of the same layers: padding, strides, odd sizes, no bias, bytes as input, activations of their own.
x, y = images(24, 13, 11, 2, 5)
both("same padding, stride 2, no bias", seeded(lambda: keras.Sequential([layers.Input((13, 11, 2)),
     layers.Conv2D(6, (3, 5), strides=2, padding="same", use_bias=False), layers.ReLU(), layers.MaxPooling2D(3, strides=2, padding="same"),
     layers.Flatten(), layers.Dense(5, activation="softmax")])),
     [{"Conv2D": {"filters": 6, "kernel_size": [3, 5], "strides": 2, "padding": "same", "use_bias": False}}, "ReLU",
      {"MaxPooling2D": {"pool_size": 3, "strides": 2, "padding": "same"}}, "Flatten", {"Dense": {"units": 5, "activation": "softmax"}}],
     x, y, "sparse_categorical_crossentropy", 12, 1e-5)

x, y = rng.integers(0, 256, (24, 12, 12, 1)).astype(np.uint8), rng.integers(0, 4, 24).astype(np.uint8)
both("bytes, Rescaling, sigmoid inside", seeded(lambda: keras.Sequential([layers.Input((12, 12, 1)), layers.Rescaling(1 / 255),
     layers.Conv2D(8, 3, activation="sigmoid"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(7, activation="sigmoid"),
     layers.Dense(4, activation="softmax")])),
     [{"Rescaling": "1/255"}, {"Conv2D": {"filters": 8, "kernel_size": 3, "activation": "sigmoid"}}, {"MaxPooling2D": 2}, "Flatten",
      {"Dense": {"units": 7, "activation": "sigmoid"}}, {"Dense": {"units": 4, "activation": "softmax"}}],
     x, y, "sparse_categorical_crossentropy", 24, 1e-5)

x, y = rng.random((20, 9), dtype=np.float32), rng.integers(0, 2, (20, 3)).astype(np.float32)
both("three binary outputs, labels of rank 2", seeded(lambda: keras.Sequential([layers.Input((9,)), layers.Dense(3, activation="sigmoid")])),
     [{"Dense": {"units": 3, "activation": "sigmoid"}}], x, y, "binary_crossentropy", 20, 1e-5)

x, y = rng.random((20, 9)), rng.integers(0, 2, 20).astype(np.float64)
both("float64 arrays", seeded(lambda: keras.Sequential([layers.Input((9,)), layers.Dense(4, activation="relu"), layers.Dense(1, activation="sigmoid")])),
     [{"Dense": {"units": 4, "activation": "relu"}}, {"Dense": {"units": 1, "activation": "sigmoid"}}], x, y, "binary_crossentropy", 20, 1e-5)

x, y = rng.random((20, 9), dtype=np.float32), rng.integers(0, 3, 20).astype(np.int64)
both("softmax alone", seeded(lambda: keras.Sequential([layers.Input((9,)), layers.Dense(3, activation="softmax")])),
     [{"Dense": {"units": 3, "activation": "softmax"}}], x, y, "sparse_categorical_crossentropy", 10, 1e-5)
for nesterov in (False, True):
    compare(f"SGD, momentum 0.9, nesterov {nesterov}", seeded(lambda: keras.Sequential([layers.Input((9,)), layers.Dense(3, activation="softmax")]))(),
            [{"Dense": {"units": 3, "activation": "softmax"}}], x, y, "sparse_categorical_crossentropy", 10, 20, 1e-5,
            ({"sgd": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": nesterov}}, keras.optimizers.SGD(0.1, momentum=0.9, nesterov=nesterov)))

# A family of layers a file: cases_NAME.py with cases(both, compare, seeded, images, rng).
for name in sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "cases_*.py"))):
    importlib.import_module(name).cases(both, compare, seeded, images, rng)

sys.exit(finish())
