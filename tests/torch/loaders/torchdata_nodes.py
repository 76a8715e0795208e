"""torchdata.nodes: a parallel mapper of threads."""

from torchdata.nodes import IterableWrapper, Loader, ParallelMapper, Prefetcher

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    node = ParallelMapper(IterableWrapper(range(ENDLESS)), Load(given), num_workers=given.workers, method="thread")
    loader = Loader(Prefetcher(node, prefetch_factor=2))
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
