"""TensorFlow over images: peer_images.py make PHOTOGRAPHS FOLDER COUNT | run FOLDER. One JSON line."""
import glob, json, os, random, sys, time
import tensorflow as tf
from peer_common import report

HEIGHT, WIDTH, SIZE, BATCH = 480, 640, 224, 32


def made_up(rng, shape=(1536, 2048)):
    """Where there are no photographs: gradients, and noise of several sizes."""
    image = tf.zeros((*shape, 3))
    for cells in (2, 8, 32, 128):
        noise = tf.random.stateless_uniform((cells, cells, 3), seed=(rng.randrange(1 << 30), cells))
        image += tf.image.resize(noise, shape, method="bicubic") * 255 / cells ** 0.5
    return tf.cast(tf.clip_by_value(image * 0.6, 0, 255), tf.uint8)


def make(photographs, folder, count):
    """Parts of photographs, at a size of 1 to 2.5 times the part, as encoders of today write them."""
    rng, files = random.Random(7), sorted(glob.glob(os.path.join(photographs, "**", "*.jpg"), recursive=True))
    sources = [tf.io.decode_jpeg(tf.io.read_file(f), channels=3) for f in files] or [made_up(rng) for _ in range(8)]
    sources = [s for s in sources if s.shape[0] >= HEIGHT and s.shape[1] >= WIDTH]
    for i in range(count):
        source, scale = sources[i % len(sources)], 1 + 1.5 * rng.random()
        tall, wide = min(source.shape[0], int(HEIGHT * scale)), min(source.shape[1], int(WIDTH * scale))
        part = tf.image.crop_to_bounding_box(source, rng.randint(0, source.shape[0] - tall), rng.randint(0, source.shape[1] - wide), tall, wide)
        part = tf.cast(tf.round(tf.clip_by_value(tf.image.resize(part, (HEIGHT, WIDTH), antialias=True), 0, 255)), tf.uint8)
        place = os.path.join(folder, f"class{i % 4}")
        os.makedirs(place, exist_ok=True)
        tf.io.write_file(os.path.join(place, f"{i:04}.jpg"), tf.io.encode_jpeg(part, quality=90))
    print(json.dumps({"photographs": len(files), "images": count}))


def run(folder):
    def load(path, label):
        return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (SIZE, SIZE)), label
    files = sorted(glob.glob(os.path.join(folder, "*", "*.jpg")))
    labels = [int(f.split("class")[-1][0]) for f in files]
    data = tf.data.Dataset.from_tensor_slices((files, labels)).map(load, num_parallel_calls=tf.data.AUTOTUNE)
    data, seconds, cpu = data.batch(BATCH).prefetch(tf.data.AUTOTUNE), [], []
    for _ in range(3):  # the first epoch is for its tuning
        begin, cpu_begin = time.perf_counter(), time.process_time()
        for _ in data:
            pass
        seconds.append((time.perf_counter() - begin) / len(files))
        cpu.append((time.process_time() - cpu_begin) / len(files))
    report("tensorflow", tf.__version__, seconds[1:], cpu_seconds=min(cpu[1:]))


make(sys.argv[2], sys.argv[3], int(sys.argv[4])) if sys.argv[1] == "make" else run(sys.argv[2])
