"""Batches that are quickly made; another process does the steps, and answers through a pipe."""

import multiprocessing
import time

from training import ENDLESS, Load, Truth, arguments, rest


def run(steps, seconds):
    while True:
        batch = steps.recv()
        time.sleep(seconds)
        steps.send(batch)


def batches(load):
    for index in range(ENDLESS):
        yield load(index)


def main():
    given = arguments()
    truth, load = Truth(given), Load(given, parts=10)
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(target=run, args=(theirs, given.step), daemon=True).start()
    import torch  # noqa: F401  it is a trainer

    truth.waits()
    for batch in batches(load):
        truth.steps()
        ours.send(batch)
        ours.recv()
        rest(given.step / 5, lambda: None)
        truth.waits()


if __name__ == "__main__":
    main()
