"""The main thread reads batches through a pipe from a program that it started, such as ffmpeg."""

import subprocess
import sys

from training import Model, Truth, arguments

SIZE = 30_000
SENDS = """
import sys, time
while True:
    time.sleep({})
    sys.stdout.buffer.write(bytes({}))
    sys.stdout.buffer.flush()
"""


def read(pipe):
    batch = b""
    while len(batch) < SIZE:
        batch += pipe.read(SIZE - len(batch))
    return batch


def main():
    given = arguments()
    model, truth = Model(given.step), Truth(given)
    program = SENDS.format(given.load, SIZE)
    sender = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, bufsize=0)
    while True:
        truth.waits()
        batch = read(sender.stdout)
        truth.steps()
        model.train_step(batch)


if __name__ == "__main__":
    main()
