"""Prints what tf.data makes of range(20) and of small lists, for tests/golden/stages.txt: a line a pipeline."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

r = tf.data.Dataset.range(20)
d = tf.data.Dataset.from_tensor_slices(tf.constant([3, 1, 3, 2, 1, 3, 7, 7, 2, 0, 5, 3], tf.int64))
lines = {
    "shard_3_1": r.shard(3, 1),
    "shard_20_19": r.shard(20, 19),
    "shard_7_0_skip_1": r.shard(7, 0).skip(1),
    "filter_multiples_of_3": r.filter(lambda x: x % 3 == 0),
    "filter_none": r.filter(lambda x: x < 0),
    "take_while_below_7": r.take_while(lambda x: x < 7),
    "take_while_odd_digits": d.take_while(lambda x: x % 2 == 1),
    "unique": d.unique(),
    "enumerate_5": r.skip(17).enumerate(start=5).map(lambda i, x: i * 100 + x),
    "scan_running_sum": d.scan(tf.constant(10, tf.int64), lambda s, x: (s + x, s + x)),
    "reduce_sum": tf.data.Dataset.from_tensors(d.reduce(tf.constant(100, tf.int64), lambda s, x: s + x)),
    "cache_twice": d.take(4).cache().repeat(2),
    "filter_after_shard": r.shard(2, 1).filter(lambda x: x > 9),
    "assert_cardinality": r.filter(lambda x: x > 16).apply(tf.data.experimental.assert_cardinality(3)),
    "ignore_errors": d.map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x, tf.float32), "x") * 0 + tf.cast(x, tf.float32)).ignore_errors(),
}
for name, dataset in lines.items():
    print(name + ":", *[int(x) for x in dataset.as_numpy_iterator()])
