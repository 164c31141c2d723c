"""make_data.py FOLDER [ROWS] - data for the examples: x.npy and y.npy, and a folder of pictures in two classes.

A label says whether the first half of its row sums to more than the second: there is something to learn. Needs nothing
but Python."""
import array, os, random, struct, sys, zlib


def write_npy(path, code, shape, parts):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        for part in parts:
            f.write(part)


def make_rows(folder, rows):
    generator, labels = random.Random(1), array.array("i")

    def parts():
        for _ in range(rows):
            row = array.array("f", (generator.random() for _ in range(100)))
            labels.append(int(sum(row[:50]) > sum(row[50:])))
            yield row.tobytes()

    write_npy(os.path.join(folder, "x.npy"), "<f4", (rows, 100), parts())
    write_npy(os.path.join(folder, "y.npy"), "<i4", (rows,), [labels.tobytes()])


def write_png(path, size, pixel):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + bytes(v for x in range(size) for v in pixel(x, y)) for y in range(size))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def make_pictures(folder):
    """Stripes that lie, stripes that stand, in noise."""
    generator = random.Random(2)
    for label in ("lying", "standing"):
        os.makedirs(os.path.join(folder, "pictures", label), exist_ok=True)
        for i in range(64):
            def pixel(x, y):
                stripe = 160 if (y if label == "lying" else x) // 4 % 2 else 60
                return tuple(stripe + generator.randrange(60) for _ in range(3))

            write_png(os.path.join(folder, "pictures", label, f"{i:03}.png"), 40, pixel)


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else "data"
    os.makedirs(target, exist_ok=True)
    make_rows(target, int(sys.argv[2]) if len(sys.argv) > 2 else 20000)
    make_pictures(target)
