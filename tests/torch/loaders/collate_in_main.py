"""A fast stock loader; behind it, the main thread assembles batches in a generator."""

from torch.utils.data import DataLoader

from samples import QuickSamples
from training import Load, Model, Truth, arguments, augment


def regrouped(loader, load):
    """Mixes the batch with another."""
    for batch in loader:
        augment(load.seconds())
        yield batch


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = DataLoader(QuickSamples(), batch_size=4, num_workers=given.workers)
    truth.waits()
    for batch in regrouped(loader, Load(given)):
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
