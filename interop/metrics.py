"""Metrics over an epoch: plim against Keras's fit(): three steps, then validation; every number that Keras reports is compared.

Means are compared in training.py; here are those whose sums are kept over the epoch, and their options."""
import sys
import numpy as np
import tensorflow as tf
import keras
from keras import layers, metrics as km
from plim_side import check, finish, train

tf.get_logger().setLevel("ERROR")
plim = sys.argv[1]
only = sys.argv[2:]
rng = np.random.default_rng(11)
N, V, BATCH = 45, 26, 16  # the last batches are short


def compare(what, units, activation, labels, loss, pairs, bar=1e-5, weighted=(), class_weight=None, weights=True, saved=False):
    """pairs: (plim's words, Keras's objects); weighted: the same of weighted_metrics, with weights of samples unless there are those of classes.
    saved: plim reads Keras's words in a file."""
    if only and not any(word in what for word in only):
        return
    keras.utils.set_random_seed(3)
    model = keras.Sequential([layers.Input((6,)), layers.Dense(5, activation="relu", name="dense"), layers.Dense(units, activation=activation, name="dense_1")])
    x, y = rng.normal(size=(N + V, 6)).astype(np.float32), labels(N + V)
    before = {f"{layer.name}/{w.name}": w.numpy().copy() for layer in model.layers for w in layer.weights}
    words = [{"Dense": {"units": 5, "activation": "relu"}}, {"Dense": {"units": units, **({"activation": activation} if activation else {})}}]
    w = rng.integers(0, 4, N + V).astype(np.float32) / 2 if weighted and weights and not class_weight else None
    columns = lambda part: {"x": x[part], "y": y[part], **({} if w is None else {"sample_weight": w[part]})}
    fit, check_on = slice(0, N), slice(N, None)
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, metrics=[p[1] for p in pairs], weighted_metrics=[p[1] for p in weighted])
    if saved:
        ours = train(plim, None, "model.keras", columns(fit), BATCH, 3, validation=columns(check_on), repeat=False, before=lambda folder: model.save(f"{folder}/model.keras"))
    else:
        ours = train(plim, before, words, columns(fit), BATCH, 3, validation=columns(check_on), repeat=False, optimizer={"SGD": 0.1}, loss=loss,
                     metrics=[p[0] for p in pairs], **({"weighted_metrics": [p[0] for p in weighted]} if weighted else {}),
                     **({"class_weight": class_weight} if class_weight else {}))
    logs = model.fit(x[:N], y[:N], sample_weight=None if w is None else w[:N], class_weight=class_weight, batch_size=BATCH, shuffle=False, epochs=1, verbose=0,
                     validation_data=(x[N:], y[N:]) if w is None else (x[N:], y[N:], w[N:]), validation_batch_size=BATCH).history
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    epoch = ours[1]
    for name, (value,) in logs.items():
        if name == "two":  # Keras's history holds the counter itself, which validation has overwritten; val_two is it
            continue
        value, got = np.asarray(value, np.float64), np.asarray(epoch.get(name, np.inf), np.float64)
        check(f"{what}: {name}", np.inf if got.shape != value.shape else np.max(np.abs(got - value) / np.maximum(np.abs(value), 1)), bar)


def made(kind, **words):
    """The same in both: {Name: {words}} and Name(**words)."""
    return ({kind: words} if words else kind, getattr(km, kind)(**words) if words else kind)


bits = lambda n: rng.integers(0, 2, n).astype(np.float32)
many_bits = lambda n: rng.integers(0, 2, (n, 4)).astype(np.float32)
one_hot = lambda n: np.eye(4, dtype=np.float32)[rng.integers(0, 4, n)]
classes = lambda n: rng.integers(0, 4, n).astype(np.int32)
numbers = lambda n: rng.normal(size=(n, 3)).astype(np.float32)
constrained = lambda: [made("SensitivityAtSpecificity", specificity=0.4, name="a"), made("SpecificityAtSensitivity", sensitivity=0.6, num_thresholds=50, name="b"),
               made("PrecisionAtRecall", recall=0.3, name="c"), made("RecallAtPrecision", precision=0.5, name="d")]
counted = lambda: [made("TruePositives"), made("TrueNegatives"), made("FalsePositives", thresholds=0.3, name="few"), made("FalseNegatives")]

for units, labels in ((1, bits), (4, many_bits)):
    what = f"{units} binary output{'s' if units > 1 else ''}"
    compare(f"{what}, counts", units, "sigmoid", labels, "binary_crossentropy", [made("Precision"), made("Recall"), made("Precision", thresholds=0.6, name="sure"),
            *counted(), ("accuracy", "accuracy")])
    compare(f"{what}, curves", units, "sigmoid", labels, "binary_crossentropy", [made("AUC", name="auc"), made("AUC", curve="PR", name="pr"),
            made("AUC", curve="PR", summation_method="majoring", name="pr_more"), made("AUC", curve="PRGAIN", name="gain"),
            made("AUC", num_thresholds=17, summation_method="minoring", name="few_thresholds"), *constrained()])
    compare(f"{what}, words", units, "sigmoid", labels, "mse", [(w, w) for w in ("auc", "precision", "recall", "true_positives")])
