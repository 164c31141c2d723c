"""tf.data: peer_data_tensorflow.py range reduced|loop SECONDS | records single|batch FOLDER | npy FILE SECONDS. One JSON line."""
import glob, os, sys, time
import numpy as np, tensorflow as tf
from peer_common import FIRST_STEPS, report

AUTO, BATCH, BUFFER, WIDTH = tf.data.AUTOTUNE, 32, 10_000, 100
L = tf.keras.layers


def range_of(how, seconds):
    def data(n):
        return tf.data.Dataset.range(n).map(lambda x: x * 2, num_parallel_calls=AUTO).prefetch(AUTO)

    def run(n):
        begin = time.perf_counter()
        if how == "reduced":
            data(n).reduce(np.int64(0), lambda a, b: a + b).numpy()
        else:
            for _ in data(n):
                pass
        return time.perf_counter() - begin
    run(1000)
    n = max(1000, int(10_000 * seconds / run(10_000)))
    report("tensorflow", tf.__version__, [run(n) / n], elements=n)


def records(how, folder):
    features = {"x": tf.io.FixedLenFeature([WIDTH], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(os.path.join(folder, "*.tfrecord"))))
    data = files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=AUTO)
    if how == "single":
        data = data.map(lambda r: tf.io.parse_single_example(r, features), num_parallel_calls=AUTO).shuffle(BUFFER).batch(BATCH)
    else:
        data = data.shuffle(BUFFER).batch(BATCH).map(lambda r: tf.io.parse_example(r, features), num_parallel_calls=AUTO)
    begin, count = time.perf_counter(), 0
    for batch in data.prefetch(AUTO):
        count += int(batch["y"].shape[0])
    report("tensorflow", tf.__version__, [(time.perf_counter() - begin) / count], elements=count)


def npy(path, seconds):
    """Exactly shuffled, as far as from_generator can: a permutation in memory, a row at a time."""
    table = np.load(path, mmap_mode="r")
    model = tf.keras.Sequential([L.Input((WIDTH,)), L.Dense(64, activation="relu"), L.Dense(1, activation="sigmoid")])
    loss_of, optimizer = tf.keras.losses.BinaryCrossentropy(), tf.keras.optimizers.Adam()

    def rows():
        for i in np.random.default_rng(7).permutation(len(table)):
            yield table[i, :WIDTH], table[i, WIDTH:]

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    signature = (tf.TensorSpec((WIDTH,), tf.float32), tf.TensorSpec((1,), tf.float32))
    begin, count, first = time.perf_counter(), 0, None
    for x, y in tf.data.Dataset.from_generator(rows, output_signature=signature).batch(BATCH).prefetch(AUTO):
        step(x, y).numpy()
        count += x.shape[0]
        if count == FIRST_STEPS * BATCH:
            first = time.perf_counter()
        elif first and time.perf_counter() - first > seconds:
            break
    steady = (time.perf_counter() - first) / (count - FIRST_STEPS * BATCH)
    report("tensorflow", tf.__version__, [steady], elements=count, start_seconds=(first - begin) / (FIRST_STEPS * BATCH))


if sys.argv[1] == "range":
    range_of(sys.argv[2], float(sys.argv[3]))
elif sys.argv[1] == "records":
    records(sys.argv[2], sys.argv[3])
else:
    npy(sys.argv[2], float(sys.argv[3]))
