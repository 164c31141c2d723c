"""Graphs of layers: several inputs, layers used again, models inside models, frozen layers, merging layers, masks; and the
same models read from the .keras files that Keras writes. Compared with Keras as in compare.py: the gradient of every weight
through one step of SGD with learning rate 1, then steps of Adam. Prints 'N passed, N failed' last."""
import glob, importlib, os, sys, tempfile
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, path_inside, run_plim

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(1)
ROUNDING = 1e-6  # beside the largest gradient: what single precision leaves of one that cancels


def names(model, prefix=""):
    """plim's name of every weight: a layer inside a model has the model's name in front."""
    found = {}
    for layer in model.layers:
        if hasattr(layer, "layers"):
            found.update(names(layer, f"{prefix}{layer.name}/"))
        else:
            found.update({f"{prefix}{layer.name}/{path_inside(layer, w)}": w for w in layer.weights})
    return found


def train_keras(model, x, y, optimizer, loss, batch, steps):
    model.compile(optimizer=optimizer, loss=loss)
    losses = []
    for i in range(steps):
        rows = np.arange(i * batch, (i + 1) * batch) % len(y)
        part = {k: v[rows] for k, v in x.items()} if isinstance(x, dict) else x[rows]
        losses.append(float(model.train_on_batch(part, y[rows], return_dict=True)["loss"]))
        model.reset_metrics()
    return losses


def compare(what, build, words, x, y, loss, batch=8, bar=1e-5, adam=True):
    """words: the model in the job file's words, or None. From weights given by name, and from the .keras file."""
    for steps, optimizer, make in ((1, {"sgd": {"learning_rate": 1.0}}, lambda: keras.optimizers.SGD(1.0)),
                                   (5, {"adam": {"learning_rate": 1e-3}}, lambda: keras.optimizers.Adam(1e-3)) if adam else
                                   (5, {"sgd": {"learning_rate": 0.1}}, lambda: keras.optimizers.SGD(0.1))):
        for source in (["words"] if words else []) + ["file"]:
            keras.utils.set_random_seed(3)
            model = build()
            for w in model.weights:  # biases that matter
                w.assign(w.numpy() + rng.uniform(-0.1, 0.1, w.shape).astype(np.float32))
            before = {k: w.numpy().copy() for k, w in names(model).items()}
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.keras")
                model.save(path)
                ours = run_plim(plim, before if source == "words" else None, words if source == "words" else path, x, y, optimizer,
                                loss, batch, steps, ())
            theirs = train_keras(model, x, y, make(), loss, batch, steps)
            title = f"{what}, from {source}, {steps} step(s)"
            if ours is None:
                check(f"{title}: plim runs", np.inf, 0)
                continue
            losses, _, after = ours
            check(f"{title}: loss", error(losses, theirs), bar)
            largest = max(np.abs(before[k] - w.numpy()).max() for k, w in names(model).items())
            for k, w in names(model).items():
                if steps == 1:
                    if np.abs(before[k] - w.numpy()).max() < ROUNDING * largest:
                        check(f"{title}: {k} stays", np.abs(after[k] - before[k]).max() / largest, ROUNDING)
                    else:
                        check(f"{title}: gradient of {k}", error(before[k] - after[k], before[k] - w.numpy()), bar)
                else:
                    check(f"{title}: {k}", error(after[k], w.numpy()), 1e-3)


def two_towers():
    a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
    tower = layers.Dense(3, name="tower", activation="relu")
    encoder = keras.Sequential([layers.Input((3,)), layers.Dense(4, activation="sigmoid", name="inner"), layers.Dense(2, name="last")], name="encoder")
    z = layers.Add(name="sum")([encoder(tower(a)), encoder(tower(b))])
    m = layers.Multiply(name="product")([layers.Dense(4, name="frozen", trainable=False)(z), layers.Dense(4, name="free")(z)])
    return keras.Model([a, b], layers.Dense(1, activation="sigmoid", name="out")(m), name="two_towers")


x = {"a": rng.random((40, 5), dtype=np.float32), "b": rng.random((40, 5), dtype=np.float32)}
y = rng.integers(0, 2, 40).astype(np.float32)
compare("two towers", two_towers,
        {"layers": [{"Input": {"shape": [5], "name": "a"}}, {"Input": {"shape": [5], "name": "b"}},
                    {"Dense": {"units": 3, "name": "tower", "activation": "relu", "inputs": "a"}}, {"tower": {"inputs": "b", "name": "second"}},
                    {"Sequential": {"name": "encoder", "inputs": "tower",
                                    "layers": [{"Dense": {"units": 4, "activation": "sigmoid", "name": "inner"}}, {"Dense": {"units": 2, "name": "last"}}]}},
                    {"encoder": "second"}, {"Add": {"inputs": ["encoder", "encoder:1"], "name": "sum"}},
                    {"Dense": {"units": 4, "name": "frozen", "trainable": False}}, {"Dense": {"units": 4, "name": "free", "inputs": "sum"}},
                    {"Multiply": {"inputs": ["frozen", "free"], "name": "product"}},
                    {"Dense": {"units": 1, "activation": "sigmoid", "name": "out"}}], "outputs": "out"},
        x, y, "binary_crossentropy")


