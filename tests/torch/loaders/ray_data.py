"""Ray Data: tasks in other processes."""

import ray.data

from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    load = Load(given)

    def map_one(batch):
        load(0)
        return batch

    # One process more for what starts the tasks.
    ray.init(num_cpus=given.workers, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
    model, truth = Model(given.step), Truth(given)
    # With ten times as many blocks, the driver computes for half a minute before it reads the first.
    data = ray.data.range(2_000, override_num_blocks=2_000).map_batches(map_one, batch_size=1, num_cpus=1)
    truth.waits()
    for batch in data.iter_batches(batch_size=1, prefetch_batches=4):
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
