"""Hand-written threads that fill a queue. Beside them runs another program with torch, which the trainer has started."""

import queue
import subprocess
import sys
import threading
import time

import torch

from training import ENDLESS, Load, Truth, arguments

SERVER = 'import sys, torch; sys.stdin.read()'


def produce(load, ready, first, workers):
    for index in range(first, ENDLESS, workers):
        ready.put(load(index))


def compute(seconds):
    matrix = torch.ones(512, 512)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        matrix @ matrix


def main():
    torch.set_num_threads(1)
    given = arguments()
    truth, load = Truth(given), Load(given)
    # The server ends with this process.
    server = subprocess.Popen([sys.executable, '-c', SERVER], stdin=subprocess.PIPE)
    ready = queue.Queue(maxsize=2 * given.workers)
    for number in range(given.workers):
        threading.Thread(target=produce, args=(load, ready, number, given.workers), daemon=True).start()
    while True:
        truth.waits()
        ready.get()
        truth.steps()
        compute(given.step)
        assert server.poll() is None


if __name__ == "__main__":
    main()
