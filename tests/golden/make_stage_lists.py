#!/usr/bin/env python3
"""Prints the lists that tests/test_stage_*.c compare with: what tf.data itself gives (TensorFlow 2.21)."""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

Dataset = tf.data.Dataset


def show(name, dataset):
    print(name, [x.tolist() if hasattr(x, "tolist") else x for x in dataset.as_numpy_iterator()])


def ragged(lengths):
    rows = lambda: (np.arange(1, n + 1, dtype=np.int32) + 10 * i for i, n in enumerate(lengths))
    return Dataset.from_generator(rows, output_signature=tf.TensorSpec([None], tf.int32))


for files, cycle, block, lengths in [
    (5, 2, 4, [6] * 5), (5, 2, 1, [1, 3, 0, 4, 2]), (6, 3, 2, [5, 1, 0, 0, 7, 2]), (4, 8, 3, [2, 9, 1, 4]),
    (3, 1, 2, [3, 0, 2]), (6, 2, 2, [0, 0, 4, 1, 3, 2]),
]:
    counts = tf.constant(lengths, tf.int64)
    make = lambda i: Dataset.range(counts[i]).map(lambda j: i * 100 + j)
    show(f"interleave {cycle} {block}", Dataset.range(files).interleave(make, cycle_length=cycle, block_length=block))
    if cycle > 1:
        show("  parallel", Dataset.range(files).interleave(make, cycle_length=cycle, block_length=block,
                                                           num_parallel_calls=2, deterministic=True))

for n, size, shift, stride, drop in [
    (7, 2, None, 1, True), (7, 3, 2, 1, True), (7, 3, 2, 1, False), (7, 3, None, 2, True), (7, 3, 1, 2, False),
    (10, 3, 5, 1, False), (10, 4, 5, 3, False), (4, 5, 1, 1, False), (10, 2, 7, 3, False), (10, 2, 3, 4, True),
]:
    windows = Dataset.range(n).window(size, shift=shift, stride=stride, drop_remainder=drop)
    print("window", n, size, shift, stride, drop, [[int(x) for x in w] for w in windows], int(windows.cardinality()))

inputs = [Dataset.range(0, 3), Dataset.range(100, 102), Dataset.range(200, 206)]
order = Dataset.from_tensor_slices(tf.constant([0, 1, 2, 1, 0, 1, 1, 2, 2, 0, 0, 2, 2, 2, 2], tf.int64))
for stop in (True, False):
    show(f"choose {stop}", Dataset.choose_from_datasets(inputs, order, stop_on_empty_dataset=stop))

show("padded", ragged([1, 3, 0, 2, 4]).padded_batch(2))
show("padded to 5", ragged([1, 3, 0, 2, 4]).padded_batch(2, padded_shapes=[5], padding_values=-1, drop_remainder=True))

length = lambda x: tf.shape(x)[0]
many = [1, 7, 3, 5, 2, 9, 4, 4, 12, 6, 1, 1, 8, 10, 3]
for drop in (False, True):
    show(f"buckets {drop}", ragged(many).bucket_by_sequence_length(length, [3, 6], [3, 2, 2], drop_remainder=drop))
show("to the boundary", ragged([n for n in many if n < 6]).bucket_by_sequence_length(
    length, [3, 6], [3, 2, 2], pad_to_bucket_boundary=True))
show("groups", Dataset.range(20).group_by_window(lambda x: x * x % 7, lambda k, w: w.batch(3), window_size=3))
show("in batches", Dataset.range(20).group_by_window(lambda x: -(x % 3), lambda k, w: w.batch(2), window_size=4))

batches = Dataset.range(20).batch(6)
for sizes, drop in [(4, False), ([3, 1, 4], False), ([3, 1, 4], True), (8, True)]:
    show(f"rebatch {sizes} {drop}", batches.rebatch(sizes, drop_remainder=drop))
show("unbatch", Dataset.range(5).batch(2).unbatch())
print("zip", [(int(a), int(b)) for a, b in Dataset.zip((Dataset.range(3), Dataset.range(5)))])
show("concatenate", Dataset.from_tensor_slices([[1, 2], [3, 4]]).concatenate(Dataset.from_tensor_slices([[1, 2, 3]])))
show("counter", Dataset.counter(start=3, step=-2).take(4))
