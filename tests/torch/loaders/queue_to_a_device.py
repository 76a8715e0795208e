"""Threads that fill a `queue.Queue` behind an iterator, and a loop that keeps no batch: it copies each to its device at once."""

import queue
import threading

from training import ENDLESS, Load, Model, Truth, arguments


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


def produce(load, ready, first, workers):
    for index in range(first, ENDLESS, workers):
        ready.put((load(index), [index]))


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    ready = queue.Queue(maxsize=2 * given.workers)
    for number in range(given.workers):
        threading.Thread(target=produce, args=(load, ready, number, given.workers), daemon=True).start()
    for images, labels in Batches(ready, truth):
        images, labels = float(images), len(labels)
        model.train_step(images)


if __name__ == "__main__":
    main()
