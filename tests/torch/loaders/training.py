"""Shared by the scripts in this folder: their arguments, a load, a step, and a log of their own waits.

    SCRIPT DIRECTORY --load MS --step MS --workers N [--cpu] [--seconds S]

A script appends `wait T` to DIRECTORY/truth (each rank to its own truth.RANK) when it asks for a batch and `step T` when it
has one, with T in seconds of CLOCK_MONOTONIC. The first line, `pid N`, names the process that trains. A test changes the load by
writing another one to DIRECTORY/load: seconds, as a native double. Everything ends after --seconds, so that nothing is left
behind if a test is killed.
"""

import argparse
import contextlib
import ctypes
import functools
import mmap
import os
import signal
import struct
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

ENDLESS = 1_000_000  # batches
OPTIMIZES = 0.15  # of a step
LIBC = ctypes.PyDLL(None)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--load", type=float, required=True, help="milliseconds that one worker needs for a batch")
    parser.add_argument("--step", type=float, required=True, help="milliseconds of a step")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--cpu", action="store_true", help="a load computes in Python instead of waiting")
    parser.add_argument("--seconds", type=float, default=400)
    given = parser.parse_args()
    given.load /= 1000
    given.step /= 1000
    create(os.path.join(given.directory, "load"), struct.pack("d", given.load))
    end_after(given.seconds)
    return given


def create(path, content):
    """Creates the file, unless another rank has already done so."""
    own = f"{path}.{os.getpid()}"
    with open(own, "wb") as file:
        file.write(content)
    with contextlib.suppress(FileExistsError):
        os.link(own, path)


class Load:
    """Loads one of `parts` parts of a batch. Can be sent to other processes. `fixed` are seconds that no test changes."""

    def __init__(self, given, fixed=None, parts=1):
        self.path, self.fixed, self.parts, self.cpu = os.path.join(given.directory, "load"), fixed, parts, given.cpu

    def seconds(self):
        return self.fixed or struct.unpack("d", mapped(self.path))[0] / self.parts

    def __call__(self, index):
        (augment if self.cpu else fetch)(self.seconds())
        return index


@functools.cache
def mapped(path):
    """Maps the file, once in each process."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def fetch(seconds):
    """Sleeps, as if it fetched from a remote store."""
    time.sleep(seconds)


def augment(seconds):
    """Computes and holds the interpreter's lock. Measures the thread's own CPU time, so that other load does not change the work."""
    until = time.thread_time() + seconds
    value = 1
    while time.thread_time() < until:
        for _ in range(2_000):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF


class Model:
    """A small model on a simulated accelerator, for which the main thread waits."""

    def __init__(self, seconds):
        import torch

        torch.set_num_threads(1)
        self.seconds = seconds
        self.layers = torch.nn.Linear(64, 64)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=0.01)
        self.input = torch.ones(16, 64)

    def train_step(self, batch):
        rest(self.seconds, self.optimize)

    def train_for_a_while(self, batch):
        """A step that spends a part of its time in functions that only training calls, as a real step does, on any machine."""
        rest(self.seconds, self.optimize_for_a_while)

    def train_throughout(self, batch):
        """A step that never sleeps, and takes no longer on a slow machine."""
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            self.optimize()

    def optimize_for_a_while(self):
        until = time.monotonic() + OPTIMIZES * self.seconds
        while time.monotonic() < until:
            self.optimize()

    def optimize(self):
        loss = self.layers(self.input).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def rest(seconds, work):
    """Does the work, and sleeps for the rest of `seconds`."""
    until = time.monotonic() + seconds
    work()
    time.sleep(max(0.0, until - time.monotonic()))


class Truth:
    def __init__(self, given, rank=None):
        path = os.path.join(given.directory, "truth" if rank is None else f"truth.{rank}")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(self.file, f"pid {os.getpid()}\n".encode())

    def waits(self):
        self.append("wait")

    def steps(self):
        self.append("step")

    def append(self, state):
        line = f"{state} {time.monotonic():.6f}\n".encode()
        # This call keeps the interpreter's lock. `os.write` releases it: a thread that computes then has it for 5 ms or more, which
        # would count as a wait for the batch.
        LIBC.write(self.file, line, len(line))


class Timed:
    """Wraps a loader over which a framework iterates, and logs its waits."""

    def __init__(self, loader, truth):
        self.loader, self.truth = loader, truth

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        self.truth.waits()
        for batch in self.loader:
            self.truth.steps()
            yield batch
            self.truth.waits()


def end_after(seconds):
    """Ends this process after `seconds` by SIGALRM's default action. A forked child has no timer until it sets its own."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    os.register_at_fork(after_in_child=lambda: signal.setitimer(signal.ITIMER_REAL, seconds))
