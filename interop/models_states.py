"""States of recurrent layers as further outputs, and as what other layers begin with, for models.py: in the words of a job file
and from the .keras file."""
import numpy as np
import keras
from keras import layers

LABELS = "sparse_categorical_crossentropy"
STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}


def inputs():
    return [{"Input": {"shape": [7, 5], "name": "source"}}, {"Input": {"shape": [6, 3], "name": "target"}}]


def encoder_decoder(kind, words):
    """Classic sequence to sequence: what the decoder begins with is what the encoder ends with."""
    def build():
        source, target = keras.Input((7, 5), name="source"), keras.Input((6, 3), name="target")
        _, *states = getattr(layers, kind)(6, return_state=True, name="encoder", **words)(source)
        y = getattr(layers, kind)(6, return_sequences=True, name="decoder")(target, initial_state=states)
        return keras.Model([source, target], layers.Dense(4, activation="softmax", name="out")(y))
    return build, inputs() + [
        {kind: {"units": 6, "return_state": True, "name": "encoder", "inputs": "source", **words}},
        {kind: {"units": 6, "return_sequences": True, "name": "decoder", "inputs": ["target", *[f"encoder/{i + 1}" for i in range(STATES[kind])]]}},
        {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def both_ways(mode):
    """Of both directions; outputs that stay apart are two."""
    def build():
        source, target = keras.Input((7, 5), name="source"), keras.Input((6, 3), name="target")
        made = layers.Bidirectional(layers.LSTM(3, return_state=True, return_sequences=True, name="lstm"), merge_mode=mode, name="encoder")(source)
        ahead, (fh, fc, bh, bc) = made[:-4], made[-4:]
        h, c = layers.Concatenate(name="h")([fh, bh]), layers.Concatenate(name="c")([fc, bc])
        y, *_ = layers.LSTM(6, return_sequences=True, return_state=True, name="decoder")(target, initial_state=[h, c])
        z = layers.GlobalAveragePooling1D(name="mean")(layers.Subtract(name="difference")(ahead) if mode is None else ahead[0])
        y = layers.Concatenate(name="all")([layers.Flatten(name="flat")(y), z])
        return keras.Model([source, target], layers.Dense(4, activation="softmax", name="out")(y))
    first = 2 if mode is None else 1
    return build, inputs() + [
        {"Bidirectional": {"layer": {"LSTM": {"units": 3, "return_state": True, "return_sequences": True}}, "merge_mode": mode, "name": "encoder", "inputs": "source"}},
        {"Concatenate": {"inputs": [f"encoder/{first}", f"encoder/{first + 2}"], "name": "h"}},
        {"Concatenate": {"inputs": [f"encoder/{first + 1}", f"encoder/{first + 3}"], "name": "c"}},
        {"LSTM": {"units": 6, "return_sequences": True, "return_state": True, "name": "decoder", "inputs": ["target", "h", "c"]}},
        {"Flatten": {"name": "flat", "inputs": "decoder"}},
        *([{"Subtract": {"inputs": ["encoder", "encoder/1"], "name": "difference"}}] if mode is None else []),
        {"GlobalAveragePooling1D": {"name": "mean", "inputs": "difference" if mode is None else "encoder"}},
        {"Concatenate": {"inputs": ["flat", "mean"], "name": "all"}}, {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def model_inside():
    """An encoder of its own, with its states as outputs, used for two sequences."""
    i = keras.Input((7, 5))
    _, h, c = layers.LSTM(6, return_state=True, name="rnn")(i)
    encoder = keras.Model(i, [c, h], name="encoder")
    source, target = keras.Input((7, 5), name="source"), keras.Input((6, 3), name="target")
    (c, h), (_, h2) = encoder(source), encoder(layers.ReLU(name="positive")(source))
    y = layers.LSTM(6, name="decoder")(target, initial_state=[h, c])
    return keras.Model([source, target], layers.Dense(4, activation="softmax", name="out")(layers.Add()([y, h2])))


def masked(kind, words):
    """The state goes on over what is masked, whatever the output does; a penalty is on all outputs. (Keras forgets that of a SimpleRNN.)"""
    theirs, ours = ({}, {}) if kind == "SimpleRNN" else ({"activity_regularizer": keras.regularizers.L2(0.01)}, {"activity_regularizer": {"L2": 0.01}})

    def build():
        i = keras.Input((7, 5), name="source")
        made = getattr(layers, kind)(6, return_state=True, name="rnn", **theirs, **words)(layers.Masking(name="m")(i))
        y = [layers.Flatten(name="flat")(made[0]), *made[1:]]
        return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.Concatenate(name="all")(y)))
    return build, [
        {"Input": {"shape": [7, 5], "name": "source"}}, {"Masking": {"name": "m"}},
        {kind: {"units": 6, "return_state": True, "name": "rnn", **ours, **words}}, {"Flatten": {"name": "flat"}},
        {"Concatenate": {"inputs": ["flat", *[f"rnn/{k + 1}" for k in range(STATES[kind])]], "name": "all"}},
        {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def cells(words, mask, **walk):
    """RNN of one cell, or of several; states of all of them into another RNN."""
    def make(name):
        made = [getattr(layers, kind)(**w, name=f"c{i}") for i, (kind, w) in enumerate(words)]
        return layers.RNN(layers.StackedRNNCells(made, name="stack") if len(words) > 1 else made[0], name=name, return_state=True, **walk)

    def build():
        i = keras.Input((7, 5), name="source")
        x = layers.Masking(name="m")(i) if mask else i
        y, *states = make("rnn")(x)
        z, *_ = make("then")(i, initial_state=states)
        flat = [layers.Flatten(name="flat")(y), layers.Flatten(name="flatter")(z), keras.tree.flatten(states)[-1]]
        return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.Concatenate(name="all")(flat)))
    states = sum(2 if kind == "LSTMCell" else 1 for kind, _ in words)
    ours = [{kind: {**w, "name": f"c{i}"}} for i, (kind, w) in enumerate(words)]

    def rnn(name):
        return {"cell": {"StackedRNNCells": {"cells": ours, "name": "stack"}} if len(words) > 1 else ours[0], "name": name, "return_state": True, **walk}
    return build, [
        {"Input": {"shape": [7, 5], "name": "source"}}, *([{"Masking": {"name": "m"}}] if mask else []),
        {"RNN": rnn("rnn")}, {"RNN": {**rnn("then"), "inputs": ["source", *[f"rnn/{i + 1}" for i in range(states)]]}},
        {"Flatten": {"name": "flat", "inputs": "rnn"}}, {"Flatten": {"name": "flatter", "inputs": "then"}},
        {"Concatenate": {"inputs": ["flat", "flatter", f"rnn/{states}"], "name": "all"}},
        {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def cases(compare, rng):
    x = {"source": rng.standard_normal((40, 7, 5), dtype=np.float32), "target": rng.standard_normal((40, 6, 3), dtype=np.float32)}
    y, steps = rng.integers(0, 4, 40).astype(np.int32), rng.integers(0, 4, (40, 6)).astype(np.int32)
    for kind, words in (("LSTM", {}), ("GRU", {"go_backwards": True}), ("SimpleRNN", {}), ("LSTM", {"go_backwards": True, "return_sequences": True})):
        compare(f"{kind} encoder {words} and decoder", *encoder_decoder(kind, words), x, steps, LABELS, bar=1e-4)
    for mode in ("concat", "sum", None):
        compare(f"states of both directions, {mode}", *both_ways(mode), x, y, LABELS, bar=1e-4)
    compare("an encoder inside, with two outputs", model_inside, None, x, y, LABELS, bar=1e-4)
    source = x["source"].copy()
    source[np.arange(7)[None] >= rng.integers(3, 8, (40, 1))] = 0
    source[::3, 0] = source[1::5, 3] = 0
    for kind, words in (("LSTM", {"return_sequences": True}), ("GRU", {}), ("SimpleRNN", {"go_backwards": True}),
                        ("LSTM", {"return_sequences": True, "zero_output_for_mask": True})):
        compare(f"states of {kind} {words} under a mask", *masked(kind, words), source, y, LABELS, bar=1e-4)
    some = [("LSTMCell", {"units": 6}), ("GRUCell", {"units": 4, "reset_after": False}), ("LSTMCell", {"units": 3, "use_bias": False})]
    for words, mask, walk in ((some, False, {}), (some, True, {"return_sequences": True, "go_backwards": True}), ([("SimpleRNNCell", {"units": 5})], True, {}),
                              ([("GRUCell", {"units": 5, "recurrent_regularizer": None})], False, {"return_sequences": True})):
        compare(f"RNN of {[kind for kind, _ in words]} {walk}, {'masked' if mask else 'no mask'}", *cells(words, mask, **walk), source, y, LABELS, bar=1e-4)
