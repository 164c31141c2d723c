"""Optimizers, losses, metrics, regularisers and schedules: plim against Keras on one small model each.

Optimizers are compared by the weights after 20 steps, losses by value and gradient of the first step (the change of
a weight under SGD with learning rate 1), metrics by their value after one step."""
import sys
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from plim_side import check, error, finish, train

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
only = sys.argv[2:]
rng = np.random.default_rng(5)


def model_of(units, activation, more=None, shape=(6,)):
    keras.utils.set_random_seed(3)
    made = [layers.Dense(5, activation="relu", name="dense", **(more or {})), layers.Dense(units, activation=activation, name="dense_1")]
    return keras.Sequential([layers.Input(shape)] + made)


def words_of(units, activation, more=None):
    first = {"units": 5, "activation": "relu", **(more or {})}
    second = {"units": units, **({"activation": activation} if activation else {})}
    return [{"Dense": first}, {"Dense": second}]


def compare(what, model, layer_list, arrays, loss, optimizer, batch, steps, bar, metrics=(), metric_bar=1e-6, class_weight=None):
    """loss, optimizer, metrics: (plim's words, Keras's objects)."""
    if only and not any(word in what for word in only):
        return
    x, y, *weight = arrays
    names = {f"{layer.name}/{w.name}": w for layer in model.layers for w in layer.weights}
    before = {k: w.numpy().copy() for k, w in names.items()}
    ours = train(plim, before, layer_list, arrays, batch, steps, loss=loss[0], optimizer=optimizer[0], metrics=[m[0] for m in metrics], **({"class_weight": class_weight} if class_weight else {}))
    model.compile(optimizer=optimizer[1], loss=loss[1], metrics=[m[1] for m in metrics])
    theirs = []
    for i in range(steps):
        rows = np.arange(i * batch, (i + 1) * batch) % len(x)
        logs = model.train_on_batch(x[rows], y[rows], *(w[rows] for w in weight), class_weight=class_weight, return_dict=True)
        theirs.append(float(logs["loss"]))
        model.reset_metrics()
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    losses, epoch, after = ours
    check(f"{what}: loss", error(losses, theirs), bar)
    for k, w in names.items():
        if steps == 1:
            check(f"{what}: gradient of {k}", error(before[k] - after[k], before[k] - w.numpy()), bar)
        else:
            check(f"{what}: {k} after {steps} steps", error(after[k], w.numpy()), bar)
    for name in [k for k in logs if k != "loss"] if steps == 1 else []:
        check(f"{what}: metric {name}", abs(epoch.get(name, np.inf) - float(logs[name])) / max(abs(float(logs[name])), 1), metric_bar)


x = rng.normal(size=(40, 6)).astype(np.float32)

# ---- optimizers ----
y = rng.integers(0, 3, 40).astype(np.int32)
schedule = {"CosineDecay": {"initial_learning_rate": 0.0, "decay_steps": 12, "warmup_target": 0.02, "warmup_steps": 5}}
for name, words in [
        ("SGD", {"learning_rate": 0.1}), ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
        ("RMSprop", {"momentum": 0.5, "centered": True}), ("RMSprop", {"learning_rate": 0.01}), ("Adagrad", {"learning_rate": 0.1}),
        ("Adadelta", {"learning_rate": 1.0}), ("Adam", {"learning_rate": 0.01}), ("Adam", {"learning_rate": 0.01, "amsgrad": True}),
        ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1}), ("Adamax", {"learning_rate": 0.01}), ("Nadam", {"learning_rate": 0.01}),
        ("Lion", {"learning_rate": 0.001}), ("Lamb", {"learning_rate": 0.01}), ("Adafactor", {"learning_rate": 0.05}),
        ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.001}), ("SGD", {"learning_rate": 0.1, "clipnorm": 0.1}),
        ("SGD", {"learning_rate": 0.1, "clipvalue": 0.01}), ("Adam", {"learning_rate": 0.01, "global_clipnorm": 0.1, "epsilon": 0.01}),
        ("Adam", {"learning_rate": 0.01, "gradient_accumulation_steps": 4}),
        ("Adam", {"learning_rate": 0.01, "use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 5}),
        ("Adam", {"learning_rate": schedule})]:
    given = dict(words)
    if given["learning_rate" if "learning_rate" in given else "momentum"] is schedule:
        given["learning_rate"] = keras.optimizers.schedules.CosineDecay(**schedule["CosineDecay"])
    rest = ", ".join(f"{k} {v}" for k, v in words.items() if not isinstance(v, dict))
    compare(f"optimizer {name} {rest}", model_of(3, "softmax"), words_of(3, "softmax"), (x, y),
            ("sparse_categorical_crossentropy",) * 2, ({name: words}, getattr(keras.optimizers, name)(**given)), 10, 20, 1e-4)
compare("optimizer LossScaleOptimizer", model_of(3, "softmax"), words_of(3, "softmax"), (x, y), ("sparse_categorical_crossentropy",) * 2,
        ({"LossScaleOptimizer": {"inner_optimizer": {"Adam": 0.01}, "dynamic_growth_steps": 7}},
         keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), dynamic_growth_steps=7)), 10, 20, 1e-4)

