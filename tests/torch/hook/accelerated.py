"""A training loop of Accelerate's own kind, for `accelerate launch`. Prints, as JSON, what it did and how
long it loaded."""

import json
import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    began = None
    seconds = 0.0

    def __len__(self):
        return 80

    def __getitem__(self, index):
        Points.began = Points.began or time.perf_counter()
        time.sleep(0.001)
        return torch.full((4,), float(index))


def collate(points):
    batch = torch.stack(points)
    Points.seconds += time.perf_counter() - Points.began
    Points.began = None
    return batch


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(Points(), 4, shuffle=True, collate_fn=collate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    batches = 0
    for _ in range(2):
        for batch in loader:
            batches += 1
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).square().mean())
                optimizer.step()
                optimizer.zero_grad()
    print(json.dumps({"pid": os.getpid(), "batches": batches, "seconds": Points.seconds}))


if __name__ == "__main__":
    main()
