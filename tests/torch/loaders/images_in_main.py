"""The main thread decodes images by a list comprehension, in a loop that holds an iterator over their paths."""

import os
import time

import numpy
import torch
from PIL import Image

from training import Load, Model, Truth, arguments

IMAGES = 8


def written(folder):
    """Returns the paths of new images."""
    paths = [os.path.join(folder, f"{number}.jpg") for number in range(IMAGES)]
    for path in paths:
        Image.fromarray(numpy.random.randint(0, 255, (96, 96, 3), "u1")).resize((384, 384)).save(path)
    return paths


def decoded(path):
    image = Image.open(path).convert("RGB").resize((64, 64))
    return torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float()


def repeated(paths, seconds):
    """Goes through the paths for as long as the load takes."""
    until, number = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        yield paths[number % IMAGES]
        number += 1


def main():
    given = arguments()
    paths = written(given.directory)
    model, truth, load = Model(given.step), Truth(given), Load(given)
    for name in [os.path.basename(path) for path in paths] * 10_000:
        truth.waits()
        images = torch.stack([decoded(path) for path in repeated(paths, load.seconds())])
        truth.steps()
        model.train_for_a_while((name, images))


if __name__ == "__main__":
    main()
