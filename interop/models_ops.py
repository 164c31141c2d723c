"""Python's operators and keras.ops in functional models, for models.py: from the .keras file, a few also in the words of a job
file. Each stands between two Dense layers, so that its gradient matters. Then a model for each step of time, cosines, and figures
that were adapted to data."""
import os, sys, tempfile
import numpy as np
import keras
from keras import layers, ops
from plim_side import check, error, run_plim

FIRST, SECOND = (6, 4), (6, 4)
# What is made of x and y, both (None, 6, 4), by expressions that people write.
CASES = {
    "x + 3": lambda x, y: x + 3.0, "3 + x": lambda x, y: 3.0 + x, "1 - x": lambda x, y: 1.0 - x, "-x": lambda x, y: -x,
    "x * 0.5": lambda x, y: x * 0.5, "x / 2": lambda x, y: x / 2.0, "1 / x": lambda x, y: 1.0 / (ops.square(x) + 1), "x ** 2": lambda x, y: x ** 2,
    "x + y": lambda x, y: x + y, "x - y": lambda x, y: x - y, "x * y": lambda x, y: x * y, "abs": lambda x, y: abs(x),
    "maximum": lambda x, y: ops.maximum(x, y), "minimum": lambda x, y: ops.minimum(x, 0.1), "where": lambda x, y: ops.where(x > 0, x, y),
    "where 0": lambda x, y: ops.where(ops.greater(x, y), x, 0.0), "x[:, 0]": lambda x, y: x[:, 0], "x[:, 1:4]": lambda x, y: x[:, 1:4, :],
    "x[..., -1]": lambda x, y: x[..., -1], "x[:, ::2]": lambda x, y: x[:, ::2], "x[:, None]": lambda x, y: x[:, None, ..., 1:],
    "x[:, ::-1]": lambda x, y: x[:, ::-1], "mean": lambda x, y: ops.mean(x, axis=1), "mean, kept": lambda x, y: ops.mean(x, axis=[1, 2], keepdims=True),
    "sum": lambda x, y: ops.sum(x, axis=-1), "max": lambda x, y: ops.max(x, axis=1), "min": lambda x, y: ops.min(x, axis=-1),
    "std": lambda x, y: ops.std(x, axis=1), "var": lambda x, y: ops.var(x, axis=-1), "logsumexp": lambda x, y: ops.logsumexp(x, axis=1),
    "reshape": lambda x, y: ops.reshape(x, (-1, 3, 8)),
    "transpose": lambda x, y: ops.transpose(x, (0, 2, 1)), "swapaxes": lambda x, y: ops.swapaxes(x, 1, 2), "moveaxis": lambda x, y: ops.moveaxis(x, 1, -1),
    "expand and squeeze": lambda x, y: ops.squeeze(ops.expand_dims(x, 1), 1) * 2.0, "concatenate": lambda x, y: ops.concatenate([x, y], axis=-1),
    "stack": lambda x, y: ops.stack([x, y], axis=1), "split": lambda x, y: ops.split(x, 2, axis=1)[1] * ops.split(y, 2, axis=1)[0],
    "split at": lambda x, y: ops.split(x, [1, 4], axis=1)[1], "matmul": lambda x, y: ops.matmul(x, ops.transpose(y, (0, 2, 1))), "pad": lambda x, y: ops.pad(x, ((0, 0), (1, 2), (0, 0))),
    "tile": lambda x, y: ops.tile(x, (1, 2, 1)), "repeat": lambda x, y: ops.repeat(x, 2, axis=1), "flip": lambda x, y: ops.flip(x, axis=1),
    "cumsum": lambda x, y: ops.cumsum(x, axis=1), "clip": lambda x, y: ops.clip(x, -0.2, 0.3), "normalize": lambda x, y: ops.normalize(x, axis=-1),
    "einsum": lambda x, y: ops.einsum("bij,bkj->bik", x, y), "einsum, outer": lambda x, y: ops.einsum("bij,bik->bjki", x, y),
    "einsum, sums": lambda x, y: ops.einsum("bij,bkl->bil", x, y), "einsum of one": lambda x, y: ops.einsum("bij->bj", x),
    "exp": lambda x, y: ops.exp(x), "sqrt": lambda x, y: ops.sqrt(ops.square(x) + 0.1), "log": lambda x, y: ops.log(ops.square(x) + 0.5),
    "relu": lambda x, y: ops.relu(x), "leaky_relu": lambda x, y: ops.leaky_relu(x, 0.1), "gelu": lambda x, y: ops.gelu(x, approximate=False), "gelu, tanh": lambda x, y: ops.gelu(x),
    "silu": lambda x, y: ops.silu(x), "tanh": lambda x, y: ops.tanh(x), "sigmoid": lambda x, y: ops.sigmoid(x), "softmax": lambda x, y: ops.softmax(x, axis=1),
    "int32 * x": lambda x, y: ops.cast(4 * y, "int32") * x, "bool * x": lambda x, y: (y > 0) * x, "x + uint8 - int8": lambda x, y: x + (ops.cast(ops.abs(9 * y), "uint8") - ops.cast(y, "int8")),
    "int32 / int32": lambda x, y: ops.cast(5 * y, "int32") / (ops.cast(x > 0, "int32") + 2) * x, "bool + 2": lambda x, y: ((y > 0) + 2) * x, "bfloat16 + x": lambda x, y: ops.cast(x, "bfloat16") + y,
    "float16 * bfloat16": lambda x, y: ops.cast(x, "float16") * ops.cast(y, "bfloat16"), "where, types": lambda x, y: ops.where(y > 0, x, ops.cast(3 * y, "int32")), "uint8 < 300": lambda x, y: ops.where(ops.cast(ops.abs(9 * y), "uint8") < 300, x, y),
    "concatenate types": lambda x, y: ops.concatenate([x, ops.cast(3 * y, "int32"), y > 0], axis=-1), "stack types": lambda x, y: ops.stack([x, ops.cast(3 * y, "int32")], axis=1), "matmul types": lambda x, y: ops.matmul(x, ops.transpose(ops.cast(3 * y, "int32"), (0, 2, 1))),
    "matmul, whole": lambda x, y: ops.matmul(ops.cast(3 * x, "int32"), ops.transpose(ops.cast(3 * y, "int32"), (0, 2, 1))), "exp, whole": lambda x, y: x + ops.exp(ops.cast(3 * y, "int32")), "square, whole": lambda x, y: x * ops.square(ops.cast(3 * y, "int32")),
    "stop_gradient": lambda x, y: ops.stop_gradient(x) * y, "stop one way": lambda x, y: x * ops.stop_gradient(x) + y, "stop all": lambda x, y: ops.stop_gradient(ops.exp(x)),
    "straight through": lambda x, y: x + ops.stop_gradient(ops.round(2 * x) - x),
    "x + array": lambda x, y: x + np.arange(4, dtype="float32"), "array - x": lambda x, y: ops.subtract(np.arange(24).reshape(6, 4) / 7, x), "x * tensor": lambda x, y: x * ops.convert_to_tensor([[1.0], [2.0], [3.0], [-4.0], [5.0], [0.5]]),
    "x + whole array": lambda x, y: x + np.array([1, 2, 3, 4]), "whole + whole array": lambda x, y: x + ops.cast(3 * y, "int32") + (ops.cast(ops.abs(3 * x), "uint8") + np.array([1, -2, 3, 4], "int8")),
    "where array": lambda x, y: ops.where(y > 0, x, np.linspace(-1, 1, 4).astype("float32")), "where mask": lambda x, y: ops.where(y > np.array([[0.1, -0.1, 0.0, 0.2]]), x, y), "matmul array": lambda x, y: ops.matmul(x, np.arange(20, dtype="float32").reshape(4, 5) / 10),
    "x * scalar tensor": lambda x, y: x * ops.convert_to_tensor(2.5), "x * mask": lambda x, y: x * np.array([True, False, True, True]),
    "log_softmax": lambda x, y: ops.log_softmax(x), "hard_sigmoid": lambda x, y: ops.hard_sigmoid(x), "elu": lambda x, y: ops.elu(x),
}


