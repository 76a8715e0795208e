"""A stock loader; the training function runs in a thread, and the main thread waits for its end, as under Ray Train."""

import threading

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def train(given, truth):
    model = Model(given.step)
    loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


def main():
    given = arguments()
    trainer = threading.Thread(target=train, args=(given, Truth(given)))
    trainer.start()
    trainer.join()


if __name__ == "__main__":
    main()
