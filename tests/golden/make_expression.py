"""Makes expression.txt: expressions over a few columns as TensorFlow computes them.

python make_expression.py > expression.txt (needs tensorflow). Lines:
column NAME TYPE DIMS HEX          rows of the column, one after the other; strings as hex words with commas
value EXPRESSION <tab> TYPE DIMS ULPS HEX
DIMS is "-" for a scalar, else "2,3". ULPS: how far a float may be off (what libm computes)."""
import ast
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ROWS = 7
i = np.arange(ROWS)
COLUMNS = {
    "age": (i * 13 - 20).astype(np.int64),
    "id": (2**40 + i).astype(np.int64),
    "label": (i % 4).astype(np.int32),
    "price": (i * 1.37 - 2.2).astype(np.float32),
    "ratio": (i * 0.1 - 0.3).astype(np.float64),
    "half": (i * 0.3).astype(np.float16),
    "flagged": (i % 3 == 0),
    "pixel": (i * 40).astype(np.uint8),
    "x": np.sin(np.arange(ROWS * 5)).reshape(ROWS, 5).astype(np.float32),
    "m": (np.arange(ROWS * 6) * 0.25 - 3).reshape(ROWS, 2, 3).astype(np.float32),
    "v": (np.arange(ROWS * 3) * 2 - 11).reshape(ROWS, 3).astype(np.int64),
    "col": (np.arange(ROWS * 2) + 1).reshape(ROWS, 2, 1).astype(np.float32),
    "bad": np.array([1, np.nan, -np.inf, 0, np.inf, -0.0, 2], np.float32),
    "name": np.array([b"bob", b"alice", b"", b"bob ", b"bo", b"bob", b"\xc3\xa9"], object),
}
EXPRESSIONS = """
age
label
name
x[3]
x[-1] + m[1, 2]
m[0]
(age - 40) / 12
age * 2
x / 255
pixel / 255
pixel + 250
price * 0.1 + 1
ratio * 0.1 + 1
half * 3
ratio + price
age + price
-age
-price
age // 7
age % 7
age // -7
age % -7
price // 0.5
price % 0.7
age // 0
age % label
age ** 2
2 ** label
price ** 2
price ** 3
pow(x, 0.5)
-2 ** 2 + price
log1p(abs(price)) * (label == 2)
sqrt(abs(price))
exp(x)
log(abs(x) + 1)
sin(x) + cos(x) - tanh(x)
floor(price)
ceil(price)
round(price * 2.5)
round(age)
sign(price)
sign(age)
sign(bad)
abs(age)
isnan(bad)
isnan(age)
min(age, label)
max(bad, 0)
min(bad, price)
clip(x, 0, 1)
clip(age, label, 30)
where(age > 18, 1, 0)
where(flagged, price, ratio)
where(flagged, label == 1, true)
age > 18
age >= 6
id > 1099511627778.5
id == 1099511627779
price <= 1.91
flagged == true
label != 3 and not flagged
label == 3 or flagged and age < 0
not label == 3
name == 'bob'
name != "bob"
name == 'é'
len(name)
len(name) > 0
len(x)
len(m) * 10 + len(m[0])
sum(x)
mean(x)
max(x)
min(m)
sum(v)
mean(v)
max(v)
sum(x > 0)
mean(x > 0)
x - mean(x)
(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2))
x / sum(abs(x))
m + v
m * col
v + col
m - age
max(x) - min(x) + sum(m[1])
cast(price, 'int32')
cast(price * 100, 'uint8')
cast(age * 3, 'int8')
cast(bad, 'int64')
cast(price, 'float64') + 0.1
cast(price, 'float16')
cast(flagged, 'float32')
cast(price, 'bool')
cast(cast(age, 'uint8'), 'float32')
cast(label, 'int64')
cast(half, 'float32')
cast(pixel, 'float32') / 3 + pixel
cast(label, 'int8') + label / 2
cast(pixel, 'float32')
cast(cast(pixel, 'int8'), 'float32')
1 / 3 * ratio
sqrt(2) * ratio
1 + 2
1.5
true
price*price+price*price*price
age - -3
+age
""".strip().split("\n")
TF_UNARY = {"sqrt": tf.sqrt, "exp": tf.exp, "log": tf.math.log, "log1p": tf.math.log1p, "sin": tf.sin, "cos": tf.cos,
            "tanh": tf.tanh}
