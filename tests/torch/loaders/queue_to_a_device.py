"""The queue of `queue_threads` behind an iterator, and a loop that keeps no batch: it copies each to its device at once."""

from queue_threads import filled
from training import Model, Truth, arguments


class Batches:
    def __init__(self, ready, truth):
        self.ready, self.truth = ready, truth

    def __iter__(self):
        return self

    def __next__(self):
        self.truth.waits()
        batch = self.ready.get()
        self.truth.steps()
        return batch


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    for batch in Batches(filled(given), truth):
        batch = str(batch)
        model.train_step(batch)


if __name__ == "__main__":
    main()
