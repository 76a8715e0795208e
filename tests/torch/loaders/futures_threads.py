"""Futures of a pool of threads; a few are submitted in advance."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

from training import ENDLESS, Load, Model, Truth, arguments


def batches(pool, load, ahead):
    pending = deque(pool.submit(load, index) for index in range(ahead))
    for index in range(ahead, ENDLESS):
        batch = pending.popleft().result()
        pending.append(pool.submit(load, index))
        yield batch


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    pool = ThreadPoolExecutor(given.workers)
    truth.waits()
    for batch in batches(pool, Load(given), 2 * given.workers):
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