def model(make):
    def build():
        a, b = keras.Input(FIRST, name="a"), keras.Input(SECOND, name="b")
        x, y = layers.Dense(4, name="x")(a), layers.Dense(4, name="y")(b)
        both = layers.Concatenate(name="both")([layers.Flatten(name="flat")(make(x, y)), layers.Flatten(name="other")(y)])
        return keras.Model([a, b], layers.Dense(3, activation="softmax", name="out")(both))
    return build


def compare_adapted(y, **words):
    """Figures that were adapted to data are weights, which the file has."""
    i = keras.Input((5,), name="a")
    normal, rng = layers.Normalization(name="normal", **words), np.random.default_rng(2)
    normal.adapt(rng.normal(3, 2, (50, 5)))
    model = keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.Dense(6, activation="tanh", name="x")(normal(i))))
    x = rng.normal(3, 2, (len(y), 5)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        ours = run_plim(sys.argv[1], None, path, x, y, {"sgd": {"learning_rate": 0.1}}, "sparse_categorical_crossentropy", len(y), 3, ())
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    theirs = []
    for _ in range(3):
        theirs.append(float(model.train_on_batch(x, y, return_dict=True)["loss"]))
        model.reset_metrics()
    check(f"a Normalization that was adapted, {words}: losses", error(ours[0], theirs) if ours else np.inf, 1e-5)


WORDS = [{"Input": {"shape": list(FIRST), "name": "a"}}, {"Input": {"shape": list(SECOND), "name": "b"}},
         {"Dense": {"units": 4, "name": "x", "inputs": "a"}}, {"Dense": {"units": 4, "name": "y", "inputs": "b"}}]
END = [{"Flatten": {"name": "flat"}}, {"Flatten": {"name": "other", "inputs": "y"}}, {"Concatenate": {"name": "both", "inputs": ["flat", "other"]}},
       {"Dense": {"units": 3, "activation": "softmax", "name": "out"}}]
IN_WORDS = {"x + array": [{"Op": {"op": "add", "arguments": {"b": [0.0, 1, 2, 3]}, "inputs": "x"}}],
            "matmul array": [{"Op": {"op": "matmul", "arguments": {"b": {"dtype": "float32", "value": [[i / 10 for i in range(k, k + 5)] for k in range(0, 20, 5)]}}, "inputs": "x"}}],
            "x + 3": [{"Op": {"op": "add", "arguments": {"b": 3}, "inputs": "x"}}],
            "x[:, 1:4]": [{"Op": {"op": "get_item", "arguments": {"key": [":", "1:4"]}, "inputs": "x"}}],
            "concatenate": [{"Op": {"op": "concatenate", "inputs": ["x", "y"]}}],
            "split at": [{"Op": {"op": "split", "arguments": {"indices_or_sections": [1, 4], "axis": 1}, "name": "parts", "inputs": "x"}},
                         {"Op": {"op": "multiply", "arguments": 1, "inputs": "parts/1"}}]}


def pictures_in_time(normal):
    """A model for each step."""
    def build():
        i = keras.Input((3, 8, 8, 2), name="a")
        inside = [layers.Input((8, 8, 2)), layers.Conv2D(3, 3, activation="tanh", name="first"), layers.Conv2D(4, 3, name="second"),
                  *([layers.BatchNormalization(name="normal")] if normal else []), layers.GlobalAveragePooling2D(name="pool"), layers.Dense(5, name="last")]
        x = layers.TimeDistributed(keras.Sequential(inside, name="inside"), name="steps")(i)
        return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.LSTM(4, name="lstm")(x)))
    words = [{"TimeDistributed": {"name": "steps", "layer": {"Sequential": {"name": "inside", "layers": [
        {"Conv2D": {"filters": 3, "kernel_size": 3, "activation": "tanh", "name": "first"}}, {"Conv2D": {"filters": 4, "kernel_size": 3, "name": "second"}},
        *([{"BatchNormalization": {"name": "normal"}}] if normal else []), {"GlobalAveragePooling2D": {"name": "pool"}}, {"Dense": {"units": 5, "name": "last"}}]}}}},
        {"LSTM": {"units": 4, "name": "lstm"}}, {"Dense": {"units": 3, "activation": "softmax", "name": "out"}}]
    return build, words


