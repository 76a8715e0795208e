"""Hand-written threads that fill a queue whose `get` is written in C."""

import queue
import threading

from training import ENDLESS, Load, Model, Truth, arguments


def produce(load, batches, room, first, workers):
    for index in range(first, ENDLESS, workers):
        room.acquire()
        batches.put(load(index))


def main():
    given = arguments()
    load, batches, room = Load(given), queue.SimpleQueue(), threading.Semaphore(2 * given.workers)
    for number in range(given.workers):
        threading.Thread(target=produce, args=(load, batches, room, number, given.workers), daemon=True).start()
    model, truth = Model(given.step), Truth(given)
    while True:
        truth.waits()
        batch = batches.get()
        truth.steps()
        room.release()
        model.train_for_a_while(batch)


if __name__ == "__main__":
    main()
