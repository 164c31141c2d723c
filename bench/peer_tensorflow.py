"""TensorFlow: peer_tensorflow.py mlp|cnn|lstm BATCH STEPS function. One JSON line."""
import sys
import numpy as np, tensorflow as tf
from peer_common import report, time_steps

model_name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
L, rng = tf.keras.layers, np.random.default_rng(0)
if model_name == "mlp":
    model = tf.keras.Sequential([L.Input((100,)), L.Dense(64, activation="relu"), L.Dense(1, activation="sigmoid")])
    x, y, loss_of = rng.random((batch, 100), dtype=np.float32), rng.integers(0, 2, (batch, 1)).astype(np.float32), tf.keras.losses.BinaryCrossentropy()
elif model_name == "lstm":
    model = tf.keras.Sequential([L.Input((100, 64)), L.LSTM(128), L.Dense(10, activation="softmax")])
    x, y, loss_of = rng.random((batch, 100, 64), dtype=np.float32), rng.integers(0, 10, batch), tf.keras.losses.SparseCategoricalCrossentropy()
else:
    model = tf.keras.Sequential([L.Input((64, 64, 3)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(2), L.Conv2D(64, 3, activation="relu"),
                                 L.MaxPooling2D(2), L.Flatten(), L.Dense(128, activation="relu"), L.Dense(10, activation="softmax")])
    x, y, loss_of = rng.random((batch, 64, 64, 3), dtype=np.float32), rng.integers(0, 10, batch), tf.keras.losses.SparseCategoricalCrossentropy()
optimizer = tf.keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
x, y = tf.constant(x), tf.constant(y)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


report("tensorflow", tf.__version__, time_steps(lambda: step(x, y).numpy(), steps))
