"""Hand-written processes that fill a `multiprocessing.Queue`."""

import multiprocessing

from training import ENDLESS, Load, Model, Truth, arguments


def produce(load, ready, first, workers):
    for index in range(first, ENDLESS, workers):
        ready.put(load(index))


def main():
    given = arguments()
    load, ready = Load(given), multiprocessing.Queue(maxsize=2 * given.workers)
    for number in range(given.workers):
        arguments_of_it = (load, ready, number, given.workers)
        multiprocessing.Process(target=produce, args=arguments_of_it, daemon=True).start()
    model, truth = Model(given.step), Truth(given)
    while True:
        truth.waits()
        batch = ready.get()
        truth.steps()
        model.train_step(batch)


if __name__ == "__main__":
    main()
