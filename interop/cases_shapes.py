"""Layers that move, cut, enlarge, drop and look up, for compare.py: one list is built in both, trained from the same weights."""
import numpy as np
import keras
from keras import layers


def built(shape, entries, dtype="float32"):
    """Keras's model of plim's list."""
    def make():
        made = [layers.Input(shape, dtype=dtype)]
        for entry in entries:
            name, arguments = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
            made.append(getattr(layers, name)(**arguments))
        return keras.Sequential(made)
    return make


HEAD = ["Flatten", {"Dense": {"units": 5, "activation": "softmax"}}]
CONV = {"Conv2D": {"filters": 4, "kernel_size": 3, "activation": "relu"}}


def pictures(both, seeded, images, rng):
    def case(what, entries, shape=(9, 8, 3)):
        x, y = images(16, *shape, 5)
        both(what, seeded(built(shape, entries)), entries, x, y, "sparse_categorical_crossentropy", 8, 1e-5, (4, 1e-4, 1e-3))

    case("Cropping2D", [CONV, {"Cropping2D": {"cropping": [[1, 2], [0, 1]]}}, *HEAD])
    case("ZeroPadding2D", [{"ZeroPadding2D": {"padding": [[1, 0], [2, 1]]}}, CONV, {"ZeroPadding2D": {}}, *HEAD])
    case("UpSampling2D, nearest", [CONV, {"UpSampling2D": {"size": [2, 3]}}, CONV, *HEAD])
    for method in ("bilinear", "bicubic"):
        case(f"UpSampling2D, {method}", [CONV, {"UpSampling2D": {"size": [2, 3], "interpolation": method}}, CONV, *HEAD])
    for method in ("nearest", "bilinear", "bicubic"):
        case(f"Resizing, {method}, larger and smaller", [CONV, {"Resizing": {"height": 11, "width": 5, "interpolation": method}}, *HEAD])
    case("Resizing, crop_to_aspect_ratio", [CONV, {"Resizing": {"height": 4, "width": 7, "crop_to_aspect_ratio": True}}, *HEAD], (12, 9, 3))
    case("CenterCrop", [CONV, {"CenterCrop": {"height": 4, "width": 3}}, *HEAD])
    case("CenterCrop, too small", [CONV, {"CenterCrop": {"height": 10, "width": 8}}, *HEAD])
    case("Permute", [CONV, {"Permute": {"dims": [3, 1, 2]}}, {"Conv2D": {"filters": 3, "kernel_size": 2}}, *HEAD])
    case("Reshape, -1", [CONV, {"Reshape": {"target_shape": [7, -1]}}, {"Cropping1D": {"cropping": [1, 2]}},
                         {"ZeroPadding1D": {"padding": [0, 2]}}, {"UpSampling1D": {"size": 3}}, *HEAD])
    case("volumes", [CONV, {"Reshape": {"target_shape": [7, 3, 2, 4]}}, {"Cropping3D": {"cropping": [[1, 1], [0, 1], [0, 0]]}},
                     {"ZeroPadding3D": {"padding": [1, 0, 2]}}, {"UpSampling3D": {"size": [1, 2, 2]}}, *HEAD])
    # With a factor that leaves no choice, what is drawn is the same. Warps stand first: TensorFlow's gradient of them is a warp back,
    # which is not what finite differences say; plim's is.
    for fill in ("reflect", "wrap", "constant", "nearest"):
        drawn = [{"RandomRotation": {"factor": [0.07, 0.07], "fill_mode": fill, "fill_value": 0.3}},
                 {"RandomZoom": {"height_factor": [0.3, 0.3], "width_factor": [-0.2, -0.2], "fill_mode": fill}},
                 {"RandomTranslation": {"height_factor": [0.23, 0.23], "width_factor": [-0.31, -0.31], "fill_mode": fill}}]
        case(f"RandomRotation, RandomZoom, RandomTranslation, {fill}", [*drawn, CONV, *HEAD])
    case("RandomZoom alike, nearest", [{"RandomZoom": {"height_factor": [0.37, 0.37], "interpolation": "nearest"}}, CONV, *HEAD])
    case("RandomBrightness, RandomContrast", [CONV, {"RandomBrightness": {"factor": [0.11, 0.11], "value_range": [0.0, 1.0]}},
                                              {"RandomContrast": {"factor": [0.0, 0.0], "value_range": [0.1, 0.9]}}, *HEAD])
    case("RandomCrop of what is too small", [CONV, {"RandomCrop": {"height": 9, "width": 4}}, *HEAD])
    off = [{"Dropout": {"rate": 0.0}}, {"SpatialDropout2D": {"rate": 0.0}}, {"GaussianNoise": {"stddev": 0.0}},
           {"GaussianDropout": {"rate": 0.0}}, {"AlphaDropout": {"rate": 0.0}}]
    case("layers that draw, at rate 0", [CONV, *off, *HEAD])


