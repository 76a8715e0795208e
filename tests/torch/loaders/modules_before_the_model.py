"""A stock loader. In the main thread, a generator around it transforms each batch by modules of the script's own."""

import torch
from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments, augment


class Augmentation(torch.nn.Module):
    def __init__(self, load):
        super().__init__()
        self.load = load

    def forward(self, batch):
        augment(self.load.seconds())
        return batch


def augmented(loader, augmentation):
    for batch in loader:
        yield augmentation(batch)


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = DataLoader(Samples(lambda index: index), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in augmented(loader, Augmentation(Load(given))):
        truth.steps()
        model.train_throughout(batch)
        truth.waits()


if __name__ == "__main__":
    main()
