"""A pin thread, and a step in which the main thread waits on a lock for another thread, as it does in `backward` on a
GPU, where autograd's thread for the device does the work."""

import hashlib
import queue
import threading
import time

from pinned import pinned
from samples import Samples
from training import Load, Timed, Truth, arguments


def work(seconds, gradients):
    block = bytes(1 << 20)
    while True:
        done = gradients.get()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            hashlib.sha256(block).digest()  # without the interpreter's lock
        done.release()


def backward(gradients):
    done = threading.Lock()
    done.acquire()
    gradients.put(done)
    done.acquire()


def main():
    given = arguments()
    truth, gradients = Truth(given), queue.SimpleQueue()
    threading.Thread(target=work, args=(given.step, gradients), daemon=True).start()
    for _ in Timed(pinned(Samples(Load(given)), given.workers, lambda batch: batch), truth):
        backward(gradients)


if __name__ == "__main__":
    main()
