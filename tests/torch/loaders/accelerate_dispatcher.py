"""Accelerate's dispatcher: rank 0 reads for both ranks."""

import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from training import ENDLESS, Load, Model, Truth, arguments


class Samples(IterableDataset):
    def __init__(self, load):
        self.load = load

    def __iter__(self):
        for index in range(get_worker_info().id, ENDLESS):
            self.load(index)
            yield torch.ones(64)


def main():
    given = arguments()
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    model, truth = Model(given.step), Truth(given, int(os.environ["RANK"]))
    model.layers, model.optimizer, loader = accelerator.prepare(model.layers, model.optimizer, loader)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
