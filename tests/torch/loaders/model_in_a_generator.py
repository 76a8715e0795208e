"""A generator of a model's outputs, which takes the batches from a stock loader. The model uses no layers of PyTorch. The data
is in memory."""

import time

import torch
from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


class Network(torch.nn.Module):
    def __init__(self, load):
        super().__init__()
        self.load = load
        self.weights = torch.nn.Parameter(torch.ones(64))

    def forward(self, batch):
        until = time.thread_time() + self.load.seconds()
        while time.thread_time() < until:
            outputs = self.weights * self.weights.sin()
        return outputs


def outputs(network, loader, truth):
    truth.waits()
    for batch in loader:
        truth.steps()
        yield network(batch)
        truth.waits()


def main():
    given = arguments()
    model, truth, network = Model(given.step), Truth(given), Network(Load(given))
    loader = DataLoader(Samples(lambda index: index), batch_size=1, num_workers=given.workers)
    for output in outputs(network, loader, truth):
        output.mean().backward()
        model.train_for_a_while(output)


if __name__ == "__main__":
    main()
