"""compare_torch.py PLIM: the MLP and the CNN from the same weights on the same data in plim and in PyTorch.

One step of SGD with learning rate 1 shows the gradients; then steps of Adam by Keras's formula: of the MLP in one go, of the CNN each from where plim
stands. Of a million pooled cells one or another is all but tied: weights that differ by a rounding choose another, and from there on both are right and
1e-3 apart. Layouts differ: dense kernels are (in, out) here and
(out, in) there, convolutions HWIO and OIHW, and flattening goes over NHWC."""
import sys
import numpy as np, torch
import torch.nn.functional as F
from plim_side import check, error, finish, run_plim

plim = sys.argv[1]
rng = np.random.default_rng(0)


def glorot(*shape):
    fan = np.prod(shape[:-2], dtype=int) * (shape[-2] + shape[-1])
    return (rng.uniform(-1, 1, shape) * np.sqrt(6 / fan)).astype(np.float32)


def mlp(w, x):
    return F.relu(x @ w["dense/kernel"] + w["dense/bias"]) @ w["dense_1/kernel"] + w["dense_1/bias"]


def cnn(w, x):
    x = x.permute(0, 3, 1, 2)
    for name in ("conv2d", "conv2d_1"):
        x = F.max_pool2d(F.relu(F.conv2d(x, w[name + "/kernel"].permute(3, 2, 0, 1), w[name + "/bias"])), 2)
    return mlp(w, x.permute(0, 2, 3, 1).flatten(1))


def train(forward, loss_of, weights, x, y, batch, steps, adam_rate, stands=None):
    """Losses and weights. stands: those before each step; then the weights are a list, of those after each."""
    w = {k: torch.tensor(v, requires_grad=True) for k, v in weights.items()}
    m, v = {k: torch.zeros_like(p) for k, p in w.items()}, {k: torch.zeros_like(p) for k, p in w.items()}
    losses, after = [], []
    for t in range(1, steps + 1):
        if stands:
            with torch.no_grad():
                for k, p in w.items():
                    p.copy_(torch.tensor(stands[t - 1][k]))
        rows = np.arange((t - 1) * batch, t * batch) % len(x)
        loss = loss_of(forward(w, torch.tensor(x[rows])), torch.tensor(y[rows]))
        losses.append(loss.item())
        grads = torch.autograd.grad(loss, list(w.values()))
        with torch.no_grad():
            for (k, p), g in zip(w.items(), grads):
                if adam_rate is None:
                    p -= g
                    continue
                m[k] += (g - m[k]) * 0.1
                v[k] += (g * g - v[k]) * 0.001
                p -= m[k] * (adam_rate * (1 - 0.999 ** t) ** 0.5 / (1 - 0.9 ** t)) / (v[k].sqrt() + 1e-7)
        after.append({k: p.detach().numpy().copy() for k, p in w.items()})
    return losses, after if stands else after[-1]


def compare(what, forward, loss_of, words, weights, x, y, loss, steps, bar, adam_rate):
    optimizer = {"sgd": {"learning_rate": 1.0}} if adam_rate is None else {"adam": {"learning_rate": adam_rate}}
    ours = run_plim(plim, weights, words, x, y, optimizer, loss, 32, steps)
    if ours is None:
        return check(f"{what}: plim runs", np.inf, 0)
    losses, theirs = train(forward, loss_of, weights, x, y, 32, steps, adam_rate)
    check(f"PyTorch, {what}: loss of {steps} step(s)", error(ours[0], losses), bar)
    for k, before in weights.items():
        a, b = (before - ours[2][k], before - theirs[k]) if adam_rate is None else (ours[2][k], theirs[k])
        check(f"PyTorch, {what}: {k}", error(a, b), bar)


def compare_steps(what, forward, loss_of, words, weights, x, y, loss, steps, bar, adam_rate):
    """Each step of Adam from plim's weights before it; its moments are PyTorch's own."""
    runs = [run_plim(plim, weights, words, x, y, {"adam": {"learning_rate": adam_rate}}, loss, 32, t) for t in range(1, steps + 1)]
    if None in runs:
        return check(f"{what}: plim runs", np.inf, 0)
    losses, theirs = train(forward, loss_of, weights, x, y, 32, steps, adam_rate, [weights] + [r[2] for r in runs[:-1]])
    check(f"PyTorch, {what}: loss of {steps} step(s)", error(runs[-1][0], losses), bar)
    for k in weights:
        check(f"PyTorch, {what}: {k}", max(error(r[2][k], b[k]) for r, b in zip(runs, theirs)), bar)


def dense(units, activation):
    return {"Dense": {"units": units, "activation": activation}}


def conv(filters):
    return {"Conv2D": {"filters": filters, "kernel_size": 3, "activation": "relu"}}


zeros = lambda n: np.zeros(n, np.float32)
weights = {"dense/kernel": glorot(100, 64), "dense/bias": zeros(64), "dense_1/kernel": glorot(64, 1), "dense_1/bias": zeros(1)}
x, y = rng.random((640, 100), dtype=np.float32), rng.integers(0, 2, 640).astype(np.float32)
arguments = mlp, lambda z, t: F.binary_cross_entropy_with_logits(z[:, 0], t), [dense(64, "relu"), dense(1, "sigmoid")], weights, x, y, "binary_crossentropy"
compare("MLP, first step", *arguments, 1, 1e-5, None)
compare("MLP, Adam", *arguments, 50, 1e-4, 1e-3)

weights = {"conv2d/kernel": glorot(3, 3, 3, 32), "conv2d/bias": zeros(32), "conv2d_1/kernel": glorot(3, 3, 32, 64), "conv2d_1/bias": zeros(64),
           "dense/kernel": glorot(12544, 128), "dense/bias": zeros(128), "dense_1/kernel": glorot(128, 10), "dense_1/bias": zeros(10)}
x, y = rng.random((160, 64, 64, 3), dtype=np.float32), rng.integers(0, 10, 160)
words = [conv(32), {"MaxPooling2D": 2}, conv(64), {"MaxPooling2D": 2}, "Flatten", dense(128, "relu"), dense(10, "softmax")]
arguments = cnn, F.cross_entropy, words, weights, x, y, "sparse_categorical_crossentropy"
compare("CNN, first step", *arguments, 1, 1e-5, None)
compare_steps("CNN, Adam", *arguments, 5, 1e-4, 1e-4)
sys.exit(finish())
