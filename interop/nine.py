"""Nine models as people build them, in plim and in Keras from one .keras file: MLP, CNN, MobileNetV2, ResNet-50, DenseNet, U-Net,
a BERT-like encoder, a GPT-2-like decoder, an LSTM classifier. The graphs are the real ones; pictures, vocabularies and, where
the architecture says how often, repetitions are few. Loss and every gradient of the first step, then loss and every weight after
five steps of Adam with learning rate 1e-4. Prints 'N passed, N failed' last; words behind PLIM choose models.

Gradients are read from one step of SGD whose learning rate is a power of two so large that the weight before it does not
matter. Keras's step sums the gradients of a word that is there twice before Adam squares them, as Keras does on JAX and
PyTorch (on TensorFlow it would square them one by one).

What plim computes in single precision is compared with what Keras computes in double from the same file: all of the
error is plim's. Behind batch normalisation single precision would decide on which side of a kink some ReLUs are, and Keras's own
gradients of MobileNetV2 and ResNet-50 are then 1e-2 from those in double. So these models get normalisations whose outputs lie on
one side each, and are compared a second time with silu in the place of ReLU, where outputs lie anywhere."""
import fnmatch, json, os, sys, tempfile, time
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, run_plim

tf.get_logger().setLevel("ERROR")
plim, only = sys.argv[1], sys.argv[2:]
rng = np.random.default_rng(11)
RATE, STEPS = 1e-4, 5
SPREAD, SIDE = 0.3, 1.5  # of a normalised channel, and how far from 0 its middle is, where kinks are to be avoided
NOTHING = 1e-10  # beside the largest gradient: what double precision leaves of 0
CLASSES = 10


def names(model):
    """plim's name of every weight, by what Keras calls it."""
    found = {}
    for layer in model.layers:
        for w in layer.weights:
            inner = [part for part in layer._flatten_layers(include_self=False) if any(v is w for v in part.weights)]
            found[f"{layer.name}/{inner[-1].name + '/' if inner else ''}{w.name}"] = w
    return found


def pictures(batch, size, channels=3):
    return rng.standard_normal((batch, size, size, channels), dtype=np.float32) + 1  # averages that are not all 0


def classes(batch, *more, of=CLASSES):
    return rng.integers(0, of, (batch, *more)).astype(np.int32)


# ---- the models: each gives (model, x, y, loss in plim's words) -------------------------------------------------------

SPARSE = {"SparseCategoricalCrossentropy": {}}
BINARY = {"BinaryCrossentropy": {}}
LOGITS = {"SparseCategoricalCrossentropy": {"from_logits": True}}


def mlp():
    model = keras.Sequential([layers.Input((100,)), layers.Dense(64, activation="relu"), layers.Dense(32, activation="relu"),
                              layers.Dense(1, activation="sigmoid")])
    return model, rng.random((32, 100), dtype=np.float32), rng.integers(0, 2, (32, 1)).astype(np.float32), BINARY


def cnn():
    model = keras.Sequential([layers.Input((64, 64, 3)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
                              layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(),
                              layers.Dense(128, activation="relu"), layers.Dense(CLASSES, activation="softmax")])
    return model, pictures(8, 64), classes(8), SPARSE


def mobilenet_v2():
    model = keras.applications.MobileNetV2(weights=None, classes=CLASSES, input_shape=(96, 96, 3), alpha=0.5)
    return model, pictures(8, 96), classes(8), SPARSE


def resnet50():
    model = keras.applications.ResNet50(weights=None, classes=CLASSES, input_shape=(64, 64, 3))
    return model, pictures(16, 64), classes(16), SPARSE


def densenet():
    """DenseNet's blocks: every layer reads all before it."""
    def normal(x, filters, size, **words):
        x = layers.ReLU()(layers.BatchNormalization(epsilon=1.001e-5)(x))
        return layers.Conv2D(filters, size, padding="same", use_bias=False, **words)(x)
    i = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 7, strides=2, use_bias=False)(layers.ZeroPadding2D(3)(i))
    x = layers.ReLU()(layers.BatchNormalization(epsilon=1.001e-5)(x))
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))
    for block, repeats in enumerate((3, 4, 4)):
        if block:
            x = layers.AveragePooling2D(2)(normal(x, x.shape[-1] // 2, 1))
        for _ in range(repeats):
            x = layers.Concatenate()([x, normal(normal(x, 64, 1), 16, 3)])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.BatchNormalization(epsilon=1.001e-5)(x)))
    return keras.Model(i, layers.Dense(CLASSES, activation="softmax")(x)), pictures(8, 64), classes(8), SPARSE


