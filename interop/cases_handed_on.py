"""Layers that hand on what they get, for compare.py: Identity, ActivityRegularization, activity_regularizer of a last layer."""
import keras
from keras import layers


def cases(both, compare, seeded, images, rng):
    x, y = rng.standard_normal((24, 7), dtype="float32"), rng.integers(0, 4, 24).astype("int32")
    both("Identity, ActivityRegularization", seeded(lambda: keras.Sequential([layers.Input((7,)), layers.Dense(6, activation="tanh"), layers.Identity(),
         layers.ActivityRegularization(l1=0.03, l2=0.07), layers.Dense(4, activation="softmax")])),
         [{"Dense": {"units": 6, "activation": "tanh"}}, "Identity", {"ActivityRegularization": {"l1": 0.03, "l2": 0.07}},
          {"Dense": {"units": 4, "activation": "softmax"}}], x, y, "sparse_categorical_crossentropy", 12, 1e-5, (5, 1e-4, 1e-3))
    both("a penalty on probabilities", seeded(lambda: keras.Sequential([layers.Input((7,)), layers.Dense(4, activation="softmax",
         activity_regularizer=keras.regularizers.L2(0.5))])), [{"Dense": {"units": 4, "activation": "softmax", "activity_regularizer": {"L2": 0.5}}}],
         x, y, "sparse_categorical_crossentropy", 12, 1e-5)
