"""A stock loader in a process that has given itself another title."""

import setproctitle
from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    setproctitle.setproctitle("resnet50 fold 3: epoch 7")
    model, truth = Model(given.step), Truth(given)
    loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