def words(both, seeded, rng):
    x, y = rng.integers(0, 50, (24, 12)).astype(np.int32), rng.integers(0, 5, 24).astype(np.int32)
    table = {"Embedding": {"input_dim": 50, "output_dim": 7}}
    for dtype in ("int32", "float32"):
        both(f"Embedding of {dtype}", seeded(built((12,), [table, *HEAD], dtype)), [table, *HEAD], x.astype(dtype), y,
             "sparse_categorical_crossentropy", 8, 1e-5)
    # Where an id comes twice in a batch, Keras on TensorFlow squares the parts of its gradient one by one in Adam, on JAX and
    # Torch (and plim) their sum: only batches in which each comes once can be compared.
    once = np.concatenate([rng.permutation(50)[:48].reshape(4, 12) for _ in range(6)]).astype(np.int32)
    both("Embedding, each id once a batch", seeded(built((12,), [table, *HEAD], "int32")), [table, *HEAD], once, y,
         "sparse_categorical_crossentropy", 4, 1e-5, (6, 1e-4, 1e-3))
    masked = [{"Embedding": {"input_dim": 50, "output_dim": 7, "mask_zero": True}}, {"Dropout": {"rate": 0.0}}, "GlobalAveragePooling1D",
              {"Dense": {"units": 5, "activation": "softmax"}}]
    both("Embedding, mask_zero", seeded(built((12,), masked, "int32")), masked, np.where(rng.random(x.shape) < 0.4, 0, x).astype(np.int32), y,
         "sparse_categorical_crossentropy", 8, 1e-5)
    for mode in ("multi_hot", "count", "one_hot"):
        entries = [{"CategoryEncoding": {"num_tokens": 50, "output_mode": mode}}, *HEAD]
        both(f"CategoryEncoding, {mode}", seeded(built((12,), entries, "int32")), entries, x, y, "sparse_categorical_crossentropy", 8, 1e-5)
    x = (rng.random((24, 6), dtype=np.float32) * 4 - 2).astype(np.float32)
    for mode in ("one_hot", "multi_hot", "count"):
        entries = [{"Discretization": {"bin_boundaries": [-1.5, -0.5, 0.0, 1.25], "output_mode": mode}}, *HEAD]
        both(f"Discretization, {mode}", seeded(built((6,), entries)), entries, x, y, "sparse_categorical_crossentropy", 8, 1e-5)
    entries = [{"Discretization": {"bin_boundaries": [-1.5, -0.5, 0.0, 1.25]}}, {"Embedding": {"input_dim": 5, "output_dim": 3}}, *HEAD]
    both("Discretization, Embedding", seeded(built((6,), entries)), entries, x, y, "sparse_categorical_crossentropy", 8, 1e-5)
    entries = [{"Dense": {"units": 6, "activation": "relu"}}, {"RepeatVector": {"n": 4}}, {"Permute": {"dims": [2, 1]}}, *HEAD]
    both("RepeatVector", seeded(built((6,), entries)), entries, x, y, "sparse_categorical_crossentropy", 8, 1e-5)


def joined(both, seeded, images, rng):
    def make():
        first = layers.Input((9, 8, 3))
        a = layers.Conv2D(4, 3, padding="same", name="conv2d")(first)
        b = layers.Conv2D(5, 3, padding="same", activation="relu", name="conv2d_1")(a)
        c = layers.Concatenate(name="concatenate")([a, b, first])
        d = layers.Concatenate(axis=1, name="concatenate_1")([c, c])
        return keras.Model(first, layers.Dense(5, activation="softmax", name="dense")(layers.Flatten(name="flatten")(d)))
    entries = [{"Input": {"shape": [9, 8, 3], "name": "first"}}, {"Conv2D": {"filters": 4, "kernel_size": 3, "padding": "same"}},
               {"Conv2D": {"filters": 5, "kernel_size": 3, "padding": "same", "activation": "relu"}},
               {"Concatenate": {"inputs": ["conv2d", "conv2d_1", "first"]}}, {"Concatenate": {"axis": 1, "inputs": ["concatenate", "concatenate"]}},
               *HEAD]
    x, y = images(16, 9, 8, 3, 5)
    both("Concatenate", seeded(make), entries, x, y, "sparse_categorical_crossentropy", 8, 1e-5, (4, 1e-4, 1e-3))


def cases(both, compare, seeded, images, rng):
    pictures(both, seeded, images, rng)
    words(both, seeded, rng)
    joined(both, seeded, images, rng)
