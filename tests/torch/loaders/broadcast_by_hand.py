"""Rank 0 reads, and a generator in the script broadcasts its batches to the other rank."""

import os

import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset

from training import ENDLESS, Load, Model, Truth, arguments


class Samples(Dataset):
    def __init__(self, load):
        self.load = load

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        self.load(index)
        return torch.ones(64)


def batches(given, rank, truth):
    """Rank 0 has its batch before it sends it: after that it waits for the other rank, which may be late, and not for data."""
    loader = iter(DataLoader(Samples(Load(given)), num_workers=given.workers)) if rank == 0 else None
    while True:
        if rank == 0:
            batch = next(loader)
            truth.steps()
            distributed.broadcast(batch, 0)
        else:
            batch = torch.empty(1, 64)
            distributed.broadcast(batch, 0)
            truth.steps()
        yield batch


def main():
    given, rank = arguments(), int(os.environ["RANK"])
    distributed.init_process_group("gloo")
    model, truth = Model(given.step), Truth(given, rank)
    model.layers = torch.nn.parallel.DistributedDataParallel(model.layers)
    truth.waits()
    for batch in batches(given, rank, truth):
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
