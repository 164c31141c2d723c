"""Networks of keras.applications, one of each family, as Keras writes them to .keras files: the loss of a first training step, and
the loss that evaluation has after it (then averages count, not the batch's figures), both against Keras in double from the
same file. Small pictures, nothing dropped: what is random is not the same. Prints 'N passed, N failed' last; words behind PLIM
choose networks, also ones that are not asked by themselves (VGG16, ResNet101 ...)."""
import json, os, re, sys, tempfile
import numpy as np
import tensorflow as tf
import keras
from plim_side import check, error, finish, train

tf.get_logger().setLevel("ERROR")
plim, only = sys.argv[1], sys.argv[2:]
CLASSES, BATCH, RATE, BAR = 10, 8, 1e-6, 1e-4
NETWORKS = {"Xception": 71, "InceptionResNetV2": 75, "DenseNet121": 64, "NASNetMobile": 64, "MobileNetV3Small": 64, "ResNet50V2": 64, "EfficientNetB0": 64,
            "EfficientNetV2B0": 64, "ConvNeXtTiny": 64}
OTHERS = 75
LOSS = "sparse_categorical_crossentropy"


def network(name, size, dtype="float32", weights=None):
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=CLASSES)
    config = json.dumps(keras.saving.serialize_keras_object(model)).replace('"float32"', f'"{dtype}"')
    model = keras.saving.deserialize_keras_object(json.loads(re.sub(r'"rate": [0-9.]+', '"rate": 0.0', config)))
    if weights:
        model.set_weights(weights)
    return model


def stir(model, rng):
    """Figures of normalisations that are not all 0 and 1."""
    for w in model.weights:
        name = w.path.split("/")[-1]
        if name in ("gamma", "moving_variance", "variance"):
            w.assign(rng.uniform(0.8, 1.2, w.shape) * np.where(w.numpy() == 0, 1, w.numpy()))
        elif name in ("beta", "bias", "moving_mean", "mean"):
            w.assign(rng.uniform(-0.2, 0.2, w.shape))
    for layer in model.layers:
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()


def train_keras(model, x, y):
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True)))
    keras.optimizers.SGD(RATE).apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
    after = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=False)))
    return float(value), float(after)


def compare(name, size):
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(5)
    model = network(name, size)
    stir(model, rng)
    x, y = (rng.random((BATCH, size, size, 3)) * 255).astype(np.float32), rng.integers(0, CLASSES, BATCH).astype(np.int32)
    weights = [w.copy() for w in model.get_weights()]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        ran = train(plim, None, path, {"x": x, "y": y}, BATCH, 1, "6GiB", validation={"x": x, "y": y}, optimizer={"sgd": {"learning_rate": RATE}}, loss=LOSS)
    if ran is None:
        return check(f"{name}: plim runs", np.inf, 0)
    double = network(name, size, "float64", weights)
    for layer in double.layers:
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()
    for what, ours, right in zip(("first step", "evaluation"), (ran[0][0], ran[1]["val_loss"]), train_keras(double, x, y)):
        check(f"{name}, {model.count_params()} weights: loss of the {what}", error(ours, right), BAR)


for name in only or NETWORKS:
    compare(name, NETWORKS.get(name, OTHERS))
    keras.backend.clear_session()
sys.exit(finish())