# ---- losses ----
real = rng.normal(size=(40, 4)).astype(np.float32)
share = rng.random((40, 4)).astype(np.float32)
one_hot = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 40)]
bits = rng.integers(0, 2, (40, 4)).astype(np.float32)
classes = rng.integers(0, 4, 40).astype(np.int64)
for name, words, labels, activation in [
        ("MeanSquaredError", {}, real, None), ("MeanAbsoluteError", {}, real, None), ("MeanAbsolutePercentageError", {}, real, None),
        ("MeanSquaredLogarithmicError", {}, share, "sigmoid"), ("Huber", {}, real, None), ("Huber", {"delta": 0.3}, real, None),
        ("LogCosh", {}, real, None), ("Hinge", {}, bits, None), ("Hinge", {}, real, None), ("SquaredHinge", {}, bits, None),
        ("CategoricalHinge", {}, one_hot, None), ("KLDivergence", {}, share, "softmax"), ("Poisson", {}, share, "sigmoid"),
        ("CosineSimilarity", {}, real, None), ("BinaryCrossentropy", {}, bits, "sigmoid"), ("BinaryCrossentropy", {"from_logits": True}, bits, None),
        ("BinaryCrossentropy", {"label_smoothing": 0.1}, bits, "sigmoid"), ("CategoricalCrossentropy", {}, one_hot, "softmax"),
        ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, one_hot, None),
        ("SparseCategoricalCrossentropy", {}, classes, "softmax"), ("SparseCategoricalCrossentropy", {"from_logits": True}, classes, None),
        ("SparseCategoricalCrossentropy", {"ignore_class": 2}, classes, "softmax"),
        ("BinaryFocalCrossentropy", {}, bits, "sigmoid"), ("BinaryFocalCrossentropy", {"apply_class_balancing": True, "gamma": 1.5}, bits, "sigmoid"),
        ("CategoricalFocalCrossentropy", {}, one_hot, "softmax"), ("CategoricalFocalCrossentropy", {"from_logits": True, "gamma": 3.0}, one_hot, None),
        ("MeanSquaredError", {"reduction": "sum"}, real, None)]:
    rate = 0.01 if name == "MeanAbsolutePercentageError" else 1.0
    compare(f"loss {name} {words or ''} {activation or ''}", model_of(4, activation), words_of(4, activation), (x, labels),
            ({name: words}, getattr(keras.losses, name)(**words)), ({"sgd": {"learning_rate": rate}}, keras.optimizers.SGD(rate)), 40, 1, 2e-5)
weight = rng.random(40).astype(np.float32)
compare("loss with sample weights", model_of(4, None), words_of(4, None), (x, real, weight), ("mse", "mse"),
        ({"sgd": 1.0}, keras.optimizers.SGD(1.0)), 40, 1, 2e-5)

