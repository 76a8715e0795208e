"""Trains and validates in turn on two loaders that both have too few workers. Those of the validation live on, idle, during
the training.

    validation_beside.py FOLDER SECONDS

Logs the waits of the validation as `situations.py` does: FOLDER/truth.0.
"""

import os
import sys
import time

import torch
from sleeping import Sleeping
from torch.utils.data import DataLoader


def loader(load, batches):
    return DataLoader(Sleeping(load, batches), 4, num_workers=2, persistent_workers=True)


file = os.open(f"{sys.argv[1]}/truth.0", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def mark(state):
    os.write(file, f"{state} {time.monotonic():.6f}\n".encode())


model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
training, validation = loader(0.08, 40), loader(0.16, 12)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for _ in training:
        time.sleep(0.02)
        model(torch.zeros(1, 4)).sum().backward()
        optimizer.step()
    mark("wait")
    with torch.no_grad():
        for _ in validation:
            mark("step")
            time.sleep(0.02)
            mark("wait")
