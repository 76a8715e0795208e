"""A stock loader whose data is in memory. After the model has run, the main thread transforms samples of a buffer for the model."""

import time

import torch
from torch.utils.data import DataLoader
from torchvision import transforms

from samples import Samples
from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    transform = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4)])
    image = torch.rand(3, 32, 32)
    loader = DataLoader(Samples(lambda index: index), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.layers(model.input)
        truth.waits()
        until = time.thread_time() + load.seconds()
        while time.thread_time() < until:
            transform(image)
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()


if __name__ == "__main__":
    main()
