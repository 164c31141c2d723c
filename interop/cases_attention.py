"""Attention and products by equation, for compare.py: built in both, trained from the same weights."""
import numpy as np
import keras
from keras import layers

# A bias of all keys moves all scores of a query alike, which softmax does not see: its gradient is 0.
NO_GRADIENT = ("multi_head_attention/key/bias", "grouped_query_attention/key/bias")
LABELS = "sparse_categorical_crossentropy"


def self_attention(both, seeded, rng):
    x, y = rng.standard_normal((24, 7, 10), dtype=np.float32), rng.integers(0, 4, 24).astype(np.int32)
    for kind, words, call in (("MultiHeadAttention", {"num_heads": 3, "key_dim": 5}, {}),
                              ("MultiHeadAttention", {"num_heads": 2, "key_dim": 4, "value_dim": 6, "output_shape": 9}, {"use_causal_mask": True}),
                              ("MultiHeadAttention", {"num_heads": 1, "key_dim": 8, "use_bias": False}, {}),
                              ("GroupQueryAttention", {"head_dim": 5, "num_query_heads": 4, "num_key_value_heads": 2}, {}),
                              ("GroupQueryAttention", {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 1}, {"use_causal_mask": True})):
        def make():
            i = keras.Input((7, 10))
            h = layers.Dense(8, activation="sigmoid")(i)
            a = getattr(layers, kind)(**words)(h, h, **call)
            return keras.Model(i, layers.Dense(4, activation="softmax")(layers.Flatten()(layers.Activation("relu")(a))))
        both(f"{kind} {words} {call}", seeded(make),
             [{"Dense": {"units": 8, "activation": "sigmoid"}}, {kind: {**words, **call}}, {"Activation": "relu"}, "Flatten",
              {"Dense": {"units": 4, "activation": "softmax"}}], x, y, LABELS, 12, 1e-4, (5, 1e-3, 1e-4), zero=NO_GRADIENT)


def cross_attention(both, seeded, rng):
    x, y = rng.standard_normal((24, 6, 10), dtype=np.float32), rng.integers(0, 4, 24).astype(np.int32)
    head = {"Dense": {"units": 4, "activation": "softmax"}}
    for kind, words in (("MultiHeadAttention", {"num_heads": 2, "key_dim": 5}), ("Attention", {})):
        def make():
            i = keras.Input((6, 10), name="first")
            q, v, k = layers.Dense(7, activation="relu")(i), layers.Dense(9)(i), layers.Dense(7)(i)
            a = layers.MultiHeadAttention(**words)(q, v, k) if words else layers.Attention()([q, v, k])
            return keras.Model(i, layers.Dense(4, activation="softmax")(layers.Flatten()(a)))
        entries = [{"Input": {"shape": [6, 10], "name": "first"}}, {"Dense": {"units": 7, "activation": "relu"}},
                   {"Dense": {"units": 9, "inputs": "first"}}, {"Dense": {"units": 7, "inputs": "first"}},
                   {kind: {**words, "inputs": ["dense", "dense_1", "dense_2"]}}, "Flatten", head]
        both(f"{kind} of three inputs", seeded(make), entries, x, y, LABELS, 12, 1e-4, (5, 1e-3, 1e-4), zero=(*NO_GRADIENT, "dense_2/bias"))


def equations(both, seeded, rng):
    x, y = rng.standard_normal((24, 6, 10), dtype=np.float32), rng.integers(0, 4, 24).astype(np.int32)
    both("EinsumDense, heads apart and together", seeded(lambda: keras.Sequential([layers.Input((6, 10)),
         layers.EinsumDense("abc,cde->abde", output_shape=(6, 3, 5), bias_axes="de", activation="relu"),
         layers.EinsumDense("abcd,cde->abe", output_shape=(6, 7), bias_axes="e"), layers.EinsumDense("...x,xy->...y", output_shape=4, activation="relu"),
         layers.Flatten(), layers.Dense(4, activation="softmax")])),
         [{"EinsumDense": {"equation": "abc,cde->abde", "output_shape": [6, 3, 5], "bias_axes": "de", "activation": "relu"}},
          {"EinsumDense": {"equation": "abcd,cde->abe", "output_shape": [6, 7], "bias_axes": "e"}},
          {"EinsumDense": {"equation": "...x,xy->...y", "output_shape": 4, "activation": "relu"}}, "Flatten", {"Dense": {"units": 4, "activation": "softmax"}}],
         x, y, LABELS, 12, 1e-5, (5, 1e-3, 1e-4))
    for axes in (2, [2, 2], [1, 1]):
        def make():
            i = keras.Input((6, 10), name="first")
            a, b = layers.Dense(5, activation="sigmoid")(i), layers.Dense(5)(i)
            return keras.Model(i, layers.Dense(4, activation="softmax")(layers.Flatten()(layers.Dot(axes=axes)([a, b]))))
        both(f"Dot along {axes}", seeded(make),
             [{"Input": {"shape": [6, 10], "name": "first"}}, {"Dense": {"units": 5, "activation": "sigmoid"}}, {"Dense": {"units": 5, "inputs": "first"}},
              {"Dot": {"axes": axes, "inputs": ["dense", "dense_1"]}}, "Flatten", {"Dense": {"units": 4, "activation": "softmax"}}],
             x, y, LABELS, 12, 1e-5, (5, 1e-3, 1e-4))


def cases(both, compare, seeded, images, rng):
    self_attention(both, seeded, rng)
    cross_attention(both, seeded, rng)
    equations(both, seeded, rng)
