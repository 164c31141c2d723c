"""Keras's mixed policies: the same models from the same weights, in mixed_bfloat16 and mixed_float16.

Models come to plim as .keras files, in which each layer says its policy, and once as layers with the job's own word.
The gradient of a weight is its change in one step of SGD with learning rate 1.

Bars: u is the unit of rounding, 2^-8 of bfloat16 and 2^-11 of float16. On the way to a gradient every layer rounds its
inputs, weights, output and the gradient that goes back, in an order of sums that differs: 16 roundings are allowed,
4 to a loss, and 64 where normalisation divides by what is left of a sum. Keras also sums gradients of biases in the
small type, so that its own result is far from its float32: plim's is to be near either. Of maxima over
many values the small types make equals, and which of them wins is chance: no maximum over all places here, and ReLU
where one value more or less is one of thousands. Gradients that are 0 but for rounding (of keys' biases) are left out."""
import os, sys, tempfile
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, run_plim

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
only = sys.argv[2:]
UNIT = {"mixed_bfloat16": 2.0 ** -8, "mixed_float16": 2.0 ** -11}
rng = np.random.default_rng(11)  # begins anew for each model


def names(model):
    found = {}
    for layer in model.layers:
        inner = [part for part in layer._flatten_layers(include_self=False, recursive=False) if part.weights]
        of_inner = {id(w) for part in inner for w in part.weights}
        found.update({f"{layer.name}/{w.name}": w for w in layer.weights if id(w) not in of_inner})
        found.update({f"{layer.name}/{part.name}/{w.name}": w for part in inner for w in part.weights})
    return found


def classes_of(n, classes):
    return rng.integers(0, classes, n).astype(np.int32)


def cnn(policy):
    x = rng.random((32, 20, 20, 3), dtype=np.float32)
    return x, classes_of(32, 10), [
        layers.Input((20, 20, 3)), layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(2), layers.Conv2D(32, 3, activation="relu"),
        layers.AveragePooling2D(2), layers.Flatten(), layers.Dense(40, activation="silu"), layers.Dense(10, activation="softmax")], 16


def mlp(policy):
    x = rng.random((32, 100), dtype=np.float32)
    return x, classes_of(32, 5), [layers.Input((100,)), layers.Dense(300, activation="relu"), layers.Dense(300, activation="tanh"),
                                  layers.Dropout(0.0), layers.Dense(5, activation="softmax", dtype="float32")], 16


def batch_norm(policy):
    x = rng.random((32, 9, 7, 3), dtype=np.float32) * 3 - 1
    return x, classes_of(32, 5), [
        layers.Input((9, 7, 3)), layers.Conv2D(8, 3, use_bias=False), layers.BatchNormalization(momentum=0.7), layers.ReLU(),
        layers.DepthwiseConv2D(3, padding="same"), layers.Activation("sigmoid"), layers.GlobalAveragePooling2D(),
        layers.Dense(5, activation="softmax")], 64


def layer_norm(policy):
    x = rng.standard_normal((32, 33), dtype=np.float32) * 2 + 1
    return x, classes_of(32, 3), [layers.Input((33,)), layers.Dense(20), layers.LayerNormalization(), layers.Activation("gelu"),
                                  layers.Dense(16), layers.RMSNormalization(), layers.Activation("sigmoid"), layers.Dense(3, activation="softmax")], 64


def tokens(policy):
    return rng.integers(0, 50, (16, 12)).astype(np.int32), classes_of(16, 4), [
        layers.Input((12,), dtype="int32"), layers.Embedding(50, 24), layers.Conv1D(16, 3, activation="relu"), layers.GlobalAveragePooling1D(),
        layers.Dense(4, activation="softmax")], 16


def attention(policy):
    x = rng.standard_normal((8, 10, 24), dtype=np.float32)
    inputs = layers.Input((10, 24))
    y = layers.Dense(24, activation="relu")(inputs)
    z = layers.MultiHeadAttention(3, 8)(y, y)
    z = layers.Add()([y, z])
    z = layers.LayerNormalization()(z)
    z = layers.GlobalAveragePooling1D()(z)
    return x, classes_of(8, 3), keras.Model(inputs, layers.Dense(3, activation="softmax")(z)), 64


def build(make, policy):
    global rng
    rng = np.random.default_rng(11)
    keras.utils.clear_session()
    keras.utils.set_random_seed(3)
    keras.config.set_dtype_policy(policy)
    x, y, made, roundings = make(policy)
    keras.config.set_dtype_policy("float32")
    return x, y, made if isinstance(made, keras.Model) else keras.Sequential(made), roundings


def compare(what, policy, make, loss, steps=1):
    if only and not any(word in f"{what} {policy}" for word in only):
        return
    _, _, exact, _ = build(make, "float32")
    x, y, model, roundings = build(make, policy)
    exact.set_weights([w.numpy().astype(np.float32) for w in model.weights])
    before = {k: w.numpy().astype(np.float32) for k, w in names(model).items()}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        ours = run_plim(plim, None, path, x, y, {"sgd": {"learning_rate": 1.0}}, loss, len(x), steps, ())
    for each in (model, exact):
        each.compile(optimizer=keras.optimizers.SGD(1.0), loss=loss)
    theirs = [float(model.train_on_batch(x, y)) for _ in range(steps)]
    exact.train_on_batch(x, y)
    if ours is None:
        return check(f"{what}, {policy}: plim runs", np.inf, 0)
    losses, _, after = ours
    unit = UNIT[policy]
    check(f"{what}, {policy}: loss", error(losses, theirs), 4 * unit)
    true = {k: before[k] - w.numpy() for k, w in zip(names(model), names(exact).values())}
    largest = max(np.abs(change).max() for change in true.values())
    for k, w in names(model).items():
        if np.abs(true[k]).max() < 1e-5 * largest:
            continue
        ours, theirs = before[k] - after[k], before[k] - w.numpy()
        apart = min(error(ours, theirs), error(ours, true[k]))
        check(f"{what}, {policy}: change of {k}", apart, roundings * unit)


for policy in UNIT:
    for what, make in (("CNN", cnn), ("MLP with a float32 end", mlp), ("BatchNormalization", batch_norm), ("LayerNormalization", layer_norm),
                       ("Embedding", tokens), ("MultiHeadAttention", attention)):
        compare(what, policy, make, "sparse_categorical_crossentropy")

sys.exit(finish())
