"""A thread hands batches over by a condition of the script; a queue of figures is always full and is read in each step."""

import queue
import threading

from training import ENDLESS, Load, Model, Truth, arguments


class Box:
    """Holds one batch."""

    def __init__(self):
        self.changes = threading.Condition()
        self.batch = None

    def give(self, batch):
        with self.changes:
            while self.batch is not None:
                self.changes.wait()
            self.batch = batch
            self.changes.notify_all()

    def take(self):
        with self.changes:
            while self.batch is None:
                self.changes.wait()
            batch, self.batch = self.batch, None
            self.changes.notify_all()
            return batch


def produce(load, box):
    for index in range(ENDLESS):
        box.give(load(index))


def measure(figures):
    for second in range(ENDLESS):
        figures.put({"second": second})


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given, parts=given.workers)
    box, figures = Box(), queue.Queue(8)
    threading.Thread(target=produce, args=(load, box), daemon=True).start()
    threading.Thread(target=measure, args=(figures,), daemon=True).start()
    while True:
        truth.waits()
        batch = box.take()
        truth.steps()
        seen = figures.get()
        model.train_for_a_while(batch)
        del seen


if __name__ == "__main__":
    main()
