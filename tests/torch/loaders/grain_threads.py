"""Grain: threads that read ahead."""

import grain

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    options = grain.ReadOptions(num_threads=given.workers, prefetch_buffer_size=2 * given.workers)
    loader = grain.MapDataset.range(ENDLESS).map(Load(given)).to_iter_dataset(options)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