def twice(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
    return x


def unet():
    i = keras.Input((64, 64, 3))
    x, kept = i, []
    for filters in (8, 16, 32, 64):
        kept.append(twice(x, filters))
        x = layers.MaxPooling2D(2)(kept[-1])
    x = layers.Dropout(0.0)(twice(x, 128))
    for k, filters in enumerate((64, 32, 16, 8)):
        up = layers.Conv2DTranspose(filters, 2, strides=2, padding="same") if k % 2 else layers.UpSampling2D(2)
        x = twice(layers.Concatenate()([kept.pop(), up(x)]), filters)
    model = keras.Model(i, layers.Conv2D(1, 1, activation="sigmoid")(x))
    return model, pictures(4, 64), rng.integers(0, 2, (4, 64, 64, 1)).astype(np.float32), BINARY


def attend(x, heads, width, **words):
    return layers.MultiHeadAttention(heads, width // heads)(x, x, **words)


def bert():
    """Post-norm blocks over words, positions and segments; padding is masked; the first place's vector is classified."""
    words, length, width, batch = 200, 24, 48, 6
    tokens = keras.Input((length,), dtype="int32", name="tokens")
    places = keras.Input((length,), dtype="int32", name="places")
    segments = keras.Input((length,), dtype="int32", name="segments")
    x = layers.Add()([layers.Embedding(words, width, mask_zero=True)(tokens), layers.Embedding(length, width)(places),
                      layers.Embedding(2, width)(segments)])
    x = layers.Dropout(0.0)(layers.LayerNormalization(epsilon=1e-12)(x))
    for _ in range(3):
        x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, attend(x, 4, width)]))
        h = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x))
        x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, h]))
    pooled = layers.Dense(width, activation="tanh")(layers.Flatten()(layers.Cropping1D((0, length - 1))(x)))
    model = keras.Model([tokens, places, segments], layers.Dense(CLASSES, activation="softmax")(pooled))
    t = rng.integers(1, words, (batch, length)).astype(np.int32)
    t[np.arange(length)[None] >= rng.integers(8, length + 1, (batch, 1))] = 0
    x = {"tokens": t, "places": np.tile(np.arange(length, dtype=np.int32), (batch, 1)),
         "segments": (np.arange(length)[None] >= rng.integers(3, 9, (batch, 1))).astype(np.int32)}
    return model, x, classes(batch), SPARSE


def gpt2():
    """Pre-norm blocks under a causal mask; the words' table is used again as the head."""
    words, length, width, batch = 300, 32, 48, 4
    tokens = keras.Input((length,), dtype="int32", name="tokens")
    places = keras.Input((length,), dtype="int32", name="places")
    table = layers.ReversibleEmbedding(words, width, name="words")
    x = layers.Add()([table(tokens), layers.Embedding(length, width)(places)])
    for _ in range(3):
        h = layers.LayerNormalization(epsilon=1e-5)(x)
        x = layers.Add()([x, attend(h, 4, width, use_causal_mask=True)])
        h = layers.Dense(4 * width)(layers.LayerNormalization(epsilon=1e-5)(x))
        x = layers.Add()([x, layers.Dense(width)(layers.Activation("gelu")(h))])
    model = keras.Model([tokens, places], table(layers.LayerNormalization(epsilon=1e-5)(x), reverse=True))
    x = {"tokens": classes(batch, length, of=words), "places": np.tile(np.arange(length, dtype=np.int32), (batch, 1))}
    return model, x, classes(batch, length, of=words), LOGITS


def lstm():
    model = keras.Sequential([layers.Input((20, 16)), layers.LSTM(32), layers.Dense(CLASSES, activation="softmax")])
    return model, rng.standard_normal((8, 20, 16), dtype=np.float32), classes(8), SPARSE


BATCH_NORM = 1e-4
MODELS = {"mlp": (mlp, 1e-5), "cnn": (cnn, 1e-5), "mobilenet_v2": (mobilenet_v2, BATCH_NORM), "resnet50": (resnet50, BATCH_NORM),
          "densenet": (densenet, BATCH_NORM), "unet": (unet, 1e-5), "bert": (bert, 1e-5), "gpt2": (gpt2, 1e-5), "lstm": (lstm, 1e-5)}


def smooth(layer):
    """The same layer; silu in the place of what has a kink."""
    kinked = isinstance(layer, layers.ReLU) or (isinstance(layer, layers.Activation) and layer.activation is keras.activations.relu)
    return layers.Activation("silu", name=layer.name) if kinked else layer.__class__.from_config(layer.get_config())


def take_sides(model):
    """Every channel behind a normalisation is on one side of its ReLU's kinks: below, above, above 6. Sums of residuals stay above."""
    middles = [-SIDE, SIDE, 6 + SIDE] if any(getattr(layer, "max_value", None) for layer in model.layers) else [-SIDE, SIDE]
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            shape = layer.gamma.shape
            summed = fnmatch.fnmatch(layer.name, "*_[03]_bn")
            layer.gamma.assign(SPREAD * rng.uniform(0.8, 1.2, shape))
            layer.beta.assign(np.full(shape, SIDE) if summed else rng.choice(middles, shape))


