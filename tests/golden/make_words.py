"""Makes lookup.txt and vectorize.txt: what keras.layers.StringLookup, IntegerLookup, Hashing and TextVectorization, and tf.strings.split,
give for a few inputs.

python make_words.py (needs keras with tensorflow). Fields are separated by tabs; a list of strings is their
bytes in hex, a comma after each; "-" is none. Lines:
lookup TYPE list|file TOKENS NUM_OOV MASK METHOD SALT OUTPUT LAST INPUTS NUMBERS
hashing TYPE BINS MASK SALT OUTPUT LAST INPUTS NUMBERS
tokens TOKENS                      of the lines that follow
vectorize STANDARDIZE SPLIT NGRAMS OUTPUT LENGTH INPUT NUMBERS
split SEPARATOR INPUT PIECES
LAST is the last axis of a row, 0 for a scalar. Each row is a batch of one; a scalar has an axis of one there."""
import itertools
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

L = keras.layers
folder = tempfile.mkdtemp()
out_files = {name: open(name + ".txt", "w") for name in ("lookup", "vectorize")}


def line(*fields):
    name = "lookup" if fields[0] in ("lookup", "hashing") else "vectorize"
    print(*fields, sep="\t", file=out_files[name])


def words(values):
    return "".join((v if isinstance(v, bytes) else str(v).encode()).hex() + "," for v in values)


def mask_text(mask):
    return "-" if mask is None else words([mask])


def numbers(tensor):
    return " ".join("%d" % v for v in np.asarray(tensor).ravel())


def salt_text(salt):
    return "-" if salt is None else ",".join(str(s) for s in salt)


def lookup(kind, source, tokens, inputs, oov=1, mask=None, method=None, salt=None, output="int", last=None):
    last = len(inputs) if last is None else last
    options = dict(num_oov_indices=oov, mask_token=mask, output_mode=output, salt=salt)
    vocabulary = tokens
    if source == "file":
        vocabulary = os.path.join(folder, "v%d" % len(os.listdir(folder)))
        with open(vocabulary, "wb") as out:
            out.write(b"".join((t if isinstance(t, bytes) else str(t).encode()) + b"\n" for t in tokens))
    if kind == "int64":
        layer = L.IntegerLookup(vocabulary=vocabulary, oov_method=method or "floormod", **options)
    else:
        layer = L.StringLookup(vocabulary=vocabulary, **options)
    line("lookup", kind, source, words(tokens), oov, mask_text(mask), method or "-", salt_text(salt), output, last,
         words(inputs), numbers(layer(tf.constant([inputs]))))


def hashing(kind, bins, inputs, mask=None, salt=None, output="int", last=None):
    last = len(inputs) if last is None else last
    layer = L.Hashing(bins, mask_value=mask, salt=salt, output_mode=output)
    tensor = tf.constant([inputs])
    if kind != "string":
        tensor = tf.cast(tensor, kind)
    line("hashing", kind, bins, mask_text(mask), salt_text(salt), output, last, words(inputs),
          numbers(layer(tensor)))


def vectorize(tokens, text, standardize="lower_and_strip_punctuation", split="whitespace", ngrams=None, output="int",
              length=None):
    layer = L.TextVectorization(vocabulary=tokens, standardize=standardize, split=split, ngrams=ngrams,
                                output_mode=output, output_sequence_length=length)
    tensor = tf.constant([text]) if split else tf.constant([[text]])
    line("vectorize", standardize or "none", split or "none",
          "-" if ngrams is None else ",".join(str(n) for n in (ngrams if isinstance(ngrams, tuple) else (ngrams,))) +
          ("," if isinstance(ngrams, tuple) else ""), output, length or 0, words([text]),
          numbers(layer(tensor)))


