"""nnU-Net's augmenter: processes that fill one queue, and a thread that empties it into another."""

from batchgenerators.dataloading.nondet_multi_threaded_augmenter import NonDetMultiThreadedAugmenter

from training import Load, Model, Truth, arguments


class Batches:
    """Has the methods that the augmenter needs of its own loaders."""

    def __init__(self, load):
        self.load = load

    def set_thread_id(self, number):
        self.number = number

    def __iter__(self):
        return self

    def __next__(self):
        return {"data": self.load(0)}


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    loader = NonDetMultiThreadedAugmenter(Batches(Load(given)), None, num_processes=given.workers, num_cached=4)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
