"""PyTorch: peer_models_torch.py MODEL BATCH STEPS eager|compile [bf16]. One JSON line. Pictures are channels_last, Adam is fused."""
import sys
import torch
import torch.nn.functional as F
from torch import nn
from peer_common import report, time_steps

name, batch, steps, mode, low = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], len(sys.argv) > 5
torch.manual_seed(0)
CLASSES = 10


def conv(into, out, size, stride=1, padding=0, groups=1, bias=False):
    return nn.Conv2d(into, out, size, stride, padding, groups=groups, bias=bias)


class Residual(nn.Module):
    """short(x) + body(x), then `last`."""
    def __init__(self, body, short=None, last=None):
        super().__init__()
        self.body, self.short, self.last = nn.Sequential(*body), short or nn.Identity(), last or nn.Identity()

    def forward(self, x):
        return self.last(self.short(x) + self.body(x))


def mobilenet_v2():
    layers, before = [conv(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU6()], 32
    for times, filters, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(repeats):
            step, wide = stride if k == 0 else 1, times * before
            body = [conv(before, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6()] if times > 1 else []
            body += [conv(wide, wide, 3, step, 1, wide), nn.BatchNorm2d(wide), nn.ReLU6(), conv(wide, filters, 1), nn.BatchNorm2d(filters)]
            layers += [Residual(body)] if step == 1 and before == filters else body
            before = filters
    return nn.Sequential(*layers, conv(320, 1280, 1), nn.BatchNorm2d(1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, CLASSES))


def resnet50():
    layers, before = [conv(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (filters, repeats) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for k in range(repeats):
            step = 2 if stage and k == 0 else 1
            body = [conv(before, filters, 1, step), nn.BatchNorm2d(filters), nn.ReLU(), conv(filters, filters, 3, 1, 1), nn.BatchNorm2d(filters),
                    nn.ReLU(), conv(filters, 4 * filters, 1), nn.BatchNorm2d(4 * filters)]
            short = nn.Sequential(conv(before, 4 * filters, 1, step), nn.BatchNorm2d(4 * filters)) if k == 0 else None
            layers.append(Residual(body, short, nn.ReLU()))
            before = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def mlp():
    return nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 1))


class lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, CLASSES)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class unet(nn.Module):
    def __init__(self, least=32):
        super().__init__()

        def twice(into, out):
            return nn.Sequential(conv(into, out, 3, 1, 1, bias=True), nn.ReLU(), conv(out, out, 3, 1, 1, bias=True), nn.ReLU())
        wide = [least << k for k in range(5)]
        self.down = nn.ModuleList(twice(a, b) for a, b in zip([3] + wide[:3], wide[:4]))
        self.middle = twice(wide[3], wide[4])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in wide[3::-1])
        self.joined = nn.ModuleList(twice(2 * w, w) for w in wide[3::-1])
        self.head = conv(least, 2, 1, bias=True)

    def forward(self, x):
        kept = []
        for part in self.down:
            kept.append(part(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.middle(x)
        for up, joined in zip(self.up, self.joined):
            x = joined(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(d, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class gpt2(nn.Module):
    WORDS, LENGTH = 50257, 1024

    def __init__(self, blocks=12, width=768, heads=12):
        super().__init__()
        self.words, self.places = nn.Embedding(self.WORDS, width), nn.Embedding(self.LENGTH, width)
        self.blocks, self.norm = nn.Sequential(*(Block(width, heads) for _ in range(blocks))), nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.blocks(self.words(tokens) + self.places(torch.arange(self.LENGTH)))
        return (self.norm(x) @ self.words.weight.T).flatten(0, 1)


model = globals()[name]()
size = {"cnn": 64, "unet": 128, "mobilenet_v2": 224, "resnet50": 224}.get(name)
loss_of = F.binary_cross_entropy_with_logits if name == "mlp" else F.cross_entropy
if size:
    model, x = model.to(memory_format=torch.channels_last), torch.rand(batch, 3, size, size).to(memory_format=torch.channels_last)
else:
    x = {"mlp": lambda: torch.rand(batch, 100), "lstm": lambda: torch.rand(batch, 100, 64), "gpt2": lambda: torch.randint(0, gpt2.WORDS, (batch, gpt2.LENGTH))}[name]()
y = {"mlp": lambda: torch.randint(0, 2, (batch, 1)).float(), "unet": lambda: torch.randint(0, 2, (batch, size, size)),
     "gpt2": lambda: torch.randint(0, gpt2.WORDS, (batch * gpt2.LENGTH,))}.get(name, lambda: torch.randint(0, CLASSES, (batch,)))()
optimizer = (torch.optim.AdamW if name == "gpt2" else torch.optim.Adam)(model.parameters(), fused=True)


def forward_backward():
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
        loss = loss_of(model(x), y)
    loss.backward()


if mode == "compile":
    forward_backward = torch.compile(forward_backward)


def step():
    optimizer.zero_grad(set_to_none=True)
    forward_backward()
    optimizer.step()


report("pytorch", torch.__version__, time_steps(step, steps, 2), parameters=sum(p.numel() for p in model.parameters()))
