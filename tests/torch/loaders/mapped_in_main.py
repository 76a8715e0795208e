"""The main thread loads: by `map` over an index, or from an object that has only `__getitem__`."""

from training import ENDLESS, Load, Model, Truth, arguments


class Samples:
    def __init__(self, load):
        self.load = load

    def __getitem__(self, index):
        return self.load(index)


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    truth.waits()
    for batch in Samples(load) if given.workers else map(load, range(ENDLESS)):
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
