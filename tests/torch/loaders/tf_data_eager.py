"""tf.data in an eager loop: native threads that call Python."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow

from training import Load, Truth, arguments, rest


def main():
    given = arguments()
    load, truth = Load(given), Truth(given)

    def map_one(index):
        return tensorflow.py_function(lambda index: load(index), [index], tensorflow.int64)

    loader = tensorflow.data.Dataset.range(1_000_000).map(map_one, num_parallel_calls=given.workers).prefetch(4)
    # As many threads as requested, even if there are fewer CPUs.
    options = tensorflow.data.Options()
    options.threading.private_threadpool_size = given.workers
    loader = loader.with_options(options)
    weights = tensorflow.Variable(tensorflow.ones((64, 64)))
    truth.waits()
    for batch in loader:
        truth.steps()
        rest(given.step, lambda: weights.assign(weights @ weights / 64))
        truth.waits()


if __name__ == "__main__":
    main()