ORDER = [tf.bool, tf.int64, tf.float32, tf.float64]


class Value:
    """A tensor with a row axis, or a number of the text (weak: it does not widen)."""

    def __init__(self, tensor, weak=False):
        self.tensor, self.weak = tensor, weak

    @property
    def lane(self):
        t = self.tensor.dtype
        if t in (tf.float16, tf.bfloat16):
            return tf.float32
        return tf.int64 if t.is_integer else t

    def to(self, dtype):
        return tf.cast(self.tensor, dtype)


def common(values, floating=False, least=tf.bool):
    strong = [ORDER.index(v.lane) for v in values if not v.weak]
    weak = any(v.weak for v in values)
    at = max(strong + [ORDER.index(least)])
    constant = all(v.tensor.shape.rank == 0 for v in values)
    if (weak or floating) and at < 2:
        at = 3 if constant else 2
    return ORDER[at], constant


def align(tensors):
    """Row-wise broadcasting: put axes of length 1 behind the row axis."""
    rank = max(t.shape.rank for t in tensors)
    out = []
    for t in tensors:
        while 0 < t.shape.rank < rank:
            t = tf.expand_dims(t, 1)
        out.append(t)
    return out


def apply(function, values, lane, weak=False):
    return Value(function(*align([v.to(lane) for v in values])), weak)


def arithmetic(function, values, floating=False):
    lane, constant = common(values, floating, tf.int64)
    return apply(function, values, lane, constant and lane == tf.float64)


def floor_divide(a, b):
    if a.dtype == tf.int64:
        return tf.where(b == 0, tf.zeros_like(a * b), tf.math.floordiv(a, tf.where(b == 0, tf.ones_like(b), b)))
    return tf.math.floordiv(a, b)


def modulo(a, b):
    if a.dtype == tf.int64:
        return tf.where(b == 0, tf.zeros_like(a * b), tf.math.floormod(a, tf.where(b == 0, tf.ones_like(b), b)))
    return tf.math.floormod(a, b)


def power(values):
    a, b = values
    if a.lane in (tf.bool, tf.int64) and b.lane == tf.int64 and b.tensor.shape.rank == 0:
        return apply(tf.pow, values, tf.int64)
    return arithmetic(tf.pow, values, True)


def compare(function, values):
    if values[0].tensor.dtype == tf.string:
        return Value(function(*align([v.tensor for v in values])))
    lane, _ = common(values)
    if lane == tf.float32 and any(v.lane == tf.int64 for v in values):
        lane = tf.float64
    if lane == tf.bool:
        lane = tf.int64
    return apply(function, values, lane)


def reduce(name, v):
    axes = list(range(1, v.tensor.shape.rank))
    if name == "mean":
        return Value(tf.cast(tf.reduce_mean(tf.cast(v.tensor, tf.float64), axes),
                             tf.float64 if v.lane == tf.float64 else tf.float32))
    if name == "sum":
        lane = tf.int64 if v.lane in (tf.bool, tf.int64) else tf.float64
        out = tf.reduce_sum(tf.cast(v.tensor, lane), axes)
        return Value(tf.cast(out, tf.float32) if v.lane == tf.float32 else out)
    return Value({"max": tf.reduce_max, "min": tf.reduce_min}[name](v.to(v.lane), axes))


def cast(v, name):
    dtype = tf.as_dtype(name)
    x = v.tensor
    if x.dtype.is_floating and dtype.is_integer:
        low, high = int(dtype.min), int(dtype.max)
        real = np.where(np.isnan(x.numpy()), 0, np.trunc(x.numpy().astype(np.float64)))
        return Value(tf.constant(np.array([max(low, min(high, int(e))) if np.isfinite(e) else (low, high)[int(e > 0)]
                                           for e in real.ravel()], dtype.as_numpy_dtype).reshape(real.shape)))
    return Value(tf.constant(x.numpy().astype(dtype.as_numpy_dtype)))


