"""Makes strings.txt: what tf.strings.to_number, lower, upper and strip, and RaggedTensor.to_tensor give.

python make_strings.py (needs tensorflow). Fields are separated by tabs; a list of strings is their bytes in hex, a comma
after each. Lines:
to_number TYPE INPUT RESULT        the bits of the result as a whole number; "-": an error
lower|upper|strip INPUTS RESULTS
to_dense LENGTH VALUE NUMBERS RESULT"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

out = open("strings.txt", "w")


def line(*fields):
    print(*fields, sep="\t", file=out)


def words(values):
    return "".join((v if isinstance(v, bytes) else str(v).encode()).hex() + "," for v in values)


NUMBERS = ["0", "1", "-1", "+1", "007", "3.25", "-2.5e3", "1e-3", "1E5", ".5", "5.", "1e400", "-1e400", "1e-400", "inf", "-inf",
           "Infinity", "nan", "NaN", " 7", "7 ", "\t7\n", "7 8", "", " ", "x", "1x", "0x10", "1_000", "2147483647",
           "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
           "16777217", "0.1", "3.4028235e38", "3.5e38", "--1", "-", "+", "1e", "1.5", "1,5", "12345678901234567890"]
for kind, bits in (("float32", np.uint32), ("float64", np.uint64), ("int32", np.uint32), ("int64", np.uint64)):
    for text in NUMBERS:
        try:
            value = tf.strings.to_number(text, out_type=kind).numpy()
            result = str(int(np.asarray(value).view(bits)))
            if value != value:
                result = "nan"
        except tf.errors.InvalidArgumentError:
            result = "-"
        line("to_number", kind, words([text]), result)
TEXTS = ["", "AbC xYz", "ÄÖ é ß", "@[`{~", "  a b \t\n\x0b\x0c\r", "\u00a0x\u00a0", b"\xff\xfeQ", "a\x00B"]
for name in ("lower", "upper", "strip"):
    line(name, words(TEXTS), words(getattr(tf.strings, name)(TEXTS).numpy()))
for length in (1, 3, 5):
    for values in ([], [4], [4, 5, 6], [1, 2, 3, 4, 5, 6, 7]):
        dense = tf.ragged.constant([values], dtype=tf.int64).to_tensor(-1, shape=[1, length])
        line("to_dense", length, -1, " ".join(map(str, values)), " ".join(map(str, dense.numpy()[0])))
