"""TensorFlow: peer_models_tensorflow.py MODEL BATCH STEPS function|xla [mixed_bfloat16]. One JSON line. xla is what Keras's fit does."""
import sys
import numpy as np, tensorflow as tf
from peer_common import report, time_steps

name, batch, steps, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if len(sys.argv) > 5:
    tf.keras.mixed_precision.set_global_policy(sys.argv[5])
keras, L, rng = tf.keras, tf.keras.layers, np.random.default_rng(0)
CLASSES = 10


def classes(*shape, of=CLASSES):
    return rng.integers(0, of, shape).astype(np.int32)


def pictures(size):
    return rng.random((batch, size, size, 3), dtype=np.float32)


def mlp():
    return keras.Sequential([L.Input((100,)), L.Dense(64, activation="relu"), L.Dense(1, activation="sigmoid")]), \
        rng.random((batch, 100), dtype=np.float32), classes(batch, 1, of=2).astype(np.float32)


def cnn():
    return keras.Sequential([L.Input((64, 64, 3)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(2), L.Conv2D(64, 3, activation="relu"),
                             L.MaxPooling2D(2), L.Flatten(), L.Dense(128, activation="relu"), L.Dense(10, activation="softmax")]), pictures(64), classes(batch)


def lstm():
    return keras.Sequential([L.Input((100, 64)), L.LSTM(128), L.Dense(CLASSES, activation="softmax")]), \
        rng.random((batch, 100, 64), dtype=np.float32), classes(batch)


def mobilenet_v2():
    return keras.applications.MobileNetV2(weights=None, classes=CLASSES, input_shape=(224, 224, 3)), pictures(224), classes(batch)


def resnet50():
    return keras.applications.ResNet50(weights=None, classes=CLASSES, input_shape=(224, 224, 3)), pictures(224), classes(batch)


def unet(size=128, least=32):
    def twice(x, filters):
        for _ in range(2):
            x = L.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x
    i = x = keras.Input((size, size, 3))
    kept = []
    for k in range(4):
        kept.append(twice(x, least << k))
        x = L.MaxPooling2D(2)(kept[-1])
    x = twice(x, least << 4)
    for k in reversed(range(4)):
        x = twice(L.Concatenate()([kept.pop(), L.Conv2DTranspose(least << k, 2, strides=2)(x)]), least << k)
    return keras.Model(i, L.Conv2D(2, 1, activation="softmax")(x)), pictures(size), classes(batch, size, size, of=2)


def gpt2(blocks=12, width=768, heads=12, words=50257, length=1024):
    tokens, places = keras.Input((length,), dtype="int32"), keras.Input((length,), dtype="int32")
    table = L.ReversibleEmbedding(words, width)
    x = L.Add()([table(tokens), L.Embedding(length, width)(places)])
    for _ in range(blocks):
        h = L.LayerNormalization(epsilon=1e-5)(x)
        x = L.Add()([x, L.MultiHeadAttention(heads, width // heads)(h, h, use_causal_mask=True)])
        h = L.Dense(4 * width, activation="gelu")(L.LayerNormalization(epsilon=1e-5)(x))
        x = L.Add()([x, L.Dense(width)(h)])
    model = keras.Model([tokens, places], table(L.LayerNormalization(epsilon=1e-5)(x), reverse=True))
    return model, [classes(batch, length, of=words), np.tile(np.arange(length, dtype=np.int32), (batch, 1))], classes(batch, length, of=words)


model, x, y = globals()[name]()
loss_of = keras.losses.BinaryCrossentropy() if name == "mlp" else keras.losses.SparseCategoricalCrossentropy(from_logits=name == "gpt2")
optimizer = keras.optimizers.AdamW() if name == "gpt2" else keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
x, y = tf.nest.map_structure(tf.constant, x), tf.constant(y)


@tf.function(jit_compile=mode == "xla")
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


report("tensorflow", tf.__version__, time_steps(lambda: step(x, y).numpy(), steps, 2), parameters=model.count_params())
