"""A stock loader in a process of its own, which hands the batches to the trainer through a queue."""

import multiprocessing

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def load(batches, given):
    for batch in DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers):
        batches.put(batch.tolist())


def main():
    given = arguments()
    fresh = multiprocessing.get_context("spawn")
    batches = fresh.Queue(4)
    fresh.Process(target=load, args=(batches, given)).start()
    model, truth = Model(given.step), Truth(given)
    truth.waits()
    while batch := batches.get():
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