def residuals_in_time():
    """A graph for each step: a sum of two branches, an op, a layer that is used twice."""
    def build():
        i, one = keras.Input((3, 8, 8, 2), name="a"), keras.Input((8, 8, 2), name="picture")
        second = layers.Conv2D(4, 3, padding="same", activation="tanh", name="second")
        x = layers.Conv2D(4, 3, padding="same", name="first")(one)
        x = second(layers.Add(name="sum")([x, second(x)]) * 0.5)
        inside = keras.Model(one, layers.Dense(5, name="last")(layers.GlobalAveragePooling2D(name="pool")(x)), name="inside")
        return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.LSTM(4, name="lstm")(layers.TimeDistributed(inside, name="steps")(i))))
    words = [{"TimeDistributed": {"name": "steps", "layer": {"Functional": {"name": "inside", "outputs": "last", "layers": [
        {"Input": {"shape": [8, 8, 2], "name": "picture"}}, {"Conv2D": {"filters": 4, "kernel_size": 3, "padding": "same", "name": "first"}},
        {"Conv2D": {"filters": 4, "kernel_size": 3, "padding": "same", "activation": "tanh", "name": "second"}},
        {"Add": {"inputs": ["first", "second"], "name": "sum"}}, {"Op": {"op": "multiply", "arguments": {"b": 0.5}}}, {"second": {"name": "again"}},
        {"GlobalAveragePooling2D": {"name": "pool"}}, {"Dense": {"units": 5, "name": "last"}}]}}}},
        {"LSTM": {"units": 4, "name": "lstm"}}, {"Dense": {"units": 3, "activation": "softmax", "name": "out"}}]
    return build, words