def call(name, v):
    if name in TF_UNARY:
        return arithmetic(TF_UNARY[name], v, True)
    if name == "pow":
        return power(v)
    if name in ("max", "min", "sum", "mean") and len(v) == 1:
        return reduce(name, v[0])
    if name in ("max", "min"):
        return arithmetic({"max": tf.maximum, "min": tf.minimum}[name], v)
    if name == "clip":
        return arithmetic(lambda x, low, high: tf.minimum(tf.maximum(x, low), high), v)
    if name == "where":
        lane, _ = common(v[1:])
        return Value(tf.where(*align([v[0].tensor, v[1].to(lane), v[2].to(lane)])))
    if name in ("floor", "ceil", "round"):
        f = {"floor": tf.floor, "ceil": tf.math.ceil, "round": tf.round}[name]
        return v[0] if v[0].lane == tf.int64 else arithmetic(f, v)
    if name == "isnan":
        return Value(tf.math.is_nan(v[0].tensor)) if v[0].tensor.dtype.is_floating else compare(tf.not_equal, v * 2)
    if name == "len":
        t = v[0].tensor
        if t.dtype == tf.string:
            return Value(tf.cast(tf.strings.length(t), tf.int64))
        return Value(tf.constant(t.shape[1], tf.int64))
    return arithmetic({"abs": tf.abs, "sign": tf.sign}[name], v)


BINARY = {ast.Add: tf.add, ast.Sub: tf.subtract, ast.Mult: tf.multiply, ast.FloorDiv: floor_divide, ast.Mod: modulo}
COMPARE = {ast.Eq: tf.equal, ast.NotEq: tf.not_equal, ast.Lt: tf.less, ast.LtE: tf.less_equal, ast.Gt: tf.greater,
           ast.GtE: tf.greater_equal}


def evaluate(node):
    if isinstance(node, ast.Expression):
        return evaluate(node.body)
    if isinstance(node, ast.Name):
        return Value(tf.constant(node.id == "true") if node.id in ("true", "false") else
                     tf.constant(COLUMNS[node.id]))
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return Value(tf.constant(node.value.encode()))
        if isinstance(node.value, float):
            return Value(tf.constant(node.value, tf.float64), True)
        return Value(tf.constant(node.value, tf.int64))
    if isinstance(node, ast.Subscript):
        index = ast.literal_eval(node.slice)
        return Value(evaluate(node.value).tensor[(slice(None),) + (index if isinstance(index, tuple) else (index,))])
    if isinstance(node, ast.UnaryOp):
        v = evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(tf.logical_not(v.tensor))
        return v if isinstance(node.op, ast.UAdd) else arithmetic(tf.negative, [v])
    if isinstance(node, ast.BinOp):
        values = [evaluate(node.left), evaluate(node.right)]
        if isinstance(node.op, ast.Pow):
            return power(values)
        if isinstance(node.op, ast.Div):
            return arithmetic(tf.divide, values, True)
        return arithmetic(BINARY[type(node.op)], values)
    if isinstance(node, ast.Compare):
        return compare(COMPARE[type(node.ops[0])], [evaluate(node.left), evaluate(node.comparators[0])])
    if isinstance(node, ast.BoolOp):
        values = [evaluate(v).tensor for v in node.values]
        out = values[0]
        for v in values[1:]:
            out = (tf.logical_and if isinstance(node.op, ast.And) else tf.logical_or)(*align([out, v]))
        return Value(out)
    if isinstance(node, ast.Call):
        if node.func.id == "cast":
            return cast(evaluate(node.args[0]), node.args[1].value)
        return call(node.func.id, [evaluate(a) for a in node.args])
    raise TypeError(ast.dump(node))


def hex_of(array):
    if array.dtype == object:
        return ",".join(s.hex() for s in array.ravel()) + ","
    return array.tobytes().hex()


def dims(shape):
    return ",".join(str(d) for d in shape) or "-"


for name, array in COLUMNS.items():
    print("column", name, "string" if array.dtype == object else array.dtype, dims(array.shape[1:]), hex_of(array))
for text in EXPRESSIONS:
    value = evaluate(ast.parse(text, mode="eval"))
    array = value.tensor.numpy()
    if value.weak:
        array = array.astype(np.float32)
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        array = np.full(ROWS, array)
    loose = any(w in text for w in ("exp", "log", "sin", "pow", "**", "tanh"))
    print(f"value {text}\t{'string' if array.dtype == object else array.dtype} {dims(array.shape[1:])} "
          f"{4 if loose else 0} {hex_of(array)}")
