"""A training loop on a real GPU, which logs when the GPU worked: by CUDA events, on the clock of its other marks.

    on_a_gpu.py DIRECTORY SITUATION

For each step, it appends `busy FROM TO` to DIRECTORY/device as soon as the GPU is done with it: the copies and the kernels.
"""

import collections
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

from training import Truth, end_after

# Milliseconds of a load and of a step's kernels; the rest are options of the functions below.
SITUATIONS = {
    "synchronises": dict(load=30, step=20, item=True),
    "runs-ahead": dict(load=30, step=20),
    "pins": dict(load=80, step=20, workers=2, pin_memory=True),
    "decodes": dict(load=60, step=10, workers=2, item=True, cpu=True),
    "many-workers": dict(load=200, step=10, workers=12, item=True, cpu=True),
    "fed": dict(load=5, step=20, item=True),
    "fed-and-ahead": dict(load=15, step=20),
    "receives": dict(load=1, step=2, workers=2),
    "short-steps": dict(load=4, step=2),
    "launches": dict(load=3, small=3000, item=True),
    "copies": dict(load=1, step=2, workers=2, item=True, copied=256),
    "pageable": dict(load=5, step=4, workers=8, item=True, megabytes=256),
    "learns": dict(load=100, workers=2, pin_memory=True, layers=40, megabytes=8),
    "learns-and-fed": dict(load=2, workers=4, pin_memory=True, layers=40, megabytes=8),
}
GPU = torch.device("cuda")


class Samples(Dataset):
    def __init__(self, load=0, cpu=False, megabytes=1, **_):
        self.seconds, self.cpu, self.numbers = load / 1e3, cpu, megabytes << 18

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        torch.set_num_threads(1)
        until = time.monotonic() + self.seconds
        values = torch.rand(64, 64)
        while self.cpu and time.monotonic() < until:
            values = torch.tanh(values @ values)
        time.sleep(max(0.0, until - time.monotonic()))
        return torch.ones(self.numbers)


class Step:
    """A step of kernels for `step` milliseconds, or of small kernels, copies, or a network that learns."""

    def __init__(self, step=0, item=False, small=0, copied=0, layers=0, pin_memory=False, **_):
        self.item, self.small, self.ahead = item, small, pin_memory
        self.matrix = torch.randn(4096, 4096, device=GPU, dtype=torch.bfloat16)
        self.row = torch.ones(64, device=GPU)
        self.products = max(1, round(step / self.milliseconds_of_a_product())) if step else 0
        self.source = torch.empty(copied << 20, dtype=torch.uint8).pin_memory() if copied else None
        self.target = self.source.to(GPU) if copied else None
        width = 2048
        network = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU()) for _ in range(layers)]
        self.network = torch.nn.Sequential(*network).to(GPU) if layers else None
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-4) if layers else None

    def milliseconds_of_a_product(self, times=50):
        for _ in range(2):
            torch.cuda.synchronize()
            began = time.monotonic()
            for _ in range(times):
                torch.mm(self.matrix, self.matrix)
            torch.cuda.synchronize()
        return (time.monotonic() - began) / times * 1e3

    def __call__(self, batch):
        if self.source is not None:
            self.target.copy_(self.source, non_blocking=True)
        values = batch.to(GPU, non_blocking=self.ahead)
        loss = values[:64].sum()
        for _ in range(self.products):
            product = torch.mm(self.matrix, self.matrix)
            loss = loss + product[0, 0].float()
        for _ in range(self.small):
            self.row = self.row + 1.0
        if self.network is not None:
            loss = self.network(values[: 1024 * 2048].view(1024, 2048)).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        if self.item:
            loss.item()


class Device:
    """Logs the GPU's work, each piece once it is done."""

    def __init__(self, directory):
        self.file = os.open(os.path.join(directory, "device"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.pending = collections.deque()
        torch.cuda.synchronize()
        self.zero = self.mark()
        self.zero.synchronize()
        self.started = time.monotonic()

    @staticmethod
    def mark():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def time(self, event):
        return self.started + self.zero.elapsed_time(event) / 1e3

    def worked(self, begun):
        self.pending.append((begun, self.mark()))
        while self.pending and self.pending[0][1].query():
            begun, ended = map(self.time, self.pending.popleft())
            os.write(self.file, f"busy {begun:.6f} {ended:.6f}\n".encode())


def main():
    directory, situation = sys.argv[1:]
    end_after(120)
    options = SITUATIONS[situation]
    step = Step(**options)
    workers, pin_memory = options.get("workers", 1), options.get("pin_memory", False)
    loader = DataLoader(Samples(**options), batch_size=None, num_workers=workers, pin_memory=pin_memory)
    batches = iter(loader)
    device = Device(directory)
    given = type("Given", (), {"directory": directory})
    truth = Truth(given)
    while True:
        truth.waits()
        batch = next(batches)
        truth.steps()
        begun = device.mark()
        step(batch)
        device.worked(begun)
        del batch  # large ones take long to free


if __name__ == "__main__":
    main()
