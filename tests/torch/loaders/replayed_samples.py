"""The main thread transforms samples of a buffer, between two runs of the model."""

import time

import torch
from torchvision import transforms

from replayed import replay
from training import arguments


def main():
    transform = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4)])
    image = torch.rand(3, 32, 32)

    def transformed(seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            transform(image)

    replay(arguments(), transformed)


if __name__ == "__main__":
    main()
