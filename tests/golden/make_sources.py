#!/usr/bin/env python3
"""Makes the golden files of tests/pipeline/test_source_words.c: small files in tests/golden/sources, and order.txt with what
tf.data gives for them. Run with numpy and TensorFlow installed: python3 make_sources.py"""
import gzip, io, os, tarfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "sources")


def path(name):
    return os.path.join(OUT, name)


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)


def text_of(value):
    """As tests/support/stream_text.h prints: strings in quotes, numbers with 7 digits."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(text_of, value)) + ")"
    if isinstance(value, np.ndarray) and value.ndim:
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, bytes):
        return "'" + value.decode() + "'"
    return "%.7g" % value


def text_of_all(dataset):
    return "[" + ", ".join(text_of(x) for x in dataset.as_numpy_iterator()) + "]"


def csv_rows(files, **options):
    """One row at a time, in the columns' order."""
    data = tf.data.experimental.make_csv_dataset(files, 1, num_epochs=1, shuffle=False, **options)
    def row(x):
        return tuple(tf.squeeze(v, 0) for v in x.values())
    return text_of_all(data.map(row))


def files():
    for i, lines in enumerate([5, 1, 0, 7, 3]):
        write("lines-%d.txt" % i, b"".join(b"%d.%d\r\n" % (i, k) for k in range(lines))[:-2 if i == 3 else None])
    write("flowers-0.csv", b"a,b,name,label\n1,2.5,rose,0\n2,,\"a, b\",1\n3,-1e3,NA,2\n")
    write("flowers-1.csv", b"a,b,name,label\n4,0.125,tulip,1\n5,7,,0\n")
    write("plain.csv", b"1;x;3\n4;y;\n")
    write("records-0.bin", b"HEAD" + bytes(range(24)) + b"FT")
    write("records-1.bin", b"HEAD" + bytes(range(100, 112)) + b"FT")
    with open(path("records.bin.gz"), "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as to:
        to.write(b"HEAD" + bytes(range(24)) + b"FT")
    for i in range(3):
        with tarfile.open(path("shard-%06d.tar" % i), "w", format=tarfile.USTAR_FORMAT) as tar:
            for k in range(3 - i):
                array = io.BytesIO()
                np.save(array, np.arange(3, dtype=">f4" if k else "<f4") + 10 * i + k)
                picture = tf.io.encode_png(np.full((2, 2, 1), 50 * i + 10 * k, np.uint8)).numpy()
                for name, data in [("%d%d.png" % (i, k), picture), ("%d%d.cls" % (i, k), b"%d\n" % (i * 10 + k)),
                                   ("%d%d.vec.npy" % (i, k), array.getvalue()),
                                   ("%d%d.txt" % (i, k), b"text %d" % k)][:None if (i, k) != (1, 1) else 3]:
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def orders():
    texts = [path("lines-%d.txt" % i) for i in range(5)]
    flowers = [path("flowers-%d.csv" % i) for i in range(2)]
    bins = [path("records-%d.bin" % i) for i in range(2)]
    names = tf.data.Dataset.from_tensor_slices(texts)
    fixed = lambda files, kind="": tf.data.FixedLengthRecordDataset(files, 4, 4, 2, compression_type=kind)
    def decoded(data, kind, little=True):
        return text_of_all(data.map(lambda x: tf.io.decode_raw(x, kind, little_endian=little)))
    return {
        "text": text_of_all(tf.data.TextLineDataset(texts)),
        "text-2-1": text_of_all(names.interleave(tf.data.TextLineDataset, 2, 1)),
        "text-3-2": text_of_all(names.interleave(tf.data.TextLineDataset, 3, 2)),
        "text-5-4": text_of_all(names.interleave(tf.data.TextLineDataset, 5, 4)),
        "csv": csv_rows(flowers),
        "csv-na": csv_rows(flowers, na_value="NA"),
        "csv-select": csv_rows(flowers, select_columns=["label", "b"], column_defaults=[-1.5, tf.int64]),
        "csv-plain": csv_rows([path("plain.csv")], header=False, column_names=["p", "q", "r"], field_delim=";"),
        "fixed-u8": decoded(fixed(bins), tf.uint8),
        "fixed-gzip": decoded(fixed([path("records.bin.gz")], "GZIP"), tf.uint8),
        "fixed-i16-big": decoded(fixed(bins), tf.int16, False),
    }


os.makedirs(OUT, exist_ok=True)
files()
with open(path("order.txt"), "w") as to:
    for name, order in orders().items():
        to.write("%s %s\n" % (name, order))
