"""Hand-written threads that fill a `queue.Queue`."""

import queue
import threading

from training import ENDLESS, Load, Model, Truth, arguments


def produce(load, ready, first, workers):
    for index in range(first, ENDLESS, workers):
        ready.put(load(index))


def filled(given):
    """A queue that threads fill."""
    load, ready = Load(given), queue.Queue(maxsize=2 * given.workers)
    for number in range(given.workers):
        threading.Thread(target=produce, args=(load, ready, number, given.workers), daemon=True).start()
    return ready


def main():
    given = arguments()
    model, truth, ready = Model(given.step), Truth(given), filled(given)
    while True:
        truth.waits()
        batch = ready.get()
        truth.steps()
        model.train_step(batch)


if __name__ == "__main__":
    main()
