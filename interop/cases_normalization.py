"""Layers that normalise, for compare.py: built in both, trained from the same weights."""
import numpy as np
import keras
from keras import layers


def batch_cases(both, compare, seeded, images, rng):
    x, y = images(48, 9, 7, 3, 5)
    x = x * 3 - 1
    # What lies between two of them is never linear: gradients that are 0 but for rounding cannot be compared.
    both("BatchNormalization, ReLU behind it, momentum", seeded(lambda: keras.Sequential([layers.Input((9, 7, 3)), layers.BatchNormalization(momentum=0.7),
         layers.ReLU(), layers.Conv2D(6, 3, use_bias=False), layers.BatchNormalization(epsilon=1e-2, momentum=0.5), layers.ReLU(6), layers.Flatten(),
         layers.Dense(5, activation="softmax")])),
         [{"BatchNormalization": {"momentum": 0.7}}, "ReLU", {"Conv2D": {"filters": 6, "kernel_size": 3, "use_bias": False}},
          {"BatchNormalization": {"epsilon": 0.01, "momentum": 0.5}}, {"ReLU": 6}, "Flatten", {"Dense": {"units": 5, "activation": "softmax"}}],
         x, y, "sparse_categorical_crossentropy", 16, 1e-5, (8, 1e-3, 1e-4))

    x, y = rng.standard_normal((40, 33), dtype=np.float32) * 2 - 1, rng.integers(0, 3, 40).astype(np.int32)
    both("BatchNormalization of rank 2, without center or scale, not trainable", seeded(lambda: keras.Sequential([layers.Input((33,)),
         layers.BatchNormalization(center=False, momentum=0.5), layers.Activation("sigmoid"), layers.Dense(16, use_bias=False),
         layers.BatchNormalization(scale=False, momentum=0.5), layers.Activation("relu"), layers.BatchNormalization(trainable=False),
         layers.Dense(3, activation="softmax")])),
         [{"BatchNormalization": {"center": False, "momentum": 0.5}}, {"Activation": "sigmoid"}, {"Dense": {"units": 16, "use_bias": False}},
          {"BatchNormalization": {"scale": False, "momentum": 0.5}}, {"Activation": "relu"}, {"BatchNormalization": {"trainable": False}},
          {"Dense": {"units": 3, "activation": "softmax"}}],
         x, y, "sparse_categorical_crossentropy", 20, 1e-5, (6, 1e-3, 1e-4))


def sample_cases(both, compare, seeded, images, rng):
    """Each alone behind a Dense or Conv2D that learns, with something that is not linear behind it."""
    x, y = rng.standard_normal((40, 33), dtype=np.float32) * 2 + 3, rng.integers(0, 3, 40).astype(np.int32)
    for name, words in (("LayerNormalization", {}), ("LayerNormalization", {"center": False, "epsilon": 1e-5}), ("LayerNormalization", {"scale": False}),
                        ("RMSNormalization", {}), ("UnitNormalization", {}), ("GroupNormalization", {"groups": 4})):
        both(f"{name} {words}", seeded(lambda: keras.Sequential([layers.Input((33,)), layers.Dense(20), getattr(layers, name)(**words),
             layers.Activation("sigmoid"), layers.Dense(3, activation="softmax")])),
             [{"Dense": {"units": 20}}, {name: words} if words else name, {"Activation": "sigmoid"}, {"Dense": {"units": 3, "activation": "softmax"}}],
             x, y, "sparse_categorical_crossentropy", 20, 1e-5, (6, 1e-3, 1e-4))
    x, y = images(24, 9, 7, 3, 5)
    x = x * 3 - 1
    for name, words in (("LayerNormalization", {"axis": [1, 2, 3]}), ("LayerNormalization", {"axis": [-1, -2]}), ("RMSNormalization", {"axis": [-2, -1], "epsilon": 1e-4}),
                        ("UnitNormalization", {"axis": [2, 3]}), ("GroupNormalization", {"groups": 2}), ("GroupNormalization", {"groups": -1, "scale": False}),
                        ("GroupNormalization", {"groups": 1, "center": False, "epsilon": 1e-5})):
        both(f"{name} {words} of images", seeded(lambda: keras.Sequential([layers.Input((9, 7, 3)), layers.Conv2D(6, 3, use_bias=False), getattr(layers, name)(**words),
             layers.ReLU(), layers.Flatten(), layers.Dense(5, activation="softmax")])),
             [{"Conv2D": {"filters": 6, "kernel_size": 3, "use_bias": False}}, {name: words}, "ReLU", "Flatten", {"Dense": {"units": 5, "activation": "softmax"}}],
             x, y, "sparse_categorical_crossentropy", 12, 1e-5, (6, 1e-3, 1e-4))


def given_cases(both, compare, seeded, images, rng):
    x, y = rng.standard_normal((40, 3), dtype=np.float32) * 2 + 3, rng.integers(0, 3, 40).astype(np.int32)
    for words in ({"mean": [3.0, 2.5, 4.0], "variance": [4.0, 0.5, 1.5]}, {"axis": None, "mean": 3.0, "variance": 4.0}, {"mean": [0.5, 1.0, 2.0], "variance": [4.0, 1.0, 0.25], "invert": True}):
        both(f"Normalization {words}", seeded(lambda: keras.Sequential([layers.Input((3,)), layers.Dense(3), layers.Normalization(**words),
             layers.Activation("sigmoid"), layers.Dense(3, activation="softmax")])),
             [{"Dense": {"units": 3}}, {"Normalization": words}, {"Activation": "sigmoid"}, {"Dense": {"units": 3, "activation": "softmax"}}],
             x, y, "sparse_categorical_crossentropy", 20, 1e-5, (6, 1e-3, 1e-4))


def cases(both, compare, seeded, images, rng):
    batch_cases(both, compare, seeded, images, rng)
    sample_cases(both, compare, seeded, images, rng)
    given_cases(both, compare, seeded, images, rng)
