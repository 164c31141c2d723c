#!/usr/bin/env python3
"""Makes the golden files of tests/formats/test_zip.c, test_tar.c, test_lines.c, test_csv.c and test_file_list.c.

Run with numpy, TensorFlow and Keras installed: python3 make_containers.py
What these say is the truth that the readers are compared with."""
import contextlib, gzip, io, os, struct, tarfile, tempfile, zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops import readers
from keras.src.utils import dataset_utils

HERE = os.path.dirname(os.path.abspath(__file__))


def out(name):
    return os.path.join(HERE, "containers", name)


def arrays():
    x = (np.arange(12, dtype="<f4") * 1.5).reshape(4, 3)
    y = np.array([7, -8, 9, 1 << 40], dtype="<i8")
    f = np.asfortranarray(np.arange(24, dtype="<f8").reshape(4, 3, 2))
    b = np.asfortranarray(np.arange(8, dtype=">i2").reshape(4, 2))
    np.savez(out("arrays.npz"), x=x, y=y, f=f, b=b)
    np.savez_compressed(out("arrays_packed.npz"), x=x, y=y, f=f)
    np.save(out("fortran.npy"), f)
    # A comment, a member that is no array, a data descriptor (written to a stream that cannot seek), zip64 extras.
    class Pipe(io.RawIOBase):
        def __init__(self, to):
            self.to = to
        def writable(self):
            return True
        def write(self, data):
            return self.to.write(data)
    with open(out("stream.zip"), "wb") as to, zipfile.ZipFile(Pipe(to), "w", zipfile.ZIP_DEFLATED) as z:
        z.comment = b"a comment"
        z.writestr(zipfile.ZipInfo("notes.txt", (2020, 1, 1, 0, 0, 0)), "hello " * 40)
        with z.open(zipfile.ZipInfo("x.npy", (2020, 1, 1, 0, 0, 0)), "w", force_zip64=True) as member:
            np.save(member, x)


