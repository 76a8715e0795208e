"""A stock loader; a thread of a pool makes each step, and the main thread waits for it."""

from concurrent.futures import ThreadPoolExecutor

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    pool = ThreadPoolExecutor(2)
    truth.waits()
    for batch in DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers):
        truth.steps()
        pool.submit(model.train_throughout, batch).result()
        truth.waits()


if __name__ == "__main__":
    main()
