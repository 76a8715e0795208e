"""Hand-written threads that fill a `queue.Queue`."""

import queue
import threading

from training import ENDLESS, Load, Model, Truth, arguments


def produce(load, ready, first, workers):
    for index in range(first, ENDLESS, workers):
        ready.put(load(index))


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    ready = queue.Queue(maxsize=2 * given.workers)
    for number in range(given.workers):
        threading.Thread(target=produce, args=(load, ready, number, given.workers), daemon=True).start()
    while True:
        truth.waits()
        batch = ready.get()
        truth.steps()
        model.train_step(batch)


if __name__ == "__main__":
    main()
