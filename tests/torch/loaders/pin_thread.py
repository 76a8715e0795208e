"""Fast workers, and a pin thread that takes long for each batch."""

from pinned import pinned
from samples import Samples
from training import Load, Model, Timed, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = pinned(Samples(lambda index: index), given.workers, Load(given))
    for batch in Timed(loader, truth):
        model.train_step(batch)


if __name__ == "__main__":
    main()
