"""torch's DataLoader: peer_data_torch.py npy FILE SECONDS. One JSON line."""
import sys, time
import numpy as np, torch
from torch import nn
from peer_common import FIRST_STEPS, report

BATCH, WIDTH = 32, 100


class Table(torch.utils.data.Dataset):
    def __init__(self, path):
        self.table = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        row = torch.from_numpy(self.table[i].copy())
        return row[:WIDTH], row[WIDTH:]


def npy(path, seconds):
    model, loss_of = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 1)), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()
    begin, count, first = time.perf_counter(), 0, None
    for x, y in torch.utils.data.DataLoader(Table(path), batch_size=BATCH, shuffle=True):
        step(x, y)
        count += len(x)
        if count == FIRST_STEPS * BATCH:
            first = time.perf_counter()
        elif first and time.perf_counter() - first > seconds:
            break
    steady = (time.perf_counter() - first) / (count - FIRST_STEPS * BATCH)
    report("pytorch", torch.__version__, [steady], elements=count, start_seconds=(first - begin) / (FIRST_STEPS * BATCH))


npy(sys.argv[2], float(sys.argv[3]))
