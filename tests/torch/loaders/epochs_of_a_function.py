"""A generator in the main thread makes batches: a function trains on some, and the loop that calls it validates on others."""

import torch

from training import Load, Model, Truth, arguments, fetch

EPOCH, VALIDATION = 30, 5  # batches


def batches(count, load):
    for _ in range(count):
        fetch(load.seconds())
        yield torch.ones(1)


def train_epoch(model, truth, load):
    truth.waits()
    for batch in batches(EPOCH, load):
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()
    truth.steps()


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    validation = Load(given, fixed=0.01)
    while True:
        train_epoch(model, truth, load)
        truth.waits()
        for _ in batches(VALIDATION, validation):
            truth.steps()
            model.layers(model.input)
            truth.waits()
        truth.steps()


if __name__ == "__main__":
    main()
