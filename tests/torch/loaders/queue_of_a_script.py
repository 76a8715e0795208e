"""Threads that fill a `queue.Queue`, and a loop outside of any function: all names are those of the script's module."""

import queue
import threading

from training import ENDLESS, Load, Model, Truth, arguments

given = arguments()
model, truth, load = Model(given.step), Truth(given), Load(given)
ready = queue.Queue(maxsize=2 * given.workers)


def produce(first):
    for index in range(first, ENDLESS, given.workers):
        ready.put(load(index))


for number in range(given.workers):
    threading.Thread(target=produce, args=(number,), daemon=True).start()
while True:
    truth.waits()
    batch = ready.get()
    truth.steps()
    model.train_step(batch)