def tars():
    def add(tar, name, data, kind=tarfile.REGTYPE):
        info = tarfile.TarInfo(name)
        info.size, info.type, info.mtime = len(data), kind, 1600000000.25 if tar.format == tarfile.PAX_FORMAT else 1
        tar.addfile(info, io.BytesIO(data))
    def fill(tar):
        add(tar, "set", b"", tarfile.DIRTYPE)
        add(tar, "__meta__.json", b"{}")
        for i in range(3):
            add(tar, "set/%06d.jpg" % i, bytes([i]) * (700 * i))
            add(tar, "set/%06d.cls" % i, b"%d" % (i * 11))
        add(tar, "set/long" + "x" * 120 + ".seg.PNG", b"png")
        add(tar, "set/long" + "x" * 120 + ".json", b"{}")
        add(tar, "README", b"no extension")
        add(tar, "set/last.txt", b"end")
    for name, kind in (("pax", tarfile.PAX_FORMAT), ("gnu", tarfile.GNU_FORMAT)):
        with tarfile.open(out("set_%s.tar" % name), "w", format=kind) as tar:
            fill(tar)
    with open(out("set_pax.tar"), "rb") as tar:
        raw = tar.read()
    with open(out("set.tar.gz"), "wb") as packed, gzip.GzipFile("", "wb", 9, packed, mtime=0) as to:
        to.write(raw)
    with tarfile.open(out("set_ustar.tar"), "w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar, "d" * 100 + "/" + "e" * 40 + "/name.txt", b"prefix")


def hexed(data):
    return data.hex() or "-"


def lines():
    cases = [b"a\nb\n", b"a\r\nb\r\n", b"a\rb\r\n\r\nc", b"a\n\r", b"a\n\n", b"\n", b"", b"\r", b"a\r\r\nb\n\0c",
             b"a\nb\r", b"\r\nx\r\r", "ä€\n".encode(), b"1234567890" * 5 + b"\nshort\n"]
    with open(out("lines.txt"), "w") as to, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t")
        for case in cases:
            with open(path, "wb") as f:
                f.write(case)
            got = [hexed(x) for x in tf.data.TextLineDataset(path).as_numpy_iterator()]
            to.write("%s %s\n" % (hexed(case), ";".join(got) or "none"))


TYPES = {"i": tf.int32, "l": tf.int64, "f": tf.float32, "d": tf.float64, "s": tf.string}


def shown(kind, value):
    if kind == "s":
        return hexed(value)
    if kind == "f":
        return struct.pack(">f", value).hex() if value == value else "nan"
    if kind == "d":
        return struct.pack(">d", value).hex() if value == value else "nan"
    return str(value)


def csv_case(path, types, data, na="", **options):
    """types: a letter a column, a capital where the value is required."""
    with open(path, "wb") as f:
        f.write(data)
    defaults = [TYPES[t.lower()] if t.isupper() else
                tf.constant(["D"] if t == "s" else [7], TYPES[t.lower()]) for t in types]
    rows, it = [], iter(tf.data.experimental.CsvDataset(path, defaults, na_value=na, **options))
    while len(rows) < 200:
        try:
            rows.append(",".join(shown(t.lower(), x.numpy()) for t, x in zip(types, next(it))))
        except StopIteration:
            break
        except tf.errors.InvalidArgumentError:
            rows.append("!")
    return ";".join(rows) or "none"


def csvs():
    cases = []
    def case(types, data, na="", header=False, select=None, delim=",", quotes=True):
        cases.append((types, data, na, header, select, delim, quotes))
    whole = ["5", "+5", "-5", " 5 ", "\t5", "5 6", "0x10", "05", "2147483647", "2147483648", "-2147483648",
             "-2147483649", "-0", "5.0", "1e3", "", "- 5", "1_0", "--1", "+", "-", "99999999999999999999999"]
    case("IS", "".join(t + ",x\n" for t in whole).encode())
    case("LS", "".join(t + ",x\n" for t in whole + ["9223372036854775807", "9223372036854775808",
                                                     "-9223372036854775808", "-9223372036854775809"]).encode())
    real = ["1", "+1", "-1.5", ".5", "5.", ".", "1e5", "1e+5", "1E-5", "1e", "1e+", "1e400", "1e40", "-1e40", "1e-50",
            "1e-320", "inf", "-inf", "+inf", "Infinity", "nan", "-nan", "NaN", "0x1p3", "0x10", " 1 ", "1 2", "1f",
            "1_0", "3.4028235677973366e38", "3.4028235e38", "3.4028236e38", "0.1000000000000000055511151231257",
            "1.00000017881393432617187499", "1.000000178813934326171875", "0.1", "0.30000000000000004",
            "9007199254740993", "1.7976931348623157e308", "1.7976931348623159e308", "2.2250738585072014e-308",
            "1e-45", "7e-46", "1.1754943508222875e-38", "123456789012345678901234567890", "0.000001", "1e23",
            "8.5", "-0.0", "--1", "1e5.5", "1e99999999999", "1e-99999999999", "+-1", ".e5", "e5"]
    case("FS", "".join(t + "|x\n" for t in real).encode(), delim="|")
    case("DS", "".join(t + "|x\n" for t in real).encode(), delim="|")
    for data in [b'1,"a ""q"" b"\n2,"x\ny"\r\n3,"z"', b'1,"ab"c"\n2,d\n', b'1,a"b\n2,c\n', b'1,"abc',
                 b'1,\n2,""\n3,NA\n', b"\n1,a\n", b"1\n2,b\n", b"1,a,3\n2,b\n", b"1,a\r2,b\r\n3,c\n\n", b"1,", b"",
                 b"\r\n", b'1, "a"\n', b"1,a\n\r2,b\n", b'"1",a\n" 2 ",b\n"",c\n', b'1,"a""\n2,b\n',
                 b"\xef\xbb\xbf1,a\n", b'1,""""\n2,""""""\n', b'1,"a,b"\n', b"1,a\0b\n", b'1,"a"\r\n2,"b"\r3,"c"']:
        case("IS", data)
        case("is", data, na="NA")
    case("ii", b"-1,5\n5,-1\n", na="-1")
    case("II", b"h,g\n1,2\n", header=True)
    case("II", b'"h\nx",g\n1,2\n', header=True)
    case("II", b"h", header=True)
    for data in [b"1,2,3,4\n", b"1,2\n", b"1,2,3\n", b'1,"x"y",3\n4,5,6\n', b'1,x"y,3\n4,5,6\n',
                 b",2,3\n1,,3\n1,2,\n", b'1,"a\nb",3\n']:
        case("II", data, select=[0, 2])
        case("S", data, select=[1])
    case("SS", b'"a",b"c\n', quotes=False)
    case("Ii", b"1\t2\n3\t\n", delim="\t")
    case("ff", b"1-2\n", delim="-")
    case("dlifs", b",,,,\n", na="")
    with open(out("csv.txt"), "w") as to, tempfile.TemporaryDirectory() as folder:
        for types, data, na, header, select, delim, quotes in cases:
            got = csv_case(os.path.join(folder, "t"), types, data, na, header=header, select_cols=select,
                           field_delim=delim, use_quote_delim=quotes)
            to.write("%s %s %d %s %s %d %s %s\n" % (types, hexed(na.encode()), header,
                     ",".join(map(str, select)) if select else "-", hexed(delim.encode()), quotes, hexed(data), got))
        to.write("# types\n")
        for values in [["1", "2"], ["1", "2147483648"], ["1", "2.5"], ["2147483648", "1.5"], ["1e40", "1"],
                       ["1", "x"], ["", ""], ["", "3"], ["nan", "1"], ["-inf", "1"], ["inf"], ["NA", "4"], ["0x10"],
                       [" 5 ", "+6"], ["5.", ".5"], ["1e5"], ["99999999999999999999"], ["1 2"]]:
            path = os.path.join(folder, "t")
            with open(path, "w") as f:
                f.write("".join('"%s",z\n' % v for v in values))
            defaults = readers._infer_column_defaults([path], 2, ",", True, "NA", False, 100, None,
                                                      lambda name: open(name))
            to.write("%s %s\n" % (hexed("".join('"%s",z\n' % v for v in values).encode()), defaults[0].dtype.name))


TREE = ["a.txt", "b.txt", ".h.txt", "sub/c.txt", "a1/c.txt", "a-1.txt", "B.txt", "a[1].txt", ".hid/z.txt", ".x", "!q",
        "a\\b"]
PATTERNS = ["g/*.txt", "g/*", "g/*/c.txt", "g/?.txt", "g/[ab].txt", "g/[!a].txt", "g/[^a].txt", "g/[a-c]*", "g/sub",
            "g/nothing*", "g/a\\[1\\].txt", "g/**/c.txt", "g/**", "g/a[[]1].txt", "g/*/", "./g/*.txt", "g/a.txt",
            "g/nope.txt", "g/b*,g/a*", "g/b*,nope*", "g/a.txt,g/a.txt", "g/[]a].txt", "g/a*[1-9]*.txt", "g/*a*b*",
            "g/*.t?t", "g/a*.txt"]
CLASSES = ["dog/2.jpg", "dog/10.JPG", "dog/1.png", "dog/sub/0.bmp", "dog/sub-a/5.gif", "dog/sub/in/1.jpeg",
           "cat/a.jpg", "cat/B.jpg", "cat/readme.txt", "cat/x.jpg.txt", ".hidden/a.jpg", "Zebra/z.png", "empty/note.md",
           "a.jpg", "dog-2/1.jpg"]


def lists():
    with tempfile.TemporaryDirectory() as folder, open(out("file_lists.txt"), "w") as to:
        os.chdir(folder)
        for name in TREE:
            os.makedirs(os.path.dirname("g/" + name), exist_ok=True)
            open("g/" + name, "w").close()
            to.write("file g/%s\n" % name)
        for name in CLASSES:
            os.makedirs(os.path.dirname("k/" + name), exist_ok=True)
            open("k/" + name, "w").close()
            to.write("file k/%s\n" % name)
        for pattern in PATTERNS:
            try:
                got = tf.data.Dataset.list_files(pattern.split(","), shuffle=False).as_numpy_iterator()
                to.write("glob %s %s\n" % (pattern, "|".join(x.decode() for x in got)))
            except tf.errors.InvalidArgumentError:
                to.write("glob %s none\n" % pattern)
        formats = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
        paths, labels, names = dataset_utils.index_directory("k", "inferred", formats, shuffle=False, verbose=False)
        to.write("classes %s %s\n" % (",".join(names), "|".join("%d:%s" % (l, p) for l, p in zip(labels, paths))))
        os.chdir(HERE)


for make in (arrays, tars, lines, csvs, lists):
    make()
