"""Recurrent layers, for compare.py: built in both, trained from the same weights. The gradient through all steps is in every
weight's; outputs of steps that a mask hides are looked at by Flatten, the mask itself by GlobalAveragePooling1D."""
import numpy as np
import keras
from keras import layers

LABELS = "sparse_categorical_crossentropy"
HEAD = {"Dense": {"units": 4, "activation": "softmax"}}
KINDS = (("LSTM", {}), ("GRU", {}), ("GRU", {"reset_after": False}), ("SimpleRNN", {}))


def head(x):
    return layers.Dense(4, activation="softmax")(x)


def biased(make):
    """Keras's biases begin with 0 and 1: here they matter."""
    def build():
        model, rng = make(), np.random.default_rng(5)
        for w in model.weights:
            w.assign(w.numpy() + rng.uniform(-0.2, 0.2, w.shape).astype(np.float32))
        return model
    return build


def sequences(rng, masked):
    x, y = rng.standard_normal((24, 7, 5), dtype=np.float32), rng.integers(0, 4, 24).astype(np.int32)
    if masked:  # at the end, at the beginning, in between, all of it
        x[np.arange(7)[None] >= rng.integers(3, 8, (24, 1))] = 0
        x[::3, 0] = x[1::5, 3] = x[7] = 0
    return x, y


def alone(both, seeded, rng):
    x, y = sequences(rng, False)
    for kind, own in KINDS:
        for words in ({}, {"return_sequences": True}, {"go_backwards": True}, {"go_backwards": True, "return_sequences": True}, {"use_bias": False},
                      {"activation": "softsign", **({} if kind == "SimpleRNN" else {"recurrent_activation": "hard_sigmoid"})}):
            words = {"units": 6, **own, **words}
            both(f"{kind} {words}", seeded(biased(lambda: keras.Sequential([layers.Input((7, 5)), getattr(layers, kind)(**words), layers.Flatten(),
                 layers.Dense(4, activation="softmax")]))), [{kind: words}, "Flatten", HEAD], x, y, LABELS, 12, 1e-4,
                 (5, 1e-3, 1e-4) if len(words) == 1 + len(own) else None)


def masked(both, seeded, rng):
    x, y = sequences(rng, True)
    for kind, own in KINDS:
        for words, behind in (({}, "Flatten"), ({"go_backwards": True}, "Flatten"), ({"return_sequences": True}, "Flatten"),
                              ({"return_sequences": True, "zero_output_for_mask": True, "go_backwards": True}, "Flatten"),
                              ({"return_sequences": True}, "GlobalAveragePooling1D")):
            words = {"units": 6, **own, **words}
            both(f"Masking, {kind} {words}, {behind}", seeded(biased(lambda: keras.Sequential([layers.Input((7, 5)), layers.Masking(),
                 getattr(layers, kind)(**words), getattr(layers, behind)(), layers.Dense(4, activation="softmax")]))),
                 ["Masking", {kind: words}, behind, HEAD], x[8:], y[8:], LABELS, 16, 1e-4)


def both_ways(both, seeded, rng):
    for mask in (False, True):
        x, y = sequences(rng, mask)
        for mode, kind, words in (("concat", "LSTM", {}), ("sum", "GRU", {"return_sequences": True}), ("mul", "SimpleRNN", {"return_sequences": True}),
                                  ("ave", "LSTM", {"return_sequences": True}), ("concat", "GRU", {"return_sequences": True, "reset_after": False})):
            words = {"units": 5, **words}
            small = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "simple_rnn"}[kind]

            def make():
                return keras.Sequential([layers.Input((7, 5)), *([layers.Masking()] if mask else []),
                                         layers.Bidirectional(getattr(layers, kind)(**words, name=small), merge_mode=mode), layers.Flatten(),
                                         layers.Dense(4, activation="softmax")])
            both(f"Bidirectional {kind} {words}, {mode}, {'masked' if mask else 'no mask'}", seeded(biased(make)),
                 [*(["Masking"] if mask else []), {"Bidirectional": {"layer": {kind: words}, "merge_mode": mode}}, "Flatten", HEAD], x, y, LABELS, 12, 1e-4)
    words, back = {"units": 5, "return_sequences": True}, {"units": 5, "return_sequences": True, "go_backwards": True}
    both("Bidirectional with a layer backwards of its own", seeded(biased(lambda: keras.Sequential([layers.Input((7, 5)), layers.Bidirectional(
         layers.LSTM(**words, name="lstm"), backward_layer=layers.GRU(**back, name="gru")), layers.Flatten(), layers.Dense(4, activation="softmax")]))),
         [{"Bidirectional": {"layer": {"LSTM": words}, "backward_layer": {"GRU": back}}}, "Flatten", HEAD], x, y, LABELS, 12, 1e-4)


def with_states(both, seeded, rng):
    """What a sequence begins with comes from other layers; two layers one behind the other."""
    for mask in (False, True):
        x, y = sequences(rng, mask)
        for kind, states, words in (("LSTM", 2, {}), ("GRU", 1, {"return_sequences": True}), ("LSTM", 2, {"return_sequences": True, "go_backwards": True})):
            def make():
                i = keras.Input((7, 5), name="first")
                h = [layers.Dense(6, activation="tanh")(layers.Flatten()(i)) for _ in range(states)]
                s = layers.Masking()(i) if mask else i
                return keras.Model(i, head(layers.Flatten()(getattr(layers, kind)(6, **words)(s, initial_state=h))))
            flat = ["flatten", "flatten_1"][:states]
            entries = [{"Input": {"shape": [7, 5], "name": "first"}}]
            for k in range(states):
                entries += [{"Flatten": {"inputs": "first"}}, {"Dense": {"units": 6, "activation": "tanh", "inputs": flat[k]}}]
            entries += [{"Masking": {"inputs": "first"}}] if mask else []
            entries += [{kind: {"units": 6, **words, "inputs": ["masking" if mask else "first", *["dense", "dense_1"][:states]]}}, "Flatten", HEAD]
            both(f"{kind} {words} with states to begin with, {'masked' if mask else 'no mask'}", seeded(biased(make)), entries, x, y, LABELS, 12, 1e-4)
    both("LSTM, GRU, SimpleRNN in a row", seeded(biased(lambda: keras.Sequential([layers.Input((7, 5)), layers.LSTM(33, return_sequences=True),
         layers.GRU(20, return_sequences=True), layers.SimpleRNN(17), layers.Dense(4, activation="softmax")]))),
         [{"LSTM": {"units": 33, "return_sequences": True}}, {"GRU": {"units": 20, "return_sequences": True}}, {"SimpleRNN": 17}, HEAD], x, y, LABELS, 12, 1e-4,
         (5, 1e-3, 1e-4))


def cases(both, compare, seeded, images, rng):
    alone(both, seeded, rng)
    masked(both, seeded, rng)
    both_ways(both, seeded, rng)
    with_states(both, seeded, rng)
