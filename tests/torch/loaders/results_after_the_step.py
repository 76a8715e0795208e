"""A stock loader. After each step the loop goes through results of a generator that works on each, and of `map`. The data is in
memory."""

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments, augment

PARTS = 4


def decoded(load):
    for part in range(PARTS):
        augment(load.seconds())
        yield part


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given, parts=2 * PARTS)
    loader = DataLoader(Samples(lambda index: index), batch_size=1, num_workers=given.workers)
    found = 0
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_for_a_while(batch)
        for part in decoded(load):
            found += part
        for worked in map(augment, [load.seconds()] * PARTS):
            found += worked is None
        truth.waits()


if __name__ == "__main__":
    main()
