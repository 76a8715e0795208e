"""joblib: results of processes in the order in which they arrive."""

from joblib import Parallel, delayed

from training import ENDLESS, Load, Model, Truth, arguments


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    parallel = Parallel(n_jobs=given.workers, return_as="generator", batch_size=1, pre_dispatch="2 * n_jobs")
    loader = parallel(delayed(load)(index) for index in range(ENDLESS))
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
