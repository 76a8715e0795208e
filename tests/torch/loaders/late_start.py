"""Torch's loader, after some seconds of preparation, such as a search for files or the making of a model."""

import time

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def prepare():
    until = time.monotonic() + 5
    while time.monotonic() < until:
        sum(range(10_000))
        time.sleep(0.001)


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    prepare()
    loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
