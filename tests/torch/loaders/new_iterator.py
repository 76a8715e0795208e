"""Each step makes a new iterator for its batch: most iterators are gone before they can be read."""

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = DataLoader(Samples(Load(given)), batch_size=1)
    while True:
        truth.waits()
        batch = next(iter(loader))
        truth.steps()
        model.train_step(batch)


if __name__ == "__main__":
    main()
