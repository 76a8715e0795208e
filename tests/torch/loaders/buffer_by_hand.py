"""Hand-written threads that fill a hand-written buffer; with one thread, the buffer holds a single batch.

The main thread holds the generators over which the threads iterate.
"""

import collections
import threading

from training import ENDLESS, Load, Model, Truth, arguments


class Buffer:
    """A buffer for up to `room` batches."""

    def __init__(self, room):
        self.room, self.batches, self.changed = room, collections.deque(), threading.Condition()

    def put(self, batch):
        with self.changed:
            self.changed.wait_for(lambda: len(self.batches) < self.room)
            self.batches.append(batch)
            self.changed.notify_all()

    def get(self):
        with self.changed:
            self.changed.wait_for(lambda: self.batches)
            batch = self.batches.popleft()
            self.changed.notify_all()
            return batch


class Slot:
    """A buffer for one batch."""

    def __init__(self):
        self.full, self.empty, self.batch = threading.Semaphore(0), threading.Semaphore(1), None

    def put(self, batch):
        self.empty.acquire()
        self.batch = batch
        self.full.release()

    def take(self):
        self.full.acquire()
        batch = self.batch
        self.empty.release()
        return batch


def batches_of(load, first, workers):
    for index in range(first, ENDLESS, workers):
        yield load(index)


def produce(batches, put):
    for batch in batches:
        put(batch)


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    buffer = Buffer(2 * given.workers) if given.workers > 1 else Slot()
    for number in range(given.workers):
        batches = batches_of(load, number, given.workers)
        threading.Thread(target=produce, args=(batches, buffer.put), daemon=True).start()
    take = getattr(buffer, "get", None) or buffer.take
    while True:
        truth.waits()
        batch = take()
        truth.steps()
        model.train_for_a_while(batch)


if __name__ == "__main__":
    main()
