"""Futures of a pool of processes; a few are submitted in advance."""

from collections import deque
from concurrent.futures import ProcessPoolExecutor

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    with ProcessPoolExecutor(given.workers) as pool:
        load, pending = Load(given), deque()
        for index in range(ENDLESS):
            while len(pending) < 2 * given.workers:
                pending.append(pool.submit(load, index))
            truth.waits()
            batch = pending.popleft().result()
            truth.steps()
            model.train_step(batch)


if __name__ == "__main__":
    main()
