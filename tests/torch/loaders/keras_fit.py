"""Keras on PyTorch: `fit` over a `PyDataset` with threads, from whose queue of results a stock loader without workers takes;
with no workers, `fit` over a generator."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy

from training import ENDLESS, Load, Model, Truth, arguments


class Batches(keras.utils.PyDataset):
    def __init__(self, given):
        super().__init__(workers=given.workers, max_queue_size=2 * given.workers)
        self.load, self.data = Load(given), numpy.ones((4, 8), "float32")

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        self.load(index)
        return self.data, self.data


def batches(given):
    load, data = Load(given), numpy.ones((4, 8), "float32")
    for index in range(ENDLESS):
        load(index)
        yield data, data


class Steps(keras.callbacks.Callback):
    """Makes a step take the given time; then Keras asks for the next batch."""

    def __init__(self, step, truth):
        super().__init__()
        self.step, self.truth = step, truth

    def on_train_batch_begin(self, batch, logs=None):
        self.truth.steps()

    def on_train_batch_end(self, batch, logs=None):
        self.step.train_step(batch)
        self.truth.waits()


def main():
    given = arguments()
    step = Model(given.step)
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(8)])
    model.compile("sgd", "mse")
    data = Batches(given) if given.workers else batches(given)
    model.fit(data, steps_per_epoch=ENDLESS, verbose=0, callbacks=[Steps(step, Truth(given))])


if __name__ == "__main__":
    main()
