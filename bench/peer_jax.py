"""JAX: peer_jax.py mlp|cnn BATCH STEPS jit. One JSON line. Adam by Keras's formula."""
import json, os, sys
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from peer_common import report, time_steps

model, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)


def glorot(*shape):
    fan = np.prod(shape[:-2], dtype=int) * (shape[-2] + shape[-1])
    return jnp.asarray(rng.uniform(-1, 1, shape).astype(np.float32) * np.sqrt(6 / fan))


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def conv(x, k, b):
    return jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b)


def mlp(w, x):
    return jax.nn.relu(x @ w[0] + w[1]) @ w[2] + w[3]


def cnn(w, x):
    x = pool(conv(pool(conv(x, w[0], w[1])), w[2], w[3])).reshape(x.shape[0], -1)
    return jax.nn.relu(x @ w[4] + w[5]) @ w[6] + w[7]


def loss(w, x, y):
    if model == "mlp":
        z = mlp(w, x)[:, 0]
        return jnp.mean(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))
    z = jax.nn.log_softmax(cnn(w, x))
    return -jnp.mean(jnp.take_along_axis(z, y[:, None], 1))


@jax.jit
def step(w, m, v, t, x, y):
    value, g = jax.value_and_grad(loss)(w, x, y)
    a = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
    m = [m + (g - m) * 0.1 for m, g in zip(m, g)]
    v = [v + (g * g - v) * 0.001 for v, g in zip(v, g)]
    return [w - m * a / (jnp.sqrt(v) + 1e-7) for w, m, v in zip(w, m, v)], m, v, t + 1, value


zeros = lambda n: jnp.zeros(n, jnp.float32)
if model == "mlp":
    w, shape, y = [glorot(100, 64), zeros(64), glorot(64, 1), zeros(1)], (100,), rng.integers(0, 2, batch).astype(np.float32)
else:
    w = [glorot(3, 3, 3, 32), zeros(32), glorot(3, 3, 32, 64), zeros(64), glorot(12544, 128), zeros(128), glorot(128, 10), zeros(10)]
    shape, y = (64, 64, 3), rng.integers(0, 10, batch)
x, y = jnp.asarray(rng.random((batch, *shape), dtype=np.float32)), jnp.asarray(y)
state = [w, [jnp.zeros_like(p) for p in w], [jnp.zeros_like(p) for p in w], jnp.float32(1)]


def once():
    *state[:], value = step(*state, x, y)
    value.block_until_ready()


report("jax", jax.__version__, time_steps(once, steps))
