"""Hand-written threads that fill a `queue.Queue`, from which the dataset of a stock loader without workers takes."""

import queue
import threading

from torch.utils.data import DataLoader, IterableDataset

from queue_threads import produce
from training import Load, Model, Truth, arguments


class FromQueue(IterableDataset):
    def __init__(self, given):
        self.given = given

    def __iter__(self):
        load, workers = Load(self.given), self.given.workers
        ready = queue.Queue(maxsize=2 * workers)
        for number in range(workers):
            threading.Thread(target=produce, args=(load, ready, number, workers), daemon=True).start()
        while True:
            yield ready.get()


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = DataLoader(FromQueue(given), batch_size=None)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
