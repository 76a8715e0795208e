"""A training loader that has workers and keeps up; after every 80 batches, a validation of 40 whose loader has no workers.

Besides `truth`, `truth.1` logs the waits for the validation's loader, and `truth.2` the time in the validation.
"""

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments, fetch

TRAINING, VALIDATION = 80, 40


class Part(Samples):
    def __init__(self, load, length):
        super().__init__(load)
        self.length = length

    def __len__(self):
        return self.length


def main():
    given = arguments()
    model = Model(given.step)
    truth, waits, inside = Truth(given), Truth(given, 1), Truth(given, 2)
    quick = Part(Load(given, 0.005), TRAINING)
    slow = Part(Load(given), VALIDATION)
    training = DataLoader(quick, batch_size=1, num_workers=given.workers, persistent_workers=True)
    validation = DataLoader(slow, batch_size=1)
    waits.steps()
    inside.steps()
    while True:
        truth.waits()
        for batch in training:
            truth.steps()
            model.train_step(batch)
            truth.waits()
        inside.waits()
        waits.waits()
        for batch in validation:
            truth.steps()
            waits.steps()
            fetch(given.step)
            truth.waits()
            waits.waits()
        waits.steps()
        inside.steps()


if __name__ == "__main__":
    main()
