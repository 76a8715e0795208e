"""The loop makes each batch's samples by functions that are written in C and called in the loop itself: one of a module and a
method of an object."""

import hashlib
import time

import numpy
import torch

from training import ENDLESS, Load, Model, Truth, arguments

PAIRS = 2


def per_second(work, amount):
    """Takes the fastest of a few, in CPU time, as other load slows some of them down."""
    times = []
    for _ in range(5):
        begin = time.thread_time()
        work(amount)
        times.append(time.thread_time() - begin)
    return amount / min(times)


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given, parts=2 * PAIRS)
    generator = numpy.random.default_rng(0)
    rounds_per_second = per_second(lambda rounds: hashlib.pbkdf2_hmac("sha256", b"", b"", rounds), 20_000)
    # The lambda makes a cell of the variable, from which the loop reads it, too.
    bytes_per_second = per_second(lambda length: generator.bytes(length), 10_000_000)
    truth.waits()
    for number in range(ENDLESS):
        seconds = load.seconds()
        # A dict without tensors is no batch.
        amount = {"rounds": int(seconds * rounds_per_second) + 1, "bytes": int(seconds * bytes_per_second) + 32}
        samples = []
        for _ in range(PAIRS):
            hashed = hashlib.pbkdf2_hmac("sha256", str(number).encode(), b"", amount["rounds"])
            drawn = generator.bytes(amount["bytes"])[:32]
            samples += [torch.tensor(list(sample), dtype=torch.float32) for sample in (hashed, drawn)]
        batch = torch.stack(samples)
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()


if __name__ == "__main__":
    main()