def residual():
    i = keras.Input((8, 8, 2), name="image")
    x = layers.Conv2D(4, 3, padding="same", activation="relu", name="stem")(i)
    for k in range(3):
        s = layers.Conv2D(4, 3, padding="same", activation="relu", name=f"c{k}")(x)
        x = layers.ReLU(name=f"r{k}")(x + layers.Conv2D(4, 3, padding="same", name=f"d{k}")(s))
    return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.Flatten()(x)))


compare("residual blocks, x + y", residual, None, rng.random((24, 8, 8, 2), dtype=np.float32), rng.integers(0, 3, 24).astype(np.int32),
        "sparse_categorical_crossentropy")


def nested_functional():
    inner_a, inner_b = keras.Input((4,), name="first"), keras.Input((4,), name="other")
    inner = keras.Model([inner_b, inner_a], layers.Subtract()([layers.Dense(3, name="p")(inner_a), layers.Dense(3, name="q")(inner_b)]), name="pair")
    i = keras.Input((6,), name="x")
    u, v = layers.Dense(4, name="u")(i), layers.Dense(4, name="v", activation="relu")(i)
    return keras.Model(i, layers.Dense(1, activation="sigmoid", name="out")(layers.Add()([inner([u, v]), inner([v, u])])))


compare("a functional model inside, used twice", nested_functional, None, rng.random((40, 6), dtype=np.float32), y, "binary_crossentropy")

for merge, least in (("Add", 3), ("Subtract", 2), ("Multiply", 3), ("Average", 3), ("Maximum", 3), ("Minimum", 3)):
    if not hasattr(layers, merge):
        continue

    def merged(merge=merge, least=least):
        i = keras.Input((6,), name="x")
        parts = [layers.Dense(4, name=f"p{k}")(i) for k in range(least)]
        return keras.Model(i, layers.Dense(1, activation="sigmoid", name="out")(getattr(layers, merge)(name="m")(parts)))

    compare(merge, merged, [{"Input": {"shape": [6], "name": "x"}}] + [{"Dense": {"units": 4, "name": f"p{k}", "inputs": "x"}} for k in range(least)] +
            [{merge: {"inputs": [f"p{k}" for k in range(least)], "name": "m"}}, {"Dense": {"units": 1, "activation": "sigmoid", "name": "out"}}],
            rng.random((40, 6), dtype=np.float32), y, "binary_crossentropy")

steps = rng.random((40, 7, 3), dtype=np.float32)
steps[:, 4:] *= (rng.random((40, 3, 1)) < 0.5)  # some of the last steps are all zeros
steps[:, 5, 0] = 0
compare("Masking, ReLU, GlobalAveragePooling1D", lambda: keras.Sequential([layers.Input((7, 3)), layers.Masking(), layers.ReLU(),
        layers.GlobalAveragePooling1D(), layers.Dense(1, activation="sigmoid", name="out")]),
        ["Masking", "ReLU", "GlobalAveragePooling1D", {"Dense": {"units": 1, "activation": "sigmoid", "name": "out"}}], steps, y, "binary_crossentropy")

def broadcast():
    i, j = keras.Input((4, 4, 3), name="image"), keras.Input((3,), name="gate")
    m = layers.Multiply()([layers.Conv2D(3, 3, padding="same", name="conv")(i), layers.Reshape((1, 1, 3))(layers.Dense(3, activation="sigmoid", name="squeeze")(j))])
    return keras.Model([i, j], layers.Dense(1, activation="sigmoid", name="out")(layers.Flatten()(m)))


compare("Multiply that broadcasts", broadcast, None, {"image": rng.random((40, 4, 4, 3), dtype=np.float32), "gate": rng.random((40, 3), dtype=np.float32)}, y,
        "binary_crossentropy")

compare("TimeDistributed Dense", lambda: keras.Sequential([layers.Input((7, 3)), layers.TimeDistributed(layers.Dense(5, activation="relu", name="dense"), name="each"),
        layers.GlobalAveragePooling1D(), layers.Dense(1, activation="sigmoid", name="out")]),
        [{"TimeDistributed": {"layer": {"Dense": {"units": 5, "activation": "relu"}}, "name": "each"}}, "GlobalAveragePooling1D",
         {"Dense": {"units": 1, "activation": "sigmoid", "name": "out"}}], steps, y, "binary_crossentropy")

