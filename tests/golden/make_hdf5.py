#!/usr/bin/env python3
"""Makes tests/golden/hdf5: what h5py writes. Run with h5py and numpy installed: python3 make_hdf5.py

Every data set has 10 rows, and its values are those of np.arange, so that tests need no list of them."""
import os

import h5py
import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hdf5")
KINDS = ["<i1", "<i2", "<i4", "<i8", "<u1", ">i2", ">i4", ">i8", "<f2", "<f4", "<f8", ">f4", ">f8"]


def values(kind, *shape):
    return np.arange(np.prod(shape)).reshape(shape).astype(kind)


def fill(file):
    file["plain"] = values("<f4", 10, 3)
    file.create_dataset("gzip", data=values("<i4", 10, 5), chunks=(4, 5), compression="gzip")
    file.create_dataset("blocks", data=values("<f8", 10, 3, 4), chunks=(3, 2, 3), compression="gzip", shuffle=True,
                        fletcher32=True)
    file.create_dataset("bare", data=values(">i2", 10), chunks=(7,))
    file.create_dataset("train/deep/labels", data=values("<i8", 10))
    file.create_dataset("flags", data=values("<i4", 10) % 2 == 0)


os.makedirs(OUT, exist_ok=True)
with h5py.File(os.path.join(OUT, "old.h5"), "w", libver="earliest") as file:
    fill(file)
    for kind in KINDS:
        file.create_dataset("kinds/" + kind.replace("<", "l").replace(">", "b"), data=values(kind, 10))
    hole = file.create_dataset("odd/hole", (10, 2), "<f4", chunks=(2, 2))
    hole[4:6] = values("<f4", 2, 2)
    file.create_dataset("odd/filled", (10,), "<f4", chunks=(2,), fillvalue=3)[0] = 1
    file.create_dataset("odd/empty", (0,), "<f4")
    file.create_dataset("odd/never", (10,), "<f4")
    file["odd/scalar"] = 3.0
    file["odd/text"] = ["a"] * 10
    file["odd/u4"] = values("<u4", 10)
    file.create_dataset("odd/lzf", data=values("<f4", 10), compression="lzf")
    file["odd/pair"] = np.zeros(10, [("a", "<f4"), ("b", "<i4")])
    file["odd/soft"] = h5py.SoftLink("/plain")
with h5py.File(os.path.join(OUT, "new.h5"), "w", libver="latest") as file:
    file["plain"] = values("<f4", 10, 3)
    file.create_dataset("one", data=values("<i4", 10, 5), chunks=(10, 5), compression="gzip", shuffle=True)
    file.create_dataset("newer", data=values("<i4", 10, 5), chunks=(4, 5), compression="gzip")
with h5py.File(os.path.join(OUT, "small.h5"), "w", libver="earliest") as file:
    file.create_dataset("x", data=values("<i2", 4, 3), chunks=(3, 2), compression="gzip", shuffle=True, fletcher32=True)
