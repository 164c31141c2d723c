"""Attention and AdditiveAttention with all their words, for models.py: in the words of a job file and from the .keras file."""
import numpy as np
import keras
from keras import layers

LABELS = "sparse_categorical_crossentropy"


def attending(kind, words, call, mask, three):
    """Numbers large enough that the scores differ: else the gradients of queries are too small to be seen. Queries of 6 tokens over 7, of which some are masked on both sides."""
    def build():
        a, b = keras.Input((6,), dtype="int32", name="a"), keras.Input((7,), dtype="int32", name="b")
        q, v = (layers.Rescaling(12.0, name=f"large_{n}")(layers.Embedding(11, 5, mask_zero=mask, name=f"table_{n}")(x)) for n, x in (("a", a), ("b", b)))
        inputs = [q, v, layers.Dense(5, name="key")(v)] if three else [q, v]
        y = getattr(layers, kind)(**words, name="att")(inputs, **call)
        return keras.Model([a, b], layers.Dense(4, activation="softmax", name="out")(layers.Flatten(name="flat")(y)))
    return build, [
        {"Input": {"shape": [6], "dtype": "int32", "name": "a"}}, {"Input": {"shape": [7], "dtype": "int32", "name": "b"}},
        {"Embedding": {"input_dim": 11, "output_dim": 5, "mask_zero": mask, "name": "table_a", "inputs": "a"}}, {"Rescaling": {"scale": 12.0, "name": "large_a"}},
        {"Embedding": {"input_dim": 11, "output_dim": 5, "mask_zero": mask, "name": "table_b", "inputs": "b"}}, {"Rescaling": {"scale": 12.0, "name": "large_b"}},
        *([{"Dense": {"units": 5, "name": "key", "inputs": "large_b"}}] if three else []),
        {kind: {**words, **call, "name": "att", "inputs": ["large_a", "large_b"] + (["key"] if three else [])}},
        {"Flatten": {"name": "flat"}}, {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def cases(compare, rng):
    x = {"a": rng.integers(1, 11, (40, 6)).astype(np.int32), "b": rng.integers(1, 11, (40, 7)).astype(np.int32)}
    x["a"][np.arange(6)[None] >= rng.integers(3, 7, (40, 1))] = 0
    x["b"][np.arange(7)[None] >= rng.integers(3, 8, (40, 1))] = 0
    y = rng.integers(0, 4, 40).astype(np.int32)
    for kind, words, call, mask, three in (("Attention", {"use_scale": True}, {}, True, False),
                                           ("Attention", {"score_mode": "concat"}, {}, False, True),
                                           ("Attention", {"score_mode": "concat", "use_scale": True}, {"use_causal_mask": True}, True, False),
                                           ("Attention", {"use_scale": True}, {"use_causal_mask": True}, False, True),
                                           ("AdditiveAttention", {}, {}, True, True), ("AdditiveAttention", {"use_scale": False}, {}, False, False),
                                           ("AdditiveAttention", {}, {"use_causal_mask": True}, False, False)):
        compare(f"{kind} {words} {call}, {'masked' if mask else 'no mask'}, {3 if three else 2} inputs", *attending(kind, words, call, mask, three), x, y,
                LABELS, bar=1e-4, adam=False)
