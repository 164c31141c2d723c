"""BatchNormalization under a mask, for models.py: masked steps are normalised with the others and are no part of mean and variance."""
import numpy as np
import keras
from keras import layers


def masked(words, tokens):
    def build():
        i = keras.Input((6,), dtype="int32", name="x") if tokens else keras.Input((7, 5), name="x")
        x = layers.Rescaling(12.0, name="large")(layers.Embedding(11, 5, mask_zero=True, name="table")(i)) if tokens else layers.Masking(name="m")(i)
        x = layers.BatchNormalization(name="bn", **words)(layers.Dense(6, activation="tanh", name="first")(x))
        x = layers.Flatten(name="flat")(layers.BatchNormalization(name="again")(layers.Dense(5, activation="relu", name="second")(x)))
        return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(x))
    return build, [
        {"Input": {"shape": [6], "dtype": "int32", "name": "x"}} if tokens else {"Input": {"shape": [7, 5], "name": "x"}},
        *([{"Embedding": {"input_dim": 11, "output_dim": 5, "mask_zero": True, "name": "table"}}, {"Rescaling": {"scale": 12.0, "name": "large"}}] if tokens else
          [{"Masking": {"name": "m"}}]),
        {"Dense": {"units": 6, "activation": "tanh", "name": "first"}}, {"BatchNormalization": {"name": "bn", **words}},
        {"Dense": {"units": 5, "activation": "relu", "name": "second"}}, {"BatchNormalization": {"name": "again"}}, {"Flatten": {"name": "flat"}}, {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def cases(compare, rng):
    x, y = rng.standard_normal((40, 7, 5), dtype=np.float32), rng.integers(0, 4, 40).astype(np.int32)
    x[np.arange(7)[None] >= rng.integers(2, 8, (40, 1))] = 0
    x[::3, 0] = x[1::5, 3] = x[7] = 0
    tokens = rng.integers(1, 11, (40, 6)).astype(np.int32)
    tokens[np.arange(6)[None] >= rng.integers(2, 7, (40, 1))] = 0
    for words in ({}, {"momentum": 0.5, "epsilon": 0.1}, {"scale": False}, {"center": False}, {"trainable": False}):
        compare(f"Masking, BatchNormalization {words}", *masked(words, False), x, y, "sparse_categorical_crossentropy", bar=1e-5)
    compare("Embedding, BatchNormalization", *masked({}, True), tokens, y, "sparse_categorical_crossentropy", bar=1e-4, adam=False)