# ---- metrics ----
for what, names, labels, activation, loss in [
        ("of classes", ["accuracy", "sparse_categorical_accuracy", "sparse_categorical_crossentropy", {"SparseTopKCategoricalAccuracy": {"k": 2}}],
         classes, "softmax", "sparse_categorical_crossentropy"),
        ("of targets", ["acc", "categorical_accuracy", {"TopKCategoricalAccuracy": {"k": 3}}, "mse", "mae"], one_hot, "softmax", "categorical_crossentropy"),
        ("of bits", ["binary_accuracy", "mse", "bce", {"BinaryAccuracy": {"threshold": 0.4, "name": "low"}}], bits, "sigmoid", "binary_crossentropy"),
        ("of numbers", ["mse", "mae", "mape", "cosine_similarity", "kl_divergence"], real, None, "mse")]:
    objects = [m if isinstance(m, str) else getattr(keras.metrics, *m)(**list(m.values())[0]) for m in names]
    compare(f"metrics {what}", model_of(4, activation), words_of(4, activation), (x, labels), (loss, loss),
            ({"sgd": 1.0}, keras.optimizers.SGD(1.0)), 40, 1, 2e-5, list(zip(names, objects)), 1e-5)

# ---- weights of classes ----
factors = {0: 0.5, 1: 3.0, 3: 1.5}
for what, labels, loss in [("class numbers", classes, "sparse_categorical_crossentropy"), ("one-hot targets", one_hot, "categorical_crossentropy"),
                           ("class numbers of shape (N, 1)", classes[:, None], "sparse_categorical_crossentropy")]:
    compare(f"class_weight, {what}", model_of(4, "softmax"), words_of(4, "softmax"), (x, labels), (loss, loss),
            ({"sgd": 1.0}, keras.optimizers.SGD(1.0)), 40, 1, 2e-5, [("accuracy", "accuracy")], class_weight=factors)
many = rng.integers(0, 300, 40).astype(np.int32)
compare("class_weight, 300 classes", model_of(300, "softmax"), words_of(300, "softmax"), (x, many), ("sparse_categorical_crossentropy",) * 2,
        ({"sgd": 1.0}, keras.optimizers.SGD(1.0)), 40, 1, 2e-5, [("accuracy", "accuracy")], class_weight={i: 0.5 + i % 7 for i in range(0, 300, 2)})

# ---- regularisers and constraints ----
for what, words, objects in [
        ("L2 of the kernel", {"kernel_regularizer": {"L2": 0.1}}, {"kernel_regularizer": keras.regularizers.L2(0.1)}),
        ("L1L2 of the kernel, L1 of the bias", {"kernel_regularizer": {"L1L2": {"l1": 0.05, "l2": 0.02}}, "bias_regularizer": "l1"},
         {"kernel_regularizer": keras.regularizers.L1L2(0.05, 0.02), "bias_regularizer": "l1"}),
        ("L2 of the output", {"activity_regularizer": {"L2": 0.03}}, {"activity_regularizer": keras.regularizers.L2(0.03)})]:
    compare(f"regularizer {what}", model_of(4, None, objects), words_of(4, None, words), (x, real), ("mse", "mse"),
            ({"sgd": 1.0}, keras.optimizers.SGD(1.0)), 40, 1, 2e-5)
for what, words, objects in [
        ("max_norm", {"kernel_constraint": {"MaxNorm": 0.5}}, {"kernel_constraint": keras.constraints.MaxNorm(0.5)}),
        ("non_neg", {"kernel_constraint": "non_neg", "bias_constraint": "NonNeg"}, {"kernel_constraint": "non_neg", "bias_constraint": "non_neg"}),
        ("unit_norm over axis 1", {"kernel_constraint": {"UnitNorm": {"axis": 1}}}, {"kernel_constraint": keras.constraints.UnitNorm(axis=1)}),
        ("min_max_norm", {"kernel_constraint": {"MinMaxNorm": {"min_value": 0.3, "max_value": 0.6, "rate": 0.5}}},
         {"kernel_constraint": keras.constraints.MinMaxNorm(0.3, 0.6, 0.5)})]:
    compare(f"constraint {what}", model_of(4, None, objects), words_of(4, None, words), (x, real), ("mse", "mse"),
            ({"Adam": 0.01}, keras.optimizers.Adam(0.01)), 40, 10, 2e-5)

sys.exit(finish())
