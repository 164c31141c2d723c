#!/usr/bin/env python3
"""Makes tests/golden/tfds (a small data set as tensorflow_datasets writes it) and tfds/order.txt, what it reads from it.

Run with tensorflow and tensorflow_datasets installed: python3 make_tfds.py"""
import os, shutil, tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow_datasets as tfds

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "tfds")
F = tfds.features


def example(i):
    return {"image": np.full((2, 3, 1), i, np.uint8), "label": i % 3, "name": "n%d" % i,
            "x": np.array([i, i / 2], np.float32), "small": np.int32(-i), "many": list(range(i % 4)),
            "raw": np.array([i, -i], np.int16), "nested": {"flag": bool(i % 2)},
            "free": np.full((1 + i % 2, 2, 3), i, np.uint8)}


def features():
    return F.FeaturesDict({
        "image": F.Image(shape=(2, 3, 1), encoding_format="png"), "label": F.ClassLabel(num_classes=3),
        "name": F.Text(), "x": F.Tensor(shape=(2,), dtype=np.float32), "small": F.Scalar(np.int32),
        "many": F.Sequence(np.int64), "raw": F.Tensor(shape=(2,), dtype=np.int16, encoding="bytes"),
        "nested": {"flag": F.Scalar(np.bool_)}, "free": F.Image(shape=(None, None, 3), encoding_format="png")})


class Tiny(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.2.3")

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=features(), supervised_keys=("image", "label"))

    def _split_generators(self, manager):
        return {"train": self._generate_examples(0, 13), "test": self._generate_examples(50, 4)}

    def _generate_examples(self, first, count):
        for i in range(first, first + count):
            yield i, example(i)


def one(value):
    return "%.7g" % value


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        builder = Tiny(data_dir=folder)
        builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=3))
        shutil.copytree(builder.data_dir, OUT)
        with open(os.path.join(OUT, "order.txt"), "w") as to:
            read = tfds.ReadConfig(interleave_cycle_length=1)
            for split in ["train", "test", "train[:50%]", "train[25%:]", "train[-3:]", "train[2:5]", "test[1:]+train[:2]",
                          "train[:12%]", "train[:-90%]"]:
                got = builder.as_dataset(split=split, read_config=read)
                to.write("%s [%s]\n" % (split.replace(" ", ""), ", ".join(
                    one(x["small"]) for x in tfds.as_numpy(got))))
            got = tfds.as_numpy(builder.as_dataset(split="train", read_config=read))
            to.write("all [%s]\n" % ", ".join("(%s, %s, '%s', [%s], [%s], [%s], %s, %s)" % (
                x["image"].tolist(), x["label"], x["name"].decode(), ", ".join(map(one, x["x"])),
                ", ".join(map(one, x["many"])), ", ".join(map(one, x["raw"])), int(x["nested"]["flag"]),
                x["free"].tolist()) for x in got))


main()
