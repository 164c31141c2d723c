"""PyTorch: peer_torch.py mlp|cnn|lstm BATCH STEPS eager|compile. One JSON line. Adam by Keras's formula."""
import sys
import torch
from torch import nn
from peer_common import report, time_steps

model_name, batch, steps, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.manual_seed(0)
if model_name == "mlp":
    model, x, y = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 1)), torch.rand(batch, 100), torch.randint(0, 2, (batch, 1)).float()
    loss_of = nn.BCEWithLogitsLoss()
elif model_name == "lstm":
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.dense = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x):
            return self.dense(self.lstm(x)[0][:, -1])
    model, x, y = Classifier(), torch.rand(batch, 100, 64), torch.randint(0, 10, (batch,))
    loss_of = nn.CrossEntropyLoss()
else:
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, 10)).to(memory_format=torch.channels_last)
    x, y = torch.rand(batch, 3, 64, 64).to(memory_format=torch.channels_last), torch.randint(0, 10, (batch,))
    loss_of = nn.CrossEntropyLoss()
weights = list(model.parameters())
m, v, t = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights], 0


@torch.no_grad()
def adam():
    global t
    t += 1
    g = [w.grad for w in weights]
    a = 1e-3 * (1 - 0.999 ** t) ** 0.5 / (1 - 0.9 ** t)
    torch._foreach_lerp_(m, g, 0.1)
    torch._foreach_lerp_(v, torch._foreach_mul(g, g), 0.001)
    below = torch._foreach_sqrt(v)
    torch._foreach_add_(below, 1e-7)
    torch._foreach_addcdiv_(weights, m, below, -a)


def forward_backward():
    loss = loss_of(model(x), y)
    loss.backward()
    return loss


if mode == "compile":
    forward_backward = torch.compile(forward_backward)


def step():
    for w in weights:
        w.grad = None
    forward_backward()
    adam()


report("pytorch", torch.__version__, time_steps(step, steps))
