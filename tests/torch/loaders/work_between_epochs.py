"""A script that prepares each epoch's data itself, and then makes a loader that keeps up."""

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments, augment

BATCHES = 40


class Epoch(Samples):
    def __init__(self, prepare, load):
        super().__init__(load)
        augment(prepare.seconds())

    def __len__(self):
        return BATCHES


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    prepare, load = Load(given), Load(given, 0.005)
    while True:
        truth.waits()
        for batch in DataLoader(Epoch(prepare, load), batch_size=1, num_workers=given.workers):
            truth.steps()
            model.train_step(batch)
            truth.waits()


if __name__ == "__main__":
    main()
