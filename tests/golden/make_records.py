"""make_records.py - the TFRecord files of this folder, written and judged by real TensorFlow.

python make_records.py FOLDER. Record i of records*.tfrecord: x = 10 floats i + j / 4, label = i * i - 7,
name = b"item-<i>", tags = i integers (-1)^k * 1000^k. sequence.tfrecord: context id = i, length = i steps;
lists frames (i steps of 2 floats i, k) and words (step k: k strings "w<k>"). example_cases.tfrecord holds odd
serialized examples, example_cases.txt what tf.io.parse_example made of each: "ok", x, y and n, or "error" and why."""
import os, sys
import numpy as np
import tensorflow as tf

out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
F = tf.train


def floats(v):
    return F.Feature(float_list=F.FloatList(value=v))


def ints(v):
    return F.Feature(int64_list=F.Int64List(value=v))


def strings(v):
    return F.Feature(bytes_list=F.BytesList(value=v))


def example(i):
    return F.Example(features=F.Features(feature={
        "x": floats([i + j / 4 for j in range(10)]), "label": ints([i * i - 7]),
        "name": strings([b"item-%d" % i]), "tags": ints([(-1) ** k * 1000 ** k for k in range(i)])}))


def sequence(i):
    frames = F.FeatureList(feature=[floats([i, k]) for k in range(i)])
    words = F.FeatureList(feature=[strings([b"w%d" % k] * k) for k in range(i)])
    return F.SequenceExample(context=F.Features(feature={"id": ints([i])}),
                             feature_lists=F.FeatureLists(feature_list={"frames": frames, "words": words}))


def write(name, records, compression=""):
    with tf.io.TFRecordWriter(os.path.join(out, name), tf.io.TFRecordOptions(compression_type=compression)) as w:
        for r in records:
            w.write(r)


def ld(field, payload):
    return bytes([field << 3 | 2]) + varint(len(payload)) + payload


def varint(n):
    s = b""
    while n > 127:
        s, n = s + bytes([n & 127 | 128]), n >> 7
    return s + bytes([n])


def f32(*v):
    return np.array(v, "<f4").tobytes()


def entry(key, feature):
    return ld(1, ld(1, key) + ld(2, feature))


def whole(*entries):
    return ld(1, b"".join(entries))


X, Y = ld(2, ld(1, f32(1, 2, 3))), ld(3, ld(1, varint(5)))
x, y = entry(b"x", X), entry(b"y", Y)
minus = varint(2 ** 64 - 1)
cases = [  # x: FixedLen [3] float; y: FixedLen [] int64, default 42; n: VarLen bytes
    ("plain", whole(x, y)),
    ("other order", whole(y, x)),
    ("unpacked", whole(entry(b"x", ld(2, b"".join(b"\x0d" + f32(v) for v in (4, 5, 6)))),
                       entry(b"y", ld(3, b"\x08" + minus)))),
    ("minus one packed", whole(x, entry(b"y", ld(3, ld(1, minus))))),
    ("least int64", whole(x, entry(b"y", ld(3, ld(1, varint(2 ** 63)))))),
    ("no y: its default", whole(x)),
    ("y without a kind: its default", whole(x, entry(b"y", b""))),
    ("y of no values", whole(x, entry(b"y", ld(3, b"")))),
    ("y of two values", whole(x, entry(b"y", ld(3, ld(1, b"\x01\x02"))))),
    ("y is a float", whole(x, entry(b"y", ld(2, ld(1, f32(1)))))),
    ("no x", whole(y)),
    ("x of two", whole(entry(b"x", ld(2, ld(1, f32(1, 2)))), y)),
    ("x is strings", whole(entry(b"x", ld(1, ld(1, b"a"))), y)),
    ("unlisted features", whole(entry(b"a", X), x, entry(b"zz", Y), y)),
    ("twice y: the last", whole(x, y, entry(b"y", ld(3, ld(1, b"\x09"))))),
    ("unknown field of an example", b"\x18\x07" + whole(x, y)),
    ("unknown fixed fields", b"\x21" + bytes(8) + b"\x2d" + bytes(4) + whole(x, y)),
    ("a group", b"\x1b\x1c" + whole(x, y)),
    ("empty", b""),
    ("strings", whole(x, entry(b"n", ld(1, ld(1, b"ab") + ld(1, b"") + ld(1, b"c"))))),
    ("no strings", whole(x, entry(b"n", ld(1, b"")))),
    ("strings that are numbers", whole(x, entry(b"n", Y))),
    ("value before key", whole(ld(1, ld(2, X) + ld(1, b"x")), y)),
    ("two maps", whole(x) + whole(y)),
    ("cut", whole(x, y)[:-3]),
    ("long varint", whole(x, entry(b"y", ld(3, ld(1, b"\xff" * 10 + b"\x01"))))),
    ("x cut in a float", whole(entry(b"x", ld(2, ld(1, f32(1, 2, 3)[:-1]))), y)),
]
spec = {"x": tf.io.FixedLenFeature([3], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64, 42),
        "n": tf.io.VarLenFeature(tf.string)}


def judge(data):
    try:
        p = tf.io.parse_example([data], spec)
    except tf.errors.InvalidArgumentError as e:
        return "error " + str(e).split("} ")[-1].split(", value:")[0].split(" [Op:")[0]
    n = [s.decode() for s in p["n"].values.numpy()]
    return "ok x=%g,%g,%g y=%d n=%d:%s" % (*p["x"].numpy()[0], p["y"].numpy()[0], len(n), "|".join(n))


good = [example(i).SerializeToString(deterministic=True) for i in range(6)]
write("records.tfrecord", good)
write("records_gzip.tfrecord", good, "GZIP")
write("records_zlib.tfrecord", good, "ZLIB")
write("sequence.tfrecord", [sequence(i).SerializeToString(deterministic=True) for i in range(4)])
write("example_cases.tfrecord", [c for _, c in cases])
with open(os.path.join(out, "example_cases.txt"), "w") as f:
    for name, data in cases:
        f.write(f"{name}\t{judge(data)}\n")
