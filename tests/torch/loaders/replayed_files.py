"""A stock loader whose data is in memory. After the model has run, the main thread reads buffered samples from files for it."""

import os
import time

import numpy
import torch

from replayed import replay
from training import arguments

FILES = 8


class Buffer:
    def __init__(self, folder):
        self.paths = [os.path.join(folder, f"{index}.npz") for index in range(FILES)]
        for path in self.paths:
            numpy.savez_compressed(path, image=numpy.random.randint(0, 5, (3, 64, 64)).astype("f4"))

    def sample(self, seconds):
        until, images = time.thread_time() + seconds, []
        while time.thread_time() < until:
            path = self.paths[len(images) % FILES]
            images.append(torch.from_numpy(numpy.load(path)["image"]))
        return torch.stack(images)


def main():
    given = arguments()
    replay(given, Buffer(given.directory).sample)


if __name__ == "__main__":
    main()
