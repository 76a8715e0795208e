"""A fast stock loader; the loop itself works on each batch before the model gets it."""

from torch.utils.data import DataLoader

from samples import QuickSamples
from training import Load, Model, Truth, arguments, augment


def regrouped(batch, load):
    """Mixes the batch with another."""
    augment(load.seconds())
    return batch


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    loader = DataLoader(QuickSamples(), batch_size=4, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        batch = regrouped(batch, load)
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()


if __name__ == "__main__":
    main()
