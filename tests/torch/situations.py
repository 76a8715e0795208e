"""Small PyTorch training jobs, each in one situation that pipetop must judge rightly.

    situations.py NAME DIRECTORY [SECONDS]

The job itself logs the truth: it appends `wait T` to DIRECTORY/truth when it asks the loader for a batch and `step T`
when it has one, with T in seconds of CLOCK_MONOTONIC. If there are several ranks, each writes its own truth.RANK.
A job ends by itself after SECONDS, so that nothing is left behind when a test is killed.
"""

import ctypes
import hashlib
import os
import random
import signal
import sys
import threading
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

BATCH_SIZE = 4
ENDLESS = 1_000_000  # batches
MEGABYTE = 1 << 20
LIBC = ctypes.PyDLL(None)


# Datasets


class Sleeping(Dataset):
    """Sleeps, like a load from a remote store: a batch takes `load` seconds and no CPU time.

    If `log` is a directory, it appends a line `WORKER BATCH SECONDS END` to the file `loads` there for each batch.
    """

    def __init__(self, load, jitter=0.0, load_of_worker_0=None, batches=ENDLESS, log=None):
        self.load, self.jitter, self.load_of_worker_0, self.batches = load, jitter, load_of_worker_0, batches
        self.log = log and os.open(os.path.join(log, "loads"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __len__(self):
        return self.batches * BATCH_SIZE

    def __getitem__(self, index):
        if index % BATCH_SIZE == 0:
            self.begun = time.monotonic()
        load = self.load
        if self.load_of_worker_0 is not None and get_worker_info().id == 0:
            load = self.load_of_worker_0
        time.sleep(load * random.uniform(1 - self.jitter, 1 + self.jitter) / BATCH_SIZE)
        if self.log is not None and index % BATCH_SIZE == BATCH_SIZE - 1:
            now = time.monotonic()
            took = now - self.begun
            os.write(self.log, f"{get_worker_info().id} {index // BATCH_SIZE} {took:.6f} {now:.6f}\n".encode())
        return torch.zeros(3, 32, 32), index


class CpuHungry(Dataset):
    """Computes in pure Python."""

    def __len__(self):
        return ENDLESS * BATCH_SIZE

    def __getitem__(self, index):
        return torch.zeros(3, 32, 32), augment(index)


def augment(seed):
    value = seed
    for _ in range(600_000):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


class Jpegs(Dataset):
    """Decodes real JPEG files with Pillow."""

    def __init__(self, directory, count=16):
        from PIL import Image

        self.paths = [os.path.join(directory, f"{number}.jpg") for number in range(count)]
        for path in self.paths:
            Image.effect_noise((1920, 1440), 60).convert("RGB").save(path, quality=90)

    def __len__(self):
        return ENDLESS * BATCH_SIZE

    def __getitem__(self, index):
        return decode_jpeg(self.paths[index % len(self.paths)])


def decode_jpeg(path):
    from PIL import Image

    with Image.open(path) as image:
        pixels = bytearray(image.convert("RGB").tobytes())
    return torch.frombuffer(pixels, dtype=torch.uint8)[: 64 * 64].clone()


class Reads(Dataset):
    """Reads a megabyte of one file per batch. With `cold`, drops it from the page cache first."""

    def __init__(self, directory, cold, megabytes=64):
        self.path, self.cold, self.megabytes, self.file = os.path.join(directory, "data"), cold, megabytes, None
        with open(self.path, "wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(MEGABYTE))
            file.flush()
            os.fsync(file.fileno())

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        if self.file is None:
            self.file = os.open(self.path, os.O_RDONLY)
            # Read-ahead would bring the next part into the page cache.
            os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_RANDOM)
        offset = index % self.megabytes * MEGABYTE
        if self.cold:
            os.posix_fadvise(self.file, offset, MEGABYTE, os.POSIX_FADV_DONTNEED)
        return read_sample(self.file, offset)


def read_sample(file, offset):
    return torch.frombuffer(bytearray(os.pread(file, MEGABYTE, offset)), dtype=torch.uint8)


class ManyTensors(Dataset):
    """A batch of many small tensors, which costs nothing to make, but much to hand over."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        return {f"feature_{number}": torch.zeros(8) for number in range(self.count)}


class Arrays(Dataset):
    """NumPy arrays, which are sent through the pipe itself, and are larger than its capacity."""

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        import numpy

        return numpy.zeros(50_000)


def as_it_is(sample):
    return sample


class Sharded(IterableDataset):
    """Endless shards, distributed to the workers by number: if there are fewer shards than workers, some workers get none."""

    def __init__(self, shards, load):
        self.shards, self.load = shards, load

    def __iter__(self):
        info = get_worker_info()
        mine = range(info.id, self.shards, info.num_workers)
        while len(mine) > 0:
            for shard in mine:
                time.sleep(self.load / BATCH_SIZE)
                yield torch.zeros(3, 32, 32), shard


# Steps


def runs_commands(seconds):
    """A step that reads the output of a command through a pipe."""
    import subprocess

    return lambda batch: subprocess.run(["sleep", str(seconds)], stdout=subprocess.PIPE, check=True)


def sleeps(seconds):
    """A step in which the main thread waits for an accelerator that works for `seconds`."""
    return lambda batch: time.sleep(seconds)


def multiplies(seconds):
    """A step with a fixed amount of work on the CPU, which takes about `seconds` if nothing disturbs it."""
    torch.set_num_threads(1)
    matrix = torch.rand(256, 256)

    def work(times):
        for _ in range(times):
            torch.mm(matrix, matrix)

    def cost():
        begin = time.perf_counter()
        work(20)
        return (time.perf_counter() - begin) / 20

    times = max(1, round(seconds / min(cost() for _ in range(20))))
    return lambda batch: work(times)


def reduces_over_ranks(seconds, of_rank_1=None):
    """A step that computes, then exchanges gradients with the other ranks."""
    if of_rank_1 is not None and os.environ["RANK"] == "1":
        seconds = of_rank_1
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    gradients = torch.ones(1024)

    def step(batch):
        time.sleep(seconds)
        torch.distributed.all_reduce(gradients)

    return step


def launches_beside(thread):
    """A step of small operations, each of which releases the interpreter's lock and takes it again, beside `thread`."""
    threading.Thread(target=thread, daemon=True).start()
    small = torch.ones(8)

    def step(batch):
        for _ in range(60):
            torch.add(small, 1)
        time.sleep(0.02)

    return step


def log_metrics():
    """Runs Python all the time."""
    value = 0
    while True:
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF


def write_checkpoint():
    """Works without the interpreter's lock, and then sleeps for as long."""
    state = bytes(4 * MEGABYTE)
    while True:
        begin = time.perf_counter()
        hashlib.sha256(state).digest()
        time.sleep(time.perf_counter() - begin)


# Situations: name -> (loader, step)


def loads(dataset, workers, **settings):
    return DataLoader(dataset, batch_size=BATCH_SIZE, num_workers=workers, **settings)


SITUATIONS = {
    "starved": lambda d: (loads(Sleeping(2.0), 7), sleeps(0.1)),
    "matched": lambda d: (loads(Sleeping(0.7), 7), sleeps(0.1)),
    "over-provisioned": lambda d: (loads(Sleeping(0.35), 7), sleeps(0.1)),
    "commands": lambda d: (loads(Sleeping(0.05), 4), runs_commands(0.1)),
    "jitter": lambda d: (loads(Sleeping(2.0, jitter=0.5, log=d), 7), sleeps(0.1)),
    "jpeg": lambda d: (loads(Jpegs(d), 1), sleeps(0.02)),
    "oversubscribed": lambda d: (loads(CpuHungry(), 8), sleeps(0.02)),
    "cold-reads": lambda d: (DataLoader(Reads(d, cold=True), batch_size=None, num_workers=4), sleeps(0.05)),
    "warm-reads": lambda d: (DataLoader(Reads(d, cold=False), batch_size=None, num_workers=4), sleeps(0.1)),
    "compute": lambda d: (loads(Sleeping(0.01), 4), multiplies(0.15)),
    "slow-worker": lambda d: (loads(Sleeping(0.05, load_of_worker_0=0.8), 4), sleeps(0.02)),
    "in-main": lambda d: (loads(Sleeping(0.1), 0), sleeps(0.05)),
    "many-tensors": lambda d: (DataLoader(ManyTensors(96), batch_size=None, num_workers=2), sleeps(0.001)),
    "arrays": lambda d: (
        DataLoader(Arrays(), batch_size=None, num_workers=3, collate_fn=as_it_is, multiprocessing_context="spawn"),
        sleeps(0.1),
    ),
    "quota": lambda d: (loads(CpuHungry(), 2), sleeps(0.02)),
    "short-epochs": lambda d: (loads(Sleeping(0.01, batches=20), 2, multiprocessing_context="spawn"), sleeps(0.05)),
    "few-shards": lambda d: (loads(Sharded(2, 0.2), 6), sleeps(0.02)),
    "few-shards-persistent": lambda d: (loads(Sharded(2, 0.2), 6, persistent_workers=True), sleeps(0.02)),
    "one-worker": lambda d: (loads(Sleeping(0.35), 1), sleeps(0.05)),
    "four-workers": lambda d: (loads(Sleeping(0.35), 4), sleeps(0.05)),
    "few-batches": lambda d: (loads(Sleeping(0.35), 7), sleeps(4.0)),
    "python-thread": lambda d: (loads(Sleeping(0.01), 2), launches_beside(log_metrics)),
    "native-thread": lambda d: (loads(Sleeping(0.01), 2), launches_beside(write_checkpoint)),
    "two-ranks": lambda d: (loads(Sleeping(0.4), 2), reduces_over_ranks(0.05)),
    "late-rank": lambda d: (loads(Sleeping(0.05), 2), reduces_over_ranks(0.05, of_rank_1=0.25)),
}


class Truth:
    def __init__(self, directory):
        rank = os.environ.get("RANK")
        path = os.path.join(directory, "truth" if rank is None else f"truth.{rank}")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def mark(self, state):
        line = f"{state} {time.monotonic():.6f}\n".encode()
        # This call keeps the interpreter's lock. `os.write` releases it: a thread that computes then has it for 5 ms or more, which
        # would count as a wait for the batch.
        LIBC.write(self.file, line, len(line))


def batches(loader, truth):
    """Returns the batches of endless epochs, and logs the waits for them."""
    while True:
        truth.mark("wait")
        for batch in loader:
            truth.mark("step")
            yield batch
            truth.mark("wait")


def marks(directory):
    """Does everything that pipetop marks on its time axis, and logs the wall-clock time of each begin in DIRECTORY/events."""
    events = open(os.path.join(directory, "events"), "w", buffering=1)
    truth = Truth(directory)
    training, held_out = Sleeping(0.05), Sleeping(0.05)
    by_epochs, validation = loads(training, 2), loads(held_out, 2)
    kept = loads(training, 2, persistent_workers=True)

    def go(kind, loader, seconds):
        events.write(f"{kind} {time.time()}\n")
        until = time.monotonic() + seconds
        for _ in batches(loader, truth):
            time.sleep(0.02)
            if time.monotonic() > until:
                return

    def save(seconds):
        events.write(f"checkpoint {time.time()}\n")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            torch.save({"weights": torch.zeros(1 << 20)}, os.path.join(directory, "checkpoint.pt"))

    go("under-way", by_epochs, 4.0)
    go("validation", validation, 1.2)
    save(0.7)
    go("epoch", by_epochs, 1.5)
    go("validation", validation, 1.2)
    go("epoch", kept, 1.5)
    go("epoch", kept, 1.5)
    # The loader of the training lives on meanwhile.
    go("validation", validation, 1.2)
    go("epoch", kept, 1.5)
    save(0.7)
    worker = kept._iterator._workers[0].pid
    events.write(f"worker {time.time()}\n")
    # PyTorch raises an error as soon as the signal for the child's death is handled, which may be before `kill` returns.
    try:
        os.kill(worker, signal.SIGKILL)
        time.sleep(2.2)
    except RuntimeError:
        time.sleep(2.2)
    events.write(f"job-end {time.time()}\n")
    os._exit(1)


def cells(directory, until):
    """A notebook's kernel: a cell trains for six seconds, then the kernel waits 20 seconds for the next cell, so that
    a report of the first 12 seconds always ends between two cells.
    """
    import asyncio

    loader, truth = loads(Sleeping(0.4), 2, persistent_workers=True), Truth(directory)

    def cell():
        end = time.monotonic() + 6.0
        for _ in batches(loader, truth):
            time.sleep(0.05)
            if time.monotonic() > end:
                return

    async def kernel():
        while time.monotonic() < until:
            cell()
            await asyncio.sleep(20.0)

    asyncio.run(kernel())


def main():
    name, directory = sys.argv[1:3]
    until = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 120)
    torch.manual_seed(0)
    if name == "marks":
        return marks(directory)
    if name == "cells":
        return cells(directory, until)
    loader, step = SITUATIONS[name](directory)
    for batch in batches(loader, Truth(directory)):
        step(batch)
        if time.monotonic() > until:
            break


if __name__ == "__main__":
    main()
