"""Writes golden/keras: small models as Keras itself saves them, and what is in them.

Weights are numbers that tell where they came from: weight i of the model has i + 1, i + 1 + 1/64, i + 1 + 2/64, ...
NAME.txt has a line a weight: its path in the file, its shape."""
import os, sys, json, zipfile, shutil
import numpy as np
import keras
from keras import layers

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras")
os.makedirs(here, exist_ok=True)


def save(name, model):
    model.set_weights([(i + 1 + np.arange(w.size) / 64).reshape(w.shape).astype(np.float32) for i, w in enumerate(model.get_weights())])
    path = os.path.join(here, name + ".keras")
    model.save(path)
    with zipfile.ZipFile(path) as z:
        members = {i.filename: z.read(i) for i in z.infolist()}
    members["metadata.json"] = json.dumps({"keras_version": keras.__version__, "date_saved": "2026-01-01@00:00:00"}).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:   # the same bytes whenever it is made
        for member in ("metadata.json", "config.json", "model.weights.h5"):
            z.writestr(zipfile.ZipInfo(member), members[member])
    return path


sequential = keras.Sequential([layers.Input((6, 6, 1)), layers.Rescaling(1 / 255), layers.Conv2D(2, 3, activation="relu"), layers.MaxPooling2D(2),
                               layers.Flatten(), layers.Dense(4, activation="relu", name="hidden"), layers.Dense(3, activation="softmax")], name="small")
path = save("sequential", sequential)

a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
tower = layers.Dense(3, name="tower", kernel_initializer="he_normal")
encoder = keras.Sequential([layers.Input((3,)), layers.Dense(2, activation="relu", name="inner"), layers.Dense(2)], name="encoder")
x, y = tower(a), tower(b)
z = layers.Add(name="sum")([encoder(x), encoder(y)])
frozen = layers.Dense(4, name="frozen", trainable=False)
out = layers.Dense(1, activation="sigmoid", name="out")(layers.Multiply()([frozen(z), layers.Dense(4)(z)]))
save("graph", keras.Model([a, b], out, name="two_towers"))

# Layers whose weights lie in groups: some are named by attributes that begin with an underscore.
i = keras.Input((3, 4), name="x")
heads = layers.GroupQueryAttention(2, 2, 1)(layers.MultiHeadAttention(2, 2)(i, i), i)
save("attention", keras.Model(i, layers.Dense(1, name="out")(layers.LSTM(2)(heads)), name="heads"))

# Packed members, as other tools write them.
with zipfile.ZipFile(path) as source, zipfile.ZipFile(os.path.join(here, "packed.keras"), "w", zipfile.ZIP_DEFLATED) as packed:
    for member in source.namelist():
        packed.writestr(zipfile.ZipInfo(member), source.read(member), zipfile.ZIP_DEFLATED)

i = keras.Input((5,))
keras.Model(i, layers.Dense(1)(layers.Lambda(lambda v: v * 2)(i)), name="code").save(os.path.join(here, "lambda.keras"))

sequential.compile(optimizer=keras.optimizers.Adam(0.002), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
with open(os.path.join(here, "compiled.json"), "w") as f:
    f.write(sequential.to_json())
