"""Ten steps of every optimizer in real Keras, and learning-rate schedules: optimizers.txt.

A case is a line 'case JOB-FILE WORDS' and a line with the 15 numbers of a (4, 3) kernel and a (3,) bias after the steps;
'rate WORDS' is followed by the rates of the steps in STEPS. Weights begin as ((3 i) % 7 - 3) / 4, gradient t is
((7 i + 5 t) % 11 - 5) / 8: exact in float32."""
import json
import os
import numpy as np
import keras

STEPS = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 14, 15, 20, 29, 30, 31, 50, 100]
SCHEDULES = [
    ("ExponentialDecay", dict(initial_learning_rate=0.1, decay_steps=7, decay_rate=0.9)),
    ("ExponentialDecay", dict(initial_learning_rate=0.1, decay_steps=7, decay_rate=0.9, staircase=True)),
    ("InverseTimeDecay", dict(initial_learning_rate=0.1, decay_steps=3, decay_rate=0.5)),
    ("InverseTimeDecay", dict(initial_learning_rate=0.1, decay_steps=3, decay_rate=0.5, staircase=True)),
    ("PolynomialDecay", dict(initial_learning_rate=0.1, decay_steps=20)),
    ("PolynomialDecay", dict(initial_learning_rate=0.1, decay_steps=10, end_learning_rate=0.01, power=2.0, cycle=True)),
    ("CosineDecay", dict(initial_learning_rate=0.1, decay_steps=30, alpha=0.1)),
    ("CosineDecay", dict(initial_learning_rate=0.0, decay_steps=20, warmup_target=0.2, warmup_steps=10)),
    ("CosineDecayRestarts", dict(initial_learning_rate=0.1, first_decay_steps=10)),
    ("CosineDecayRestarts", dict(initial_learning_rate=0.1, first_decay_steps=5, t_mul=1.0, m_mul=0.5, alpha=0.05)),
    ("PiecewiseConstantDecay", dict(boundaries=[4, 10, 30], values=[0.1, 0.05, 0.01, 0.001])),
]
OPTIMIZERS = [
    ("SGD", {}), ("SGD", dict(momentum=0.9)), ("SGD", dict(learning_rate=0.1, momentum=0.5, nesterov=True)),
    ("RMSprop", {}), ("RMSprop", dict(learning_rate=0.01, momentum=0.5)), ("RMSprop", dict(rho=0.5, centered=True, epsilon=0.1)),
    ("RMSprop", dict(learning_rate=0.01, momentum=0.9, centered=True)),
    ("Adagrad", dict(learning_rate=0.1)), ("Adagrad", dict(initial_accumulator_value=0.5)),
    ("Adadelta", dict(learning_rate=1.0)), ("Adadelta", {}),
    ("Adam", {}), ("Adam", dict(learning_rate=0.1, amsgrad=True)), ("Adam", dict(learning_rate=0.01, beta_1=0.5, beta_2=0.9, epsilon=0.01)),
    ("AdamW", dict(learning_rate=0.01)), ("AdamW", dict(learning_rate=0.1, weight_decay=0.1, amsgrad=True)),
    ("Adamax", dict(learning_rate=0.01)), ("Nadam", dict(learning_rate=0.01)), ("Nadam", {}),
    ("Lion", dict(learning_rate=0.01)), ("Lamb", dict(learning_rate=0.01)), ("Lamb", dict(weight_decay=0.1)),
    ("Adafactor", dict(learning_rate=0.1)), ("Adafactor", dict(learning_rate=0.01, clip_threshold=0.5, weight_decay=0.05)),
    ("Ftrl", dict(learning_rate=0.1)),
    ("Ftrl", dict(learning_rate=0.1, learning_rate_power=-0.7, l1_regularization_strength=0.01, l2_regularization_strength=0.02,
                  l2_shrinkage_regularization_strength=0.03, beta=0.1)),
    ("SGD", dict(learning_rate=0.1, clipnorm=0.5)), ("SGD", dict(learning_rate=0.1, clipvalue=0.2)),
    ("Adam", dict(learning_rate=0.01, global_clipnorm=0.7, epsilon=0.1)), ("SGD", dict(learning_rate=0.1, weight_decay=0.1)),
    ("Adam", dict(learning_rate=0.01, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=3)),
    ("Adam", dict(learning_rate=0.01, gradient_accumulation_steps=3)),
    ("Nadam", dict(learning_rate=0.01, gradient_accumulation_steps=2, clipnorm=0.4, use_ema=True, ema_overwrite_frequency=2)),
    ("Adam", dict(learning_rate={"CosineDecay": dict(initial_learning_rate=0.0, decay_steps=6, warmup_target=0.1, warmup_steps=3)})),
]


def schedule(name, words):
    return getattr(keras.optimizers.schedules, name)(**words)


def steps(name, words):
    words = dict(words)
    rate = words.get("learning_rate")
    if isinstance(rate, dict):
        words["learning_rate"] = schedule(*next(iter(rate.items())))
    i = np.arange(15)
    first = (((3 * i) % 7 - 3) / 4).astype(np.float32)
    w = [keras.Variable(first[:12].reshape(4, 3)), keras.Variable(first[12:])]
    optimizer = getattr(keras.optimizers, name)(**words)
    for t in range(10):
        g = (((7 * i + 5 * t) % 11 - 5) / 8).astype(np.float32)
        optimizer.apply([keras.ops.convert_to_tensor(g[:12].reshape(4, 3)), keras.ops.convert_to_tensor(g[12:])], w)
    return np.concatenate([v.numpy().ravel() for v in w])


here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "optimizers.txt"), "w") as out:
    for name, words in SCHEDULES:
        made = schedule(name, words)
        print("rate", json.dumps({name: words}), file=out)
        print(*(f"{float(made(keras.ops.convert_to_tensor(s, 'int64'))):.9g}" for s in STEPS), file=out)
    for name, words in OPTIMIZERS:
        print("case", json.dumps({name: words}) if words else name, file=out)
        print(*(f"{x:.9g}" for x in steps(name, words)), file=out)
