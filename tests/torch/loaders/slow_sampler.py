"""Samples load fast, but the sampler, in the main thread, takes long to choose each."""

from torch.utils.data import DataLoader

from samples import Samples
from training import ENDLESS, Load, Model, Truth, arguments


class Slow:
    def __init__(self, load):
        self.load = load

    def __len__(self):
        return ENDLESS

    def __iter__(self):
        for index in range(ENDLESS):
            yield self.load(index)


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    samples = Samples(lambda index: index)
    loader = DataLoader(samples, batch_size=1, num_workers=given.workers, sampler=Slow(Load(given)))
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
