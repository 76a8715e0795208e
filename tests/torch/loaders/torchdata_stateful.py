"""torchdata's StatefulDataLoader: torch's workers, with states that can be saved."""

from torchdata.stateful_dataloader import StatefulDataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = StatefulDataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
