"""MONAI: a thread that prefetches from torch's workers."""

from monai.data import Dataset, ThreadDataLoader

from training import Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    dataset = Dataset(range(100_000), transform=Load(given))
    loader = ThreadDataLoader(dataset, buffer_size=2, batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
