"""Batches from one queue. Another thread does the steps, and hands over their results through a second queue."""

import queue
import threading

from queue_threads import produce
from training import Load, Model, Truth, arguments


def run(steps, results, model):
    while True:
        results.put(model.train_step(steps.get()))


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    ready = queue.Queue(maxsize=2 * given.workers)
    steps, results = queue.Queue(), queue.Queue()
    threading.Thread(target=run, args=(steps, results, model), daemon=True).start()
    for number in range(given.workers):
        threading.Thread(target=produce, args=(load, ready, number, given.workers), daemon=True).start()
    while True:
        truth.waits()
        batch = ready.get()
        truth.steps()
        steps.put(batch)
        results.get()


if __name__ == "__main__":
    main()