pictures = rng.random((40, 3, 6, 6, 2), dtype=np.float32)
compare("TimeDistributed Conv2D", lambda: keras.Sequential([layers.Input((3, 6, 6, 2)), layers.TimeDistributed(layers.Conv2D(4, 3, activation="relu", name="conv2d"), name="each"),
        layers.Flatten(), layers.Dense(1, activation="sigmoid", name="out")]),
        [{"TimeDistributed": {"layer": {"Conv2D": {"filters": 4, "kernel_size": 3, "activation": "relu"}}, "name": "each"}}, "Flatten",
         {"Dense": {"units": 1, "activation": "sigmoid", "name": "out"}}], pictures, y, "binary_crossentropy")


def encoder():
    i = keras.Input((6,), dtype="int32", name="tokens")
    x = layers.Embedding(11, 8, mask_zero=True, name="words")(i)
    x = layers.LayerNormalization(name="norm")(layers.Add()([x, layers.MultiHeadAttention(2, 4, name="heads")(x, x)]))
    x = layers.Add()([x, layers.Dense(8, name="down")(layers.Dense(16, activation="relu", name="up")(x))])
    return keras.Model(i, layers.Dense(1, activation="sigmoid", name="out")(layers.GlobalAveragePooling1D()(x)))


tokens = rng.integers(1, 11, (40, 6)).astype(np.int32)
tokens[np.arange(6)[None] >= rng.integers(2, 7, (40, 1))] = 0
# Not Adam: on TensorFlow Keras squares the gradients of a word that is there twice one by one, and sums afterwards.
compare("an encoder with a mask", encoder, None, tokens, y, "binary_crossentropy", bar=1e-4, adam=False)


def reader():
    i = keras.Input((6,), dtype="int32", name="tokens")
    x = layers.Embedding(11, 8, mask_zero=True, name="words")(i)
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True, name="lstm"), name="both_ways")(x)
    start = layers.Dense(7, activation="tanh", name="start")(layers.GlobalAveragePooling1D()(x))
    x = layers.GRU(7, name="gate", return_sequences=True, activity_regularizer=None)(x, initial_state=start)
    x = layers.SimpleRNN(4, name="last", recurrent_regularizer=keras.regularizers.L2(0.01))(x)
    return keras.Model(i, layers.Dense(1, activation="sigmoid", name="out")(x))


compare("recurrent layers with a mask", reader, None, tokens, y, "binary_crossentropy", bar=1e-4, adam=False)
compare("LSTM, GRU", lambda: keras.Sequential([layers.Input((7, 3)), layers.LSTM(6, return_sequences=True), layers.Bidirectional(layers.GRU(5), merge_mode="sum"),
        layers.Dense(1, activation="sigmoid", name="out")]), None, steps, y, "binary_crossentropy", bar=1e-4)


def normalised():
    i = keras.Input((8, 8, 2), name="image")
    x = layers.BatchNormalization(name="bn")(layers.Conv2D(4, 3, padding="same", use_bias=False, name="c")(i))
    x = layers.Concatenate()([layers.ReLU()(x), layers.AveragePooling2D(3, strides=1, padding="same")(x)])
    return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.GlobalAveragePooling2D()(x)))


compare("BatchNormalization, Concatenate, pooling", normalised, None, rng.random((24, 8, 8, 2), dtype=np.float32), rng.integers(0, 3, 24).astype(np.int32),
        "sparse_categorical_crossentropy", bar=1e-4)



def language(entries, head):
    def build():
        i = keras.Input((32,), dtype="int32", name="tokens")
        table = layers.ReversibleEmbedding(entries, 8, name="table", **head)
        x = table(i)
        x = layers.Add()([x, layers.MultiHeadAttention(2, 4, name="heads")(x, x, use_causal_mask=True)])
        x = layers.LayerNormalization(name="norm")(x)
        x = layers.Dense(entries, name="scores")(x) if head is DENSE else table(x, reverse=True)
        return keras.Model(i, layers.Activation("softmax")(x))
    return build


DENSE = {}
for entries in (50, 8300):  # few: the scores are there as a whole; many: by blocks
    text = rng.integers(0, entries, (16, 33)).astype(np.int32)
    for what, head in (("tied", {"tie_weights": True}), ("untied, capped", {"tie_weights": False, "logit_soft_cap": 2.0}), ("dense", DENSE)):
        if entries > 50 and "capped" in what:
            continue  # never by blocks; and its gradients are too small to be seen in differences of float32 weights
        compare(f"a language model of {entries} entries, {what}", language(entries, head), None, text[:, :-1], text[:, 1:],
                "sparse_categorical_crossentropy", bar=1e-4, adam=False)

# A family a file: models_NAME.py with cases(compare, rng).
for name in sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "models_*.py"))):
    importlib.import_module(name).cases(compare, rng)

sys.exit(finish())