compare("logits, AUC", 1, None, bits, "mse", [made("AUC", from_logits=True, name="auc")])
compare("classes, top and one class", 4, "softmax", one_hot, "categorical_crossentropy", [made("Precision", top_k=2, name="p2"), made("Recall", top_k=2, name="r2"),
        made("Precision", class_id=1, thresholds=0.2, name="p_of_1"), made("Recall", class_id=3, thresholds=0.2, name="r_of_3"), made("PrecisionAtRecall", recall=0.2, class_id=2, name="of_2")])
compare("classes, scores", 4, "softmax", one_hot, "categorical_crossentropy", [made("F1Score", average=a, name=f"f_{a}") for a in ("micro", "macro", "weighted")] +
        [made("FBetaScore", average="macro", beta=2.0, name="fb"), made("F1Score", average="micro", threshold=0.3, name="limited")])
compare("classes, IoU", 4, "softmax", classes, "sparse_categorical_crossentropy", [made("MeanIoU", num_classes=4, sparse_y_pred=False),
        made("IoU", num_classes=4, target_class_ids=[0, 2], sparse_y_pred=False), made("MeanIoU", num_classes=4, sparse_y_pred=False, ignore_class=1, name="without")])
compare("targets, IoU", 4, "softmax", one_hot, "categorical_crossentropy", [made("OneHotMeanIoU", num_classes=4), made("OneHotIoU", num_classes=4, target_class_ids=[1, 3])])
compare("bits, IoU", 4, "sigmoid", many_bits, "binary_crossentropy", [made("BinaryIoU"), made("BinaryIoU", target_class_ids=[1], threshold=0.4, name="one")])
compare("numbers", 3, None, numbers, "mse", [made("R2Score"), made("R2Score", class_aggregation="variance_weighted_average", name="by_variance"),
        made("RootMeanSquaredError"), made("LogCoshError", name="far"), made("CosineSimilarity", name="angle"), made("MeanSquaredError", name="squares"),
        ({"LogCoshError": None}, km.LogCoshError()), ({"MeanAbsoluteError": None}, km.MeanAbsoluteError())])
several = lambda: [made("F1Score"), made("FBetaScore", beta=0.5, threshold=0.3, name="fb"), made("Precision", thresholds=[0.6, 0.2, 0.4], name="three"),
                   made("TruePositives", thresholds=[0.3, 0.5], name="two"), made("Recall", thresholds=[0.0, 0.5, 1.0], name="even")]
for what, rows, activation, loss in (("classes", one_hot, "softmax", "categorical_crossentropy"), ("bits", many_bits, "sigmoid", "binary_crossentropy")):
    compare(f"{what}, several numbers", 4, activation, rows, loss, several())
    compare(f"{what}, several numbers, weighted", 4, activation, rows, loss, [], weighted=several())
labelled = lambda: [made("AUC", multi_label=True, name="each"), made("AUC", multi_label=True, num_labels=4, label_weights=[1.0, 0.5, 2.0, 0.0], name="some"),
                    made("AUC", label_weights=[1.0, 0.5, 2.0, 0.25], name="together"), made("AUC", multi_label=True, curve="PR", name="each_pr"),
                    made("AUC", thresholds=[0.7, 0.1, 0.45, 0.5], name="uneven"), made("AUC", thresholds=[0.25, 0.5, 0.75], name="even"),
                    made("AUC", thresholds=[0.7, 0.1, 0.45], multi_label=True, curve="PR", summation_method="minoring", name="uneven_each")]
compare("labels, AUC", 4, "sigmoid", many_bits, "binary_crossentropy", labelled())
compare("labels, AUC, weighted", 4, "sigmoid", many_bits, "binary_crossentropy", [], weighted=labelled())
usual = lambda: [("accuracy", "accuracy"), ("mse", "mse"), made("AUC", name="auc"), made("Precision", name="p")]
compare("weighted and not", 1, "sigmoid", bits, "binary_crossentropy", usual(), weighted=usual())
compare("weighted, by class", 1, "sigmoid", bits, "binary_crossentropy", usual(), weighted=usual(), class_weight={0: 0.5, 1: 3.0})
compare("weighted, without weights", 1, "sigmoid", bits, "binary_crossentropy", usual(), weighted=usual(), weights=False)
compare("weighted classes", 4, "softmax", one_hot, "categorical_crossentropy", [], weighted=[("accuracy", "accuracy"), made("Precision", top_k=2, name="p2"),
        made("F1Score", average="macro", name="f"), made("OneHotMeanIoU", num_classes=4, dtype="float32", name="iou"), made("CosineSimilarity", name="angle"), made("TopKCategoricalAccuracy", k=2, name="top")])
compare("weighted numbers", 3, None, numbers, "mse", [], weighted=[made("R2Score"), made("R2Score", class_aggregation="variance_weighted_average", name="by_variance"),
        made("RootMeanSquaredError"), made("MeanAbsoluteError", name="far")])
compare("weighted class numbers", 4, "softmax", classes, "sparse_categorical_crossentropy", [], weighted=[("accuracy", "accuracy"), made("MeanIoU", num_classes=4, sparse_y_pred=False, dtype="float32", name="iou")])
compare("a file with all of them", 4, "sigmoid", many_bits, "binary_crossentropy", [made("AUC", multi_label=True, thresholds=[0.2, 0.35], name="auc"), made("F1Score", name="f")],
        weighted=[made("AUC", label_weights=[1.0, 0.5, 2.0, 0.25], name="auc"), ("mse", "mse")], saved=True)
sys.exit(finish())
