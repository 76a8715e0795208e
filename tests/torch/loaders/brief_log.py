"""A stock loader that keeps up, and a log that takes little of each step, but computes during that time."""

import logging
import os

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments, augment

LOG = logging.getLogger("training")


class Formatter(logging.Formatter):
    def format(self, record):
        augment(0.0025)
        return super().format(record)


def main():
    given = arguments()
    handler = logging.StreamHandler(open(os.devnull, "w"))
    handler.setFormatter(Formatter())
    LOG.addHandler(handler)
    model, truth = Model(given.step), Truth(given)
    loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        LOG.warning("loss")
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
