"""A stock loader whose batches the main thread puts into a queue, for the thread that trains."""

import queue
import threading

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def train(given, batches):
    model, truth = Model(given.step), Truth(given)
    while True:
        truth.waits()
        batch = batches.get()
        truth.steps()
        model.train_throughout(batch)


def main():
    given = arguments()
    batches = queue.Queue(maxsize=2)
    threading.Thread(target=train, args=(given, batches), daemon=True).start()
    for batch in DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers):
        batches.put(batch)


if __name__ == "__main__":
    main()
