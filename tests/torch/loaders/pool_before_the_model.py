"""A stock loader; the loop has processes of its own work on each batch before the model gets it."""

import multiprocessing

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    loader = DataLoader(Samples(Load(given, fixed=0.01)), batch_size=1)
    with multiprocessing.Pool(given.workers) as pool:
        truth.waits()
        for batch in loader:
            worked = pool.map(load, range(given.workers), chunksize=1)
            truth.steps()
            model.train_for_a_while(batch + sum(worked))
            truth.waits()


if __name__ == "__main__":
    main()
