"""pictures.py PLIM: decodes and resizes the same JPEGs in plim and in TensorFlow, and compares.

200 files are made here, the same on every machine: textures at qualities of 30 to 100, with chroma of each sampling, grey,
progressive, with restarts, of sizes from 1 x 1 on. Those that tf.io.encode_jpeg has no words for are written by cjpeg, of
Debian's libjpeg-turbo-progs. Decoded bytes must be equal; pictures of 224 x 224, compared file by file, within 1e-5.
Prints a line a kind of file and 'N passed, N failed' last."""
import io, json, os, subprocess, sys, tarfile, tempfile
import numpy as np
import tensorflow as tf
from plim_side import check, error, finish

COUNT, SIZE, BAR = 200, 224, 1e-5
# Sides at which blocks of 8, MCUs of 16 and 32 and the rules of upsampling have their edges: half of the files; the rest has any.
EDGES = [(1, 1), (1, 9), (2, 3), (7, 8), (8, 8), (9, 7), (15, 16), (16, 17), (17, 31), (33, 32), (224, 224), (225, 447), (480, 640)]
# What tf.io.encode_jpeg writes, and what cjpeg does.
TENSORFLOW = {"4:2:0": dict(), "4:4:4": dict(chroma_downsampling=False), "4:2:0 progressive": dict(progressive=True),
              "4:4:4 progressive": dict(progressive=True, optimize_size=True, chroma_downsampling=False),
              "grey": dict(format="grayscale"), "grey progressive": dict(format="grayscale", progressive=True)}
CJPEG = {"4:2:2": "-sample 2x1", "4:2:2 progressive": "-sample 2x1 -progressive", "4:4:0": "-sample 1x2", "4:1:1": "-sample 4x1",
         "4:2:0, restarts": "-sample 2x2 -restart 1", "4:2:2, restarts": "-sample 2x1 -restart 3B", "RGB": "-rgb -sample 1x1",
         "4:4:4, tables of its own": "-sample 1x1 -optimize"}
KINDS = [*TENSORFLOW, *CJPEG]
# What else is compared, over a part of the files: resize's words in both.
RESIZES = [(dict(method="nearest"), 3), (dict(method="bicubic"), 3), (dict(method="area"), 3),
           (dict(method="bilinear", antialias=True), 3), (dict(method="bicubic", antialias=True), 5)]


def texture(rng, height, width, channels):
    """Noise whose strength falls with its fineness, as in photographs, and a few edges."""
    y, x = np.mgrid[0:height, 0:width]
    picture = np.zeros((height, width, channels))
    for cells in (2, 5, 13, 40, 160):
        noise = rng.random((cells, cells, channels))
        picture += noise[y * cells // height, x * cells // width] * 140 / cells ** 0.35
    for _ in range(4):
        a, b, c = rng.normal(size=3)
        picture += np.where((a * (y / height - 0.5) + b * (x / width - 0.5) > 0.3 * c)[..., None], rng.normal(size=channels) * 50, 0)
    return np.clip(picture - picture.min() - 20, 0, 255).astype(np.uint8)


def encode(kind, pixels, quality):
    if kind in TENSORFLOW:
        return tf.io.encode_jpeg(pixels, quality=quality, **TENSORFLOW[kind]).numpy()
    head = b"P6 %d %d 255\n" % (pixels.shape[1], pixels.shape[0])
    return subprocess.run(["cjpeg", "-quality", str(quality), *CJPEG[kind].split()], input=head + pixels.tobytes(), capture_output=True,
                          check=True).stdout


def make(folder):
    """[(kind, bytes)]; the files are folder/NNN.jpg."""
    files = []
    for i in range(COUNT):
        rng, kind = np.random.default_rng(i), KINDS[i % len(KINDS)]
        turn = i + i // len(KINDS)
        height, width = EDGES[turn // 2 % len(EDGES)] if turn % 2 else rng.integers(20, 640, 2)
        pixels = texture(rng, height, width, 1 if kind.startswith("grey") else 3)
        files.append((kind, encode(kind, pixels, 30 + (i * 37) % 71)))
        with open(f"{folder}/{i:03}.jpg", "wb") as f:
            f.write(files[-1][1])
    return files


def run_plim(plim, folder, functions, output, every=1):
    """What plim makes of every n-th file, into `output` in the folder."""
    job = {"memory": "256MiB", "data": {"train": {"images": {"files": "*.jpg", "labels": "none"}, "pipeline": [
        {"shard": {"num_shards": every, "index": 0}}, {"map": functions}]}}}
    with open(f"{folder}/job.yaml", "w") as f:
        json.dump(job, f)
    r = subprocess.run([plim, "data", "convert", f"{folder}/job.yaml", "--output", f"{folder}/{output}"], capture_output=True, text=True,
                       timeout=600)
    if r.returncode:
        print(r.stderr)
    return f"{folder}/{output}" if r.returncode == 0 else None


def arrays_of_tar(path):
    with tarfile.open(path) as tar:
        return [np.load(io.BytesIO(tar.extractfile(member).read())) for member in tar]


def compare_decoded(plim, folder, files, what, ours, every=1, **theirs):
    """A line a kind of file where all are compared, otherwise one: how many files differ."""
    path, seen = run_plim(plim, folder, [{"decode_jpeg": ours}], "decoded.tar", every), {}
    pictures = arrays_of_tar(path) if path else []
    if len(pictures) != len(files[::every]):
        return check(f"{what}: plim reads {len(files[::every])} files", np.inf, 0)
    for i, (kind, data) in enumerate(files[::every]):
        same = np.array_equal(pictures[i], tf.io.decode_jpeg(data, **theirs).numpy())
        if not same:
            print(f"      {i * every:03}.jpg ({kind}) differs")
        seen.setdefault(kind if every == 1 else "any kind", []).append(not same)
    for kind, differ in seen.items():
        check(f"{what}, {kind}, {len(differ)} files: how many differ", sum(differ), 0)


def compare_resized(plim, folder, files, words, every=1):
    what = f"resize, {' '.join(k if v is True else v for k, v in words.items())}"
    path = run_plim(plim, folder, [{"decode_jpeg": {"channels": 3}}, {"resize": {"size": [SIZE, SIZE], **words}}], "resized.npy", every)
    pictures, worst, count = np.load(path, mmap_mode="r") if path else [], 0.0, len(files[::every])
    for i, (_, data) in enumerate(files[::every]) if len(pictures) == count else []:
        theirs = tf.image.resize(tf.io.decode_jpeg(data, channels=3), (SIZE, SIZE), **words).numpy()
        worst = max(worst, error(pictures[i], theirs) if theirs.any() else float(np.any(pictures[i])))
    check(f"{what}, {count} files: worst of all", worst if len(pictures) == count else np.inf, BAR)


def main(plim):
    with tempfile.TemporaryDirectory() as folder:
        files = make(folder)
        print(f"{len(files)} JPEGs, {sum(len(data) for _, data in files) >> 10} KiB")
        compare_decoded(plim, folder, files, "decode_jpeg", {})
        compare_decoded(plim, folder, files, "decode_jpeg, accurate", {"dct": "accurate"}, 3, dct_method="INTEGER_ACCURATE")
        compare_decoded(plim, folder, files, "decode_jpeg, plain upscaling", {"fancy_upscaling": False}, 3, fancy_upscaling=False)
        compare_decoded(plim, folder, files, "decode_jpeg, half", {"ratio": 2}, 3, ratio=2)
        compare_resized(plim, folder, files, {"method": "bilinear"})
        for words, every in RESIZES:
            compare_resized(plim, folder, files, words, every)
    return finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