def models_in_time():
    """A model inside the model of each step, used twice, and a layer of several outputs."""
    def build():
        i, one = keras.Input((3, 6, 2), name="a"), keras.Input((6, 2), name="row")
        nested = keras.Sequential([layers.Input((4,)), layers.Dense(5, activation="tanh", name="wide"), layers.Dense(4, name="narrow")], name="nested")
        y, h, _ = layers.LSTM(4, return_state=True, name="read")(one)
        x = nested(layers.Add(name="sum")([y, nested(h)]))
        inside = keras.Model(one, layers.Dense(5, name="last")(x), name="inside")
        return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.GRU(4, name="gru")(layers.TimeDistributed(inside, name="steps")(i))))
    words = [{"TimeDistributed": {"name": "steps", "layer": {"Functional": {"name": "inside", "layers": [
        {"Input": {"shape": [6, 2], "name": "row"}}, {"LSTM": {"units": 4, "return_state": True, "name": "read"}},
        {"Sequential": {"name": "nested", "inputs": "read/1", "layers": [{"Dense": {"units": 5, "activation": "tanh", "name": "wide"}}, {"Dense": {"units": 4, "name": "narrow"}}]}},
        {"Add": {"inputs": ["read", "nested"], "name": "sum"}}, {"nested": {"name": "again"}}, {"Dense": {"units": 5, "name": "last"}}]}}}},
        {"GRU": {"units": 4, "name": "gru"}}, {"Dense": {"units": 3, "activation": "softmax", "name": "out"}}]
    return build, words


def sentences_in_time(mask):
    """Sentences of a text: each is read by a recurrent layer, and so are they."""
    def build():
        i, one = keras.Input((3, 7), dtype="int32", name="a"), keras.Input((7,), dtype="int32", name="sentence")
        x = layers.Rescaling(12.0, name="large")(layers.Embedding(11, 5, mask_zero=mask, name="table")(one))
        inside = keras.Model(one, layers.Bidirectional(layers.LSTM(4, name="read"), name="both")(x), name="inside")
        return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.GRU(4, name="gru")(layers.TimeDistributed(inside, name="steps")(i))))
    words = [{"TimeDistributed": {"name": "steps", "layer": {"Functional": {"name": "inside", "layers": [
        {"Embedding": {"input_dim": 11, "output_dim": 5, "mask_zero": mask, "name": "table"}}, {"Rescaling": {"scale": 12.0, "name": "large"}},
        {"Bidirectional": {"layer": {"LSTM": {"units": 4, "name": "read"}}, "name": "both"}}]}}}},
        {"GRU": {"units": 4, "name": "gru"}}, {"Dense": {"units": 3, "activation": "softmax", "name": "out"}}]
    return build, words


