"""The main thread reads its samples from an HDF5 file, by index."""

import os
import time

import h5py
import numpy

from training import Load, Model, Truth, arguments

CHUNKS = 32


def written(path):
    """Returns the path of a new file of compressed chunks, each of which takes some milliseconds to read."""
    with h5py.File(path, "w") as file:
        shape = (CHUNKS, 256, 256)
        images = file.create_dataset("images", shape, "f4", chunks=(1, *shape[1:]), compression="gzip")
        images[:] = numpy.random.rand(*shape).round(2)
    return path


def main():
    given = arguments()
    images = h5py.File(written(os.path.join(given.directory, "images.h5")))["images"]
    model, truth, load, index = Model(given.step), Truth(given), Load(given), 0
    while True:
        truth.waits()
        until, batch = time.monotonic() + load.seconds(), []
        while time.monotonic() < until:
            batch.append(images[index % CHUNKS])
            index += 1
        truth.steps()
        model.train_for_a_while(batch)


if __name__ == "__main__":
    main()
