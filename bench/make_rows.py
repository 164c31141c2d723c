"""Data to measure with: make_rows.py table FILE ROWS (one npy file, 100 floats and a label in a row) | columns FOLDER ROWS
(x.npy and y.npy). The rows are made piece by piece: they need not fit into memory."""
import os, sys
import numpy as np

WIDTH, PIECE = 100, 100_000


def pieces(rows):
    rng = np.random.default_rng(1)
    for at in range(0, rows, PIECE):
        x = rng.random((min(PIECE, rows - at), WIDTH), dtype=np.float32)
        yield x, x.sum(1) > WIDTH / 2


def start(path, code, shape):
    f = open(path, "wb")
    np.lib.format.write_array_header_1_0(f, {"descr": code, "fortran_order": False, "shape": shape})
    return f


def table(path, rows):
    with start(path, "<f4", (rows, WIDTH + 1)) as f:
        for x, y in pieces(rows):
            np.column_stack([x, y.astype(np.float32)]).tofile(f)


def columns(folder, rows):
    with start(os.path.join(folder, "x.npy"), "<f4", (rows, WIDTH)) as f, start(os.path.join(folder, "y.npy"), "<i8", (rows,)) as g:
        for x, y in pieces(rows):
            x.tofile(f)
            y.astype(np.int64).tofile(g)


{"table": table, "columns": columns}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
print("{}")