def cosine(axes):
    def build():
        a, b = keras.Input(FIRST, name="a"), keras.Input(SECOND, name="b")
        x, y = layers.Dense(4, name="x")(a), layers.Dense(4, name="y")(b)
        return keras.Model([a, b], layers.Dense(3, activation="softmax", name="out")(layers.Flatten(name="flat")(layers.Dot(axes, normalize=True, name="dot")([x, y]))))
    return build


# Of pictures (None, 8, 6, 2), and the same as a job file's Op.
RESIZED = {"bilinear": {"size": [5, 9]}, "nearest": {"size": [12, 4], "interpolation": "nearest"}, "bicubic": {"size": [5, 9], "interpolation": "bicubic"},
           "cut": {"size": [4, 4], "crop_to_aspect_ratio": True}}


def resized(words):
    def build():
        i = keras.Input((8, 6, 2), name="a")
        x = ops.image.resize(layers.Conv2D(3, 3, padding="same", name="x")(i), data_format="channels_last", **words)
        return keras.Model(i, layers.Dense(3, activation="softmax", name="out")(layers.Flatten(name="flat")(ops.square(x))))
    return build, [{"Input": {"shape": [8, 6, 2], "name": "a"}}, {"Conv2D": {"filters": 3, "kernel_size": 3, "padding": "same", "name": "x"}},
                   {"Op": {"op": "resize", "arguments": words}}, {"Op": {"op": "square"}}, "Flatten", {"Dense": {"units": 3, "activation": "softmax", "name": "out"}}]


def cases(compare, rng):
    x = {"a": rng.uniform(-1, 1, (16, *FIRST)).astype(np.float32), "b": rng.uniform(-1, 1, (16, *SECOND)).astype(np.float32)}
    y = rng.integers(0, 3, 16).astype(np.int32)
    for what, make in CASES.items():
        words = WORDS + IN_WORDS[what] + END if what in IN_WORDS else None
        compare(f"op {what}", model(make), words, x, y, "sparse_categorical_crossentropy", bar=1e-4 if "soft" in what else 2e-5, adam=False)
    for what, arguments in RESIZED.items():
        build, words = resized(arguments)
        compare(f"op resize, {what}", build, words, rng.uniform(-1, 1, (16, 8, 6, 2)).astype(np.float32), y, "sparse_categorical_crossentropy", bar=2e-5, adam=False)
    pictures = rng.uniform(-1, 1, (16, 3, 8, 8, 2)).astype(np.float32)
    for normal in (False, True):
        build, words = pictures_in_time(normal)
        compare(f"a model for each step{', normalised' if normal else ''}", build, words, pictures, y, "sparse_categorical_crossentropy", bar=1e-4, adam=False)
    compare("a graph for each step", *residuals_in_time(), pictures, y, "sparse_categorical_crossentropy", bar=1e-4, adam=False)
    compare("models inside the model of each step", *models_in_time(), rng.normal(size=(16, 3, 6, 2)).astype(np.float32), y,
            "sparse_categorical_crossentropy", bar=1e-4, adam=False)
    for mask in (False, True):
        compare(f"sentences, one by one{', masked' if mask else ''}", *sentences_in_time(mask), rng.integers(0, 11, (16, 3, 7)).astype(np.int32), y,
                "sparse_categorical_crossentropy", bar=1e-4, adam=False)
    for axes in (1, 2):
        compare(f"Dot of unit vectors along {axes}", cosine(axes), None, x, y, "sparse_categorical_crossentropy", adam=False)
    compare_adapted(y)
    compare_adapted(y, invert=True)
