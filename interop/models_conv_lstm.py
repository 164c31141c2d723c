"""ConvLSTM1D, 2D and 3D, for models.py: in the words of a job file and from the .keras file."""
import numpy as np
import keras
from keras import layers

LABELS = "sparse_categorical_crossentropy"
SHAPES = {1: (6, 9, 3), 2: (5, 7, 6, 2), 3: (3, 4, 5, 4, 2)}


def one(axes, words, batch=None):
    def build():
        i = keras.Input(batch_shape=(batch, *SHAPES[axes]))
        y = getattr(layers, f"ConvLSTM{axes}D")(name="rnn", **words)(i)
        flat = [layers.Flatten(name=f"f{k}")(part) for k, part in enumerate(y)] if words.get("return_state") else []
        y = layers.Concatenate(name="all")(flat) if flat else layers.Flatten(name="f0")(y)
        return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(y))
    several = words.get("return_state")
    entries = [{"Input": {"shape": list(SHAPES[axes])}}, {f"ConvLSTM{axes}D": {"name": "rnn", **words}}]
    entries += [{"Flatten": {"name": f"f{k}", "inputs": f"rnn/{k}" if k else "rnn"}} for k in range(3 if several else 1)]
    entries += [{"Concatenate": {"inputs": ["f0", "f1", "f2"], "name": "all"}}] if several else []
    return build, entries + [{"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def stacked():
    """What the first makes, its gradient too, goes through the steps of the second; states from other layers."""
    i = keras.Input((5, 7, 6, 2))
    x = layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True, name="a")(layers.TimeDistributed(layers.Conv2D(2, 3, padding="same", name="c"), name="t")(i))
    y, h, c = layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True, return_state=True, name="b")(x)
    z = layers.ConvLSTM2D(2, (3, 2), padding="same", name="d")(i, initial_state=[layers.Conv2D(2, 1, name="e")(h), c])
    y = layers.Concatenate(name="all")([layers.Flatten(name="f")(y), layers.Flatten(name="g")(z)])
    return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(y))


def cases(compare, rng):
    y = rng.integers(0, 4, 24).astype(np.int32)
    x = {axes: rng.standard_normal((24, *shape), dtype=np.float32) for axes, shape in SHAPES.items()}
    for axes, words in ((1, {"filters": 4, "kernel_size": 3}), (1, {"filters": 3, "kernel_size": 3, "dilation_rate": 2, "return_sequences": True}),
                        (2, {"filters": 4, "kernel_size": 3, "padding": "same", "return_sequences": True}),
                        (2, {"filters": 3, "kernel_size": [3, 2], "strides": [2, 1], "go_backwards": True}),
                        (2, {"filters": 3, "kernel_size": 2, "return_sequences": True, "return_state": True, "go_backwards": True, "use_bias": False}),
                        (2, {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "softsign", "recurrent_activation": "hard_sigmoid"}),
                        (2, {"filters": 2, "kernel_size": 3, "recurrent_regularizer": "l2", "unit_forget_bias": False}),
                        (3, {"filters": 2, "kernel_size": 2, "return_state": True}), (3, {"filters": 2, "kernel_size": 3, "padding": "same", "strides": [1, 2, 2], "return_sequences": True})):
        compare(f"ConvLSTM{axes}D {words}", *one(axes, words), x[axes], y, LABELS, bar=1e-4)
    compare("stateful ConvLSTM2D", *one(2, {"filters": 3, "kernel_size": 3, "stateful": True}, 8), x[2], y, LABELS, bar=1e-4)
    compare("ConvLSTM2D, several, and states to begin with", stacked, None, x[2], y, LABELS, bar=1e-4)
