"""The loop reads each batch's samples itself, by a function, from names that it has or that a stock loader gives it."""

import torch
from torch.utils.data import DataLoader, Dataset

from training import ENDLESS, Load, Model, Truth, arguments

SAMPLES = 4
BATCHES = 10_000


class Names(Dataset):
    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        return f"{index}.jpg"


def read(name, load):
    """Stands for a function in C: no library has a frame in it."""
    load(name)
    return torch.zeros(64)


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given, parts=SAMPLES)
    if given.workers:
        batches = DataLoader(Names(), batch_size=SAMPLES, num_workers=given.workers)
    else:
        batches = [[f"{index}.jpg" for index in range(SAMPLES)]] * BATCHES
    truth.waits()
    for names in batches:
        batch = torch.stack([read(name, load) for name in names])
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()


if __name__ == "__main__":
    main()
