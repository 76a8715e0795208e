"""A pin thread that always has a batch, and a step that waits, with a timeout, for the result of another thread."""

import time
from concurrent.futures import ThreadPoolExecutor

from pinned import pinned
from samples import Samples
from training import Load, Model, Timed, Truth, arguments


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    pool = ThreadPoolExecutor(1)
    loader = pinned(Samples(lambda index: index), given.workers, lambda batch: batch)
    for batch in Timed(loader, truth):
        model.train_for_a_while(batch)
        pool.submit(time.sleep, load.seconds()).result(timeout=60)


if __name__ == "__main__":
    main()
