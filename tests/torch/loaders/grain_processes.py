"""Grain: processes, each with one thread that reads."""

import grain

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    loader = grain.MapDataset.range(ENDLESS).map(Load(given)).to_iter_dataset(options)
    loader = loader.mp_prefetch(grain.MultiprocessingOptions(num_workers=given.workers, per_worker_buffer_size=2))
    model, truth = Model(given.step), Truth(given)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
