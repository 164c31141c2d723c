"""For models.py: layers that draw in training, with factors from which only one number can be drawn (files have training= of their
calls), and GroupQueryAttention, whose weights files name by attributes that begin with an underscore."""
import numpy as np
import keras
from keras import layers

LABELS = "sparse_categorical_crossentropy"


def augmented():
    i = keras.Input((8, 8, 3), name="x")
    x = layers.RandomContrast((0.0, 0.0), value_range=(0.1, 0.9), name="contrast")(layers.RandomBrightness((0.11, 0.11), value_range=(0, 1), name="light")(i))
    x = layers.Flatten(name="flat")(layers.Dropout(0.0, name="drop")(x, training=True))
    return keras.Model(i, layers.Dense(1, activation="sigmoid", name="out")(x))


def cases(compare, rng):
    compare("RandomBrightness, RandomContrast, Dropout in a graph", augmented, None, rng.random((40, 8, 8, 3), dtype=np.float32),
            rng.integers(0, 2, (40, 1)).astype(np.float32), "binary_crossentropy", bar=1e-4, adam=False)
    grouped(compare, rng)


def grouped(compare, rng):
    """Heads in groups: files name their weights otherwise than those of MultiHeadAttention."""
    x, y = rng.standard_normal((40, 6, 8), dtype=np.float32), rng.integers(0, 4, 40).astype(np.int32)
    for words, call in (({"head_dim": 4, "num_query_heads": 4, "num_key_value_heads": 2}, {}),
                        ({"head_dim": 3, "num_query_heads": 3, "num_key_value_heads": 1, "use_bias": False}, {"use_causal_mask": True})):
        def build():
            i = keras.Input((6, 8), name="x")
            h = layers.GroupQueryAttention(**words, name="heads")(i, i, **call)
            return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.Flatten(name="flat")(h)))
        compare(f"GroupQueryAttention {words} {call}", build,
                [{"GroupQueryAttention": {**words, **call, "name": "heads"}}, {"Flatten": {"name": "flat"}},
                 {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}], x, y, LABELS, bar=1e-4, adam=False)