SOME = ["a", "b", "the", "é", "longer than sixteen bytes", "x" * 40, "y" * 66]
ASKED = SOME + ["", "q", "A", "the ", "x" * 39, "unknown", "other", "w" * 33]
for source in ("list", "file"):
    lookup("string", source, SOME, ASKED)
    lookup("string", source, SOME, ASKED, oov=5)
    lookup("string", source, SOME, ASKED, oov=7, mask="")
    lookup("string", source, SOME, ASKED, oov=3, mask="q", salt=[13, 99])
    lookup("string", source, SOME, SOME, oov=0)
    for output in ("one_hot", "multi_hot", "count"):
        lookup("string", source, SOME, ["a", "a", "", "the", "zz", "zz"], output=output)
        lookup("string", source, SOME, ["a", "a", "", "the", "zz", "zy"], output=output, oov=2, mask="")
        lookup("string", source, SOME, ["the"], output=output, mask="", last=0)
        lookup("string", source, SOME, ["nope"], output=output, last=1)
    ints = [12, -36, 0, 2**40, 7]
    asked = ints + [1, 2, 3, -1, -2, -3, 2**62, -2**62, 100]
    lookup("int64", source, ints, asked)
    lookup("int64", source, ints, asked, oov=4, mask=100)
    lookup("int64", source, ints, asked, oov=4, mask=-3, method="farmhash")
    lookup("int64", source, ints, asked, oov=6, method="farmhash", salt=[5, 6])
    lookup("int64", source, ints, ints, oov=0)
    lookup("int64", source, ints, [12, 12, 5, 100, 7], output="count", mask=100)
lookup("string", "file", [b"[UNK]", b"a", b" b "], ["a", "[UNK]", " b ", "b"])
lookup("string", "list", ["[UNK]", "a", "b"], ["a", "[UNK]", "b", "c"])
lookup("string", "list", ["", "[UNK]", "a", "b"], ["a", "[UNK]", "b", "", "c"], mask="")
lookup("string", "list", ["[UNK]", "[UNK]", "a", "b"], ["a", "[UNK]", "b", "", "c"], oov=2)
lookup("string", "list", ["[UNK]", "a", "b"], ["a", "[UNK]", "b", "", "c"], mask="")
lookup("int64", "list", [-1, 5, 6], [5, 6, -1, 7])
for salt in (None, [133, 133], [5, -7], [2**62, 1]):
    hashing("string", 1000003, [("ab" * n)[:n] for n in range(0, 35)] + ["x" * n for n in (63, 64, 65)] +
            ["y" * n for n in (127, 128, 129, 200)], salt=salt)
    hashing("int64", 997, [0, 1, -1, 10, 123456789, -2**63, 2**63 - 1], salt=salt)
hashing("int32", 10, [0, 7, -7, 2**31 - 1], mask=7)
hashing("uint8", 10, [0, 7, 255])
hashing("float32", 10, [1.0, 2.0, -3.0])
hashing("bool", 10, [0, 1])
hashing("string", 3, ["a", "b", "", "c"], mask="")
hashing("string", 1, ["a", ""], mask="")
for output in ("one_hot", "multi_hot", "count"):
    hashing("string", 5, ["a", "b", "a", ""], mask="", output=output)
    hashing("int64", 4, [3], output=output, last=0)
TOKENS = ["the", "ship", "line", "the ship", "is", "a", "b", " ", "é", "ship is", "the ship is", "a b", "ß", "�", "isnt",
          "isn't", "Ship", "."]
LINES = ["The ship is a line.", "", "   ", "the\tship\n is\r\x0b\x0c a", "isn't THE-SHIP (is) «a»!?", "É é ß ẞ", "a b c a b",
         "[UNK] the", b"a\xff\xc3b \xe2\x82x\xed\xa0\x80 \xf0\x9f\x98\x80", "a\x00b the", "#$%&*+,-./:;<=>?@[\\]^_`{|}~'\"",
         "the the the the the the the the the the"]
line("tokens", words(TOKENS))
for text in LINES:
    for standardize, split in itertools.product(("lower_and_strip_punctuation", "lower", "strip_punctuation", None),
                                                ("whitespace", "character", None)):
        vectorize(TOKENS, text, standardize, split)
    for ngrams in (2, 3, (2,), (3, 1)):
        vectorize(TOKENS, text, ngrams=ngrams)
    vectorize(TOKENS, text, split="character", ngrams=2)
    vectorize(TOKENS, text, length=4)
    vectorize(TOKENS, text, length=4, ngrams=2)
    vectorize(TOKENS, text, output="multi_hot")
    vectorize(TOKENS, text, output="count", ngrams=2)
for text in [" a  b\tc\n\x0bd\x0ce ", "", "   ", "a\u00a0b", "a\x00b", "a,,b,", ",", "a, b", "xaby", "aabb", "ababab"]:
    for separator in (None, ",", " ", "ab"):
        pieces = tf.strings.split(tf.constant([text]), sep=separator).values.numpy()
        line("split", "-" if separator is None else words([separator]), words([text]), words(list(pieces)))
