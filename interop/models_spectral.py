"""SpectralNormalization around Dense, Conv and Embedding, for models.py: the kernel is replaced before each step, so that what changed of it
in one step is the division and the gradient; vector_u is compared with the other weights."""
import numpy as np
import keras
from keras import layers

LABELS = "sparse_categorical_crossentropy"
OUT = {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}


def wrapped(kind, words, iterations, shape):
    def build():
        i = keras.Input(shape)
        y = layers.SpectralNormalization(getattr(layers, kind)(**words, name="inner"), power_iterations=iterations, name="sn")(i)
        return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.Flatten(name="flat")(y)))
    return build, [{"Input": {"shape": list(shape)}}, {"SpectralNormalization": {"layer": {kind: {**words, "name": "inner"}},
                   "power_iterations": iterations, "name": "sn"}}, {"Flatten": {"name": "flat"}}, OUT]


def discriminator():
    i = keras.Input((9, 9, 2))
    x = i
    for k in range(3):
        x = layers.LeakyReLU(name=f"a{k}")(layers.SpectralNormalization(layers.Conv2D(4 + k, 3, padding="same", name="c"), name=f"s{k}")(x))
    x = layers.Flatten(name="flat")(x)
    return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.SpectralNormalization(layers.Dense(6, name="d"), name="last")(x)))


def cases(compare, rng):
    y = rng.integers(0, 4, 40).astype(np.int32)
    for kind, words, iterations, shape in (("Dense", {"units": 5}, 1, (7,)), ("Dense", {"units": 5, "activation": "relu", "use_bias": False}, 3, (3, 7)),
                                           ("Conv1D", {"filters": 4, "kernel_size": 3}, 2, (9, 3)),
                                           ("Conv2D", {"filters": 3, "kernel_size": [3, 2], "strides": 2, "kernel_regularizer": "l2"}, 1, (9, 8, 2)),
                                           ("Conv3D", {"filters": 3, "kernel_size": 2}, 1, (4, 3, 5, 2)),
                                           ("Conv2DTranspose", {"filters": 3, "kernel_size": 3}, 1, (4, 5, 2)),
                                           ("DepthwiseConv2D", {"kernel_size": 3, "depth_multiplier": 2}, 1, (6, 5, 3))):
        x = rng.standard_normal((40, *shape), dtype=np.float32)
        compare(f"SpectralNormalization of {kind} {words}, {iterations}", *wrapped(kind, words, iterations, shape), x, y, LABELS, bar=1e-4)
    ids = rng.integers(0, 11, (40, 6)).astype(np.float32)
    compare("SpectralNormalization of Embedding", *wrapped("Embedding", {"input_dim": 11, "output_dim": 4}, 1, (6,)), ids, y, LABELS, bar=1e-4,
            adam=False)  # Keras squares the gradients of an id that comes twice one by one
    compare("SpectralNormalization, several", discriminator, None, rng.standard_normal((40, 9, 9, 2), dtype=np.float32), y, LABELS, bar=1e-4)
