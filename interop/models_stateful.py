"""Recurrent layers with stateful: true, for models.py: what a sample of one batch leaves, the same place of the next begins with; through
steps of training, and through epochs with validation in between, which goes on from training's states and leaves its own."""
import os, sys, tempfile
import numpy as np
import keras
from keras import layers
from plim_side import check, error, path_inside, train

LABELS, BATCH = "sparse_categorical_crossentropy", 8


def one(kind, words, mask):
    def build():
        i = keras.Input(batch_shape=(BATCH, 7, 5), name="source")
        y = getattr(layers, kind)(6, stateful=True, name="rnn", **words)(layers.Masking(name="m")(i) if mask else i)
        y = layers.Flatten(name="flat")(y[0] if words.get("return_state") else y)
        return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(y))
    return build, [{"Input": {"shape": [7, 5], "name": "source"}}, *([{"Masking": {"name": "m"}}] if mask else []),
                   {kind: {"units": 6, "stateful": True, "name": "rnn", **words}}, {"Flatten": {"name": "flat"}},
                   {"Dense": {"units": 4, "activation": "softmax", "name": "out"}}]


def both_ways():
    i = keras.Input(batch_shape=(BATCH, 7, 5), name="source")
    y = layers.Bidirectional(layers.LSTM(3, stateful=True, return_sequences=True, name="lstm"), name="two")(i)
    return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.Flatten(name="flat")(y)))


def stacked():
    i = keras.Input(batch_shape=(BATCH, 7, 5), name="source")
    y = layers.RNN([layers.LSTMCell(4, name="c0"), layers.GRUCell(3, name="c1")], stateful=True, name="rnn")(i)
    return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(y))


def used_twice():
    """The second use begins with what the first one left in the same step, and no gradient flows between them."""
    i = keras.Input(batch_shape=(BATCH, 7, 5), name="source")
    rnn = layers.GRU(5, stateful=True, name="rnn")
    y = layers.Concatenate(name="both")([rnn(i), rnn(layers.ReLU(name="positive")(i))])
    return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(y))


def given():
    """States to begin with take the place of those that were left; what is left is then not read."""
    i = keras.Input(batch_shape=(BATCH, 7, 5), name="source")
    h = layers.Dense(5, activation="tanh", name="first")(layers.Flatten(name="flat")(i))
    return keras.Model(i, layers.Dense(4, activation="softmax", name="out")(layers.GRU(5, stateful=True, name="rnn")(i, initial_state=h)))


def through_epochs(rng):
    """Two epochs, validation behind each: fit() of Keras, which never sets the states back."""
    x, y = rng.standard_normal((40, 7, 5), dtype=np.float32), rng.integers(0, 4, 40).astype(np.int32)
    vx, vy = rng.standard_normal((24, 7, 5), dtype=np.float32), rng.integers(0, 4, 24).astype(np.int32)
    keras.utils.set_random_seed(3)
    model = one("LSTM", {}, False)[0]()
    model.compile(keras.optimizers.Adam(1e-2), LABELS)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        ours = train(sys.argv[1], None, path, {"source": x, "label": y}, BATCH, 5, validation={"source": vx, "label": vy}, repeat=False,
                     epochs=2, optimizer={"adam": {"learning_rate": 1e-2}}, loss=LABELS)
    theirs = model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, validation_data=(vx, vy), validation_batch_size=BATCH, verbose=0).history
    if ours is None:
        return check("stateful, two epochs with validation: plim runs", np.inf, 0)
    check("stateful, two epochs with validation: loss", error(ours[1]["loss"], theirs["loss"][-1]), 1e-5)
    check("stateful, two epochs with validation: val_loss", error(ours[1]["val_loss"], theirs["val_loss"][-1]), 1e-5)
    for layer in model.layers:
        for w in layer.weights:
            name = f"{layer.name}/{path_inside(layer, w)}"
            check(f"stateful, two epochs with validation: {name}", error(ours[2][name], w.numpy()), 1e-4)


def cases(compare, rng):
    x, y = rng.standard_normal((40, 7, 5), dtype=np.float32), rng.integers(0, 4, 40).astype(np.int32)
    masked = x.copy()
    masked[np.arange(7)[None] >= rng.integers(3, 8, (40, 1))] = 0
    masked[::3, 0] = masked[5] = 0
    for kind, words, mask in (("LSTM", {}, False), ("GRU", {"return_sequences": True}, True), ("SimpleRNN", {"go_backwards": True}, False),
                              ("LSTM", {"return_sequences": True, "return_state": True, "go_backwards": True}, True), ("GRU", {"reset_after": False}, False), ("GRU", {}, True)):
        compare(f"stateful {kind} {words}, {'masked' if mask else 'no mask'}", *one(kind, words, mask), masked if mask else x, y, LABELS, BATCH, bar=1e-4)
    compare("stateful, both ways", both_ways, None, x, y, LABELS, BATCH, bar=1e-4)
    compare("stateful RNN of two cells", stacked, None, x, y, LABELS, BATCH, bar=1e-4)
    compare("stateful, used twice in a step", used_twice, None, x, y, LABELS, BATCH, bar=1e-4)
    compare("stateful, with states to begin with", given, None, x, y, LABELS, BATCH, bar=1e-4)
    through_epochs(rng)