def in_double(model):
    config = json.dumps(keras.saving.serialize_keras_object(model)).replace('"float32"', '"float64"')
    double = keras.saving.deserialize_keras_object(json.loads(config))
    double.set_weights(model.get_weights())
    return double


def train_keras(model, x, y, loss):
    """Adam. Also the first step's gradients and, of weights that no optimizer moves, what they are after it."""
    judge = getattr(keras.losses, *loss)(**list(loss.values())[0], dtype="float64")
    optimizer, losses, first = keras.optimizers.Adam(RATE), [], None

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            value = judge(y, model(x, training=True))
        return value, [tf.convert_to_tensor(g) for g in tape.gradient(value, model.trainable_variables)]

    for _ in range(STEPS):
        value, change = gradients()
        losses.append(float(value))
        if first is None:
            moved = {w.path: g.numpy() for w, g in zip(model.trainable_variables, change)}
            first = {k: moved.get(w.path, w.numpy()) for k, w in names(model).items()}
        optimizer.apply_gradients(zip(change, model.trainable_variables))
    return losses, first, {k: w.numpy() for k, w in names(model).items()}


def train_plim(model, x, y, loss):
    """The same of plim, with gradients as changes over the rate. None: it does not run."""
    before, rate = {k: w.numpy() for k, w in names(model).items()}, 2.0 ** 24
    trained = {k for k, w in names(model).items() if w.trainable}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        one = run_plim(plim, None, path, x, y, {"sgd": {"learning_rate": rate}}, loss, len(y), 1, (), "4GiB")
        five = one and run_plim(plim, None, path, x, y, {"adam": {"learning_rate": RATE}}, loss, len(y), STEPS, (), "4GiB")
    if not five:
        return None
    return five[0], {k: (before[k] - one[2][k]) / rate if k in trained else one[2][k] for k in before}, five[2]


def check_all(what, ours, theirs, sided, bar):
    """One line for all weights: the worst. Sides: beside the largest of all, for on one side of its kinks a network is next to
    linear, and most of what normalisations see of a change cancels."""
    largest = max(np.abs(theirs[k]).max() for k in ours if "/moving_" not in k) if sided else 0
    found = {k: error(ours[k], theirs[k], 0 if "/moving_" in k else largest) for k in ours}
    where = max(found, key=found.get)
    check(f"{what} of {len(found)} weights, worst {where}", found[where], bar)


def compare(what, model, x, y, loss, bar, sided=False):
    """What cancels: softmax does not see a bias of all keys, nor batch normalisation one of the convolution before it. The gradient is
    0, what is computed is rounding, and Adam makes whole steps of it. The averages right behind follow those steps: they are
    compared after the first one only."""
    ours = train_plim(model, x, y, loss)
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    losses, first, last = ours
    theirs = train_keras(in_double(model), x, y, loss)
    largest = max(np.abs(theirs[1][k]).max() for k, w in names(model).items() if w.trainable)
    cancels = [k for k, w in names(model).items() if w.trainable and np.abs(theirs[1][k]).max() < NOTHING * largest]
    for k in cancels:
        check(f"{what}: gradient of {k} cancels", np.abs(first.pop(k)).max() / largest, bar)
        last.pop(k)
    last = {k: v for k, v in last.items() if not (cancels and k.endswith("/moving_mean"))}
    check(f"{what}: loss of the first step", error(losses[:1], theirs[0][:1]), bar)
    check_all(f"{what}: gradients", first, theirs[1], sided, bar)
    check(f"{what}: losses of {STEPS} steps of Adam", error(losses, theirs[0]), 1e-3)
    check_all(f"{what}: {STEPS} steps of Adam", last, theirs[2], sided, 1e-3)


def stir(model, bar):
    """Biases and scales that matter. Batch normalisation undoes a kernel's size: it is one beside which a step of Adam is small,
    which goes the other way where a gradient is next to 0."""
    for w in model.trainable_weights:
        spread = 0.05 if bar != BATCH_NORM else 1 if len(w.shape) == 4 else 0.2
        middle = 0.5 * w.numpy() if w.name == "gamma" else w.numpy()
        w.assign(middle + rng.uniform(-spread, spread, w.shape).astype(np.float32))


def compare_model(what, make, bar):
    begin = time.time()
    keras.utils.set_random_seed(3)
    model, *rest = make()
    stir(model, bar)
    if bar == BATCH_NORM:
        soft = keras.models.clone_model(model, clone_function=smooth)
        stir(soft, bar)
        compare(f"{what}, smooth", soft, *rest, bar)
        take_sides(model)
    compare(what, model, *rest, bar, sided=bar == BATCH_NORM)
    print(f"      {what}: {model.count_params()} weights, {time.time() - begin:.0f} s", flush=True)


for what, (make, bar) in MODELS.items():
    if not only or what in only:
        compare_model(what, make, bar)
sys.exit(finish())
