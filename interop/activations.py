"""Every activation, as a word and as a layer, in plim and in Keras: the loss and the gradient of every weight, from
the same weights on the same data.

The gradient is read off one step of SGD with learning rate 1. Prints a line a comparison and 'N passed, N failed' last."""
import sys
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, run_plim

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
rng = np.random.default_rng(5)


def compare(what, shape, hidden, words, bar, scale=3.0):
    """hidden: Keras's layers; words: plim's. A Dense of one unit and the binary loss come last."""
    keras.utils.set_random_seed(7)
    model = keras.Sequential([layers.Input(shape), *hidden, layers.Flatten(), layers.Dense(1, name="last")])
    x = (scale * rng.standard_normal((24, *shape))).astype(np.float32)
    y = rng.integers(0, 2, 24).astype(np.float32)
    weights = {f"{layer.name}/{w.name}": w for layer in model.layers for w in layer.weights}
    before = {k: w.numpy().copy() for k, w in weights.items()}
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y[:, None], model(x)))
    gradients = tape.gradient(loss, [w.value for w in weights.values()])
    ours = run_plim(plim, before, [*words, "Flatten", {"Dense": {"units": 1, "activation": "sigmoid", "name": "last"}}], x, y,
                    {"sgd": {"learning_rate": 1.0}}, "binary_crossentropy", 24, 1)
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    check(f"{what}: loss", error(ours[0], [float(loss)]), bar)
    for (k, w), gradient in zip(weights.items(), gradients):
        check(f"{what}: gradient of {k}", error(before[k] - ours[2][k], gradient.numpy()), bar)


def dense(units, **arguments):
    return layers.Dense(units, name="first", **arguments), {"Dense": {"units": units, "name": "first", **arguments}}


WORDS = """linear relu relu6 leaky_relu elu selu celu gelu silu swish mish tanh sigmoid softplus softsign log_sigmoid
    hard_sigmoid hard_silu hard_swish hard_tanh tanh_shrink soft_shrink hard_shrink squareplus sparse_plus sparse_sigmoid
    softmax log_softmax""".split()
for word in WORDS:
    theirs, ours = dense(10, activation=word)
    compare(f"activation: {word}", (9,), [theirs], [ours], 1e-4 if "softmax" in word else 1e-5)
theirs, ours = dense(10, activation="exponential")
compare("activation: exponential", (9,), [theirs], [ours], 1e-5, 0.5)

# Keras's layers take the output of glu to be as wide as its input.
theirs, ours = dense(10)
compare("activation: glu", (9,), [theirs, layers.Lambda(keras.activations.glu, output_shape=(5,))], [ours, {"Activation": "glu"}], 1e-5)

# Keras 3.15.1 computes sparsemax's threshold wrongly (its issue 23425): the formula is ours.
def sparsemax(x):
    ordered = tf.sort(x, direction="DESCENDING", axis=-1)
    count = tf.range(1, x.shape[-1] + 1, dtype=x.dtype)
    support = tf.cast(1 + count * ordered > tf.cumsum(ordered, axis=-1), x.dtype)
    threshold = (tf.reduce_sum(ordered * support, -1, keepdims=True) - 1) / tf.reduce_sum(support, -1, keepdims=True)
    return tf.maximum(x - threshold, 0)
theirs, ours = dense(10)
compare("activation: sparsemax", (9,), [theirs, layers.Activation(sparsemax)], [ours, {"Activation": "sparsemax"}], 1e-5, 0.4)

# As layers, with their arguments; (theirs, ours).
LAYERS = [
    (layers.Activation("mish"), {"Activation": "mish"}),
    (layers.ReLU(max_value=2.5), {"ReLU": {"max_value": 2.5}}),
    (layers.ReLU(max_value=6), {"ReLU": 6}),
    (layers.ReLU(negative_slope=0.1, threshold=0.5), {"ReLU": {"negative_slope": 0.1, "threshold": 0.5}}),
    (layers.ReLU(max_value=3.0, negative_slope=0.25, threshold=1.0),
     {"ReLU": {"max_value": 3.0, "negative_slope": 0.25, "threshold": 1.0}}),
    (layers.ReLU(threshold=1.0), {"ReLU": {"threshold": 1.0}}),
    (layers.LeakyReLU(), "LeakyReLU"),
    (layers.LeakyReLU(negative_slope=0.05), {"LeakyReLU": 0.05}),
    (layers.ELU(), "ELU"),
    (layers.ELU(alpha=0.4), {"ELU": {"alpha": 0.4}}),
    (layers.Softmax(), "Softmax"),
    (layers.PReLU(name="p"), {"PReLU": {"name": "p"}}),
    (layers.PReLU(name="p", alpha_initializer=keras.initializers.Constant(0.25)),
     {"PReLU": {"name": "p", "alpha_initializer": {"constant": 0.25}}}),
]
for theirs, ours in LAYERS:
    first, word = dense(10)
    bar = 1e-4 if isinstance(theirs, layers.Softmax) else 1e-5
    compare(f"layer {ours}", (9,), [first, theirs], [word, ours], bar)

picture = (7, 6, 3)
conv = {"filters": 5, "kernel_size": 3, "name": "first"}
for word in ("gelu", "relu6", "tanh", "hard_silu"):
    compare(f"Conv2D, activation: {word}", picture, [layers.Conv2D(5, 3, name="first", activation=word)],
            [{"Conv2D": {**conv, "activation": word}}], 1e-5)
for axis in (1, 2, 3, -2):  # without a bias: its gradient is 0
    compare(f"Softmax, axis {axis}", picture, [layers.Conv2D(5, 3, name="first", use_bias=False), layers.Softmax(axis=axis)],
            [{"Conv2D": {**conv, "use_bias": False}}, {"Softmax": {"axis": axis}}], 1e-4)
for axes in ([1, 2], [1], [3], [1, 2, 3]):
    compare(f"PReLU, shared_axes {axes}", picture,
            [layers.Conv2D(5, 3, name="first"), layers.PReLU(name="p", shared_axes=axes, alpha_initializer="he_normal")],
            [{"Conv2D": conv}, {"PReLU": {"name": "p", "shared_axes": axes}}], 1e-5)

sys.exit(finish())
