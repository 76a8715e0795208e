"""A hand-written thread takes batches from a stock loader, one in advance, and hands them over by events.

The main thread holds the loader's iterator, but takes nothing from it.
"""

import threading

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


class OneAhead:
    def __init__(self, batches):
        self.batches, self.batch = batches, None
        self.full, self.empty = threading.Event(), threading.Event()
        self.empty.set()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for batch in self.batches:
            self.empty.wait()
            self.empty.clear()
            self.batch = batch
            self.full.set()

    def fetch(self):
        self.full.wait()
        self.full.clear()
        batch = self.batch
        self.empty.set()
        return batch


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    batches = iter(DataLoader(Samples(load), batch_size=1, num_workers=given.workers))
    ahead = OneAhead(batches)
    while True:
        truth.waits()
        batch = ahead.fetch()
        truth.steps()
        model.train_for_a_while(batch)


if __name__ == "__main__":
    main()
