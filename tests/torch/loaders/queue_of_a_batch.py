"""A new queue for each batch, into which threads put its parts, as Dask's scheduler does."""

import queue
from concurrent.futures import ThreadPoolExecutor

from training import Load, Model, Truth, arguments

PARTS = 4


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    pool = ThreadPoolExecutor(PARTS)
    while True:
        truth.waits()
        parts = queue.Queue()
        for part in range(PARTS):
            pool.submit(lambda part=part, parts=parts: parts.put(load(part)))
        batch = [parts.get() for _ in range(PARTS)]
        truth.steps()
        model.train_step(batch)


if __name__ == "__main__":
    main()
