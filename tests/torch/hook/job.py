"""A training loop that times its own waits: the truth with which the hook's reports are compared.

Its argument is the situation. At its end it prints its measurements as JSON.
"""

import hashlib
import json
import multiprocessing
import resource
import statistics
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

LOADED = {"waited": 0, "batches": 0}
DIGEST = hashlib.sha256()


class Numbers(Dataset):
    """Each item takes `seconds` to load; the item with the number `broken` cannot be loaded."""

    def __init__(self, length, seconds, broken=None):
        self.length, self.seconds, self.broken = length, seconds, broken

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(self.seconds)
        if index == self.broken:
            raise ValueError("number %d is broken" % index)
        return torch.full((3,), float(index)) + torch.rand(3)


class Nested(Numbers):
    """Reads a loader of its own for each item."""

    def __getitem__(self, index):
        return sum(DataLoader(Numbers(2, self.seconds), num_workers=0)) + index


def begin(loader):
    came = time.monotonic_ns()
    iterator = iter(loader)
    LOADED["waited"] += time.monotonic_ns() - came
    return iterator


def take(iterator):
    came = time.monotonic_ns()
    try:
        batch = next(iterator)
    except StopIteration:
        return False
    LOADED["waited"] += time.monotonic_ns() - came
    LOADED["batches"] += 1
    DIGEST.update(batch.numpy().tobytes())
    return True


def train(loader, seconds, most=1000):
    iterator = begin(loader)
    while most > 0 and take(iterator):
        time.sleep(seconds)
        most -= 1


def two(**settings):
    return dict(batch_size=2, num_workers=2, **settings)


def exact(settings, epochs=1):
    loader = DataLoader(Numbers(60, 0.004), shuffle=True, **settings)
    for _ in range(epochs):
        train(loader, 0.002)


def interleaved():
    training = DataLoader(Numbers(40, 0.002), **two(persistent_workers=True))
    checking = DataLoader(Numbers(8, 0.002), batch_size=2)
    for _ in range(2):
        iterator = begin(training)
        step = 0
        while take(iterator):
            step += 1
            if step % 5 == 0:
                train(checking, 0.001)


class Late(list):
    """The same items in the same order, but only after a while."""

    def __iter__(self):
        time.sleep(0.15)
        return super().__iter__()


def begun_early():
    """Begins to iterate over each loader long before its first batch; over the second one, in the middle of a step."""
    loaders = [DataLoader(Numbers(40, 0.002), sampler=Late(range(40)), **two()) for _ in range(2)]
    first = begin(loaders[0])
    time.sleep(0.2)
    for _ in range(10):
        take(first)
        time.sleep(0.002)
    second = begin(loaders[1])
    time.sleep(0.2)
    for _ in range(10):
        take(first)
        take(second)
        time.sleep(0.002)


def processes():
    """A trainer that another one starts in the middle of a step. Both leave their loops early."""
    train(DataLoader(Numbers(20, 0.0)), 0.0, most=10)
    child = multiprocessing.get_context("fork").Process(target=in_child)
    child.start()
    child.join()
    LOADED["child"] = child.pid


def in_child():
    train(DataLoader(Numbers(20, 0.0)), 0.0, most=14)


def broken():
    try:
        train(DataLoader(Numbers(10, 0.0, broken=6)), 0.0)
    except ValueError as error:
        LOADED["error"] = str(error)
    train(DataLoader(Numbers(3, 0.0)), 0.0)


def in_thread():
    loader = DataLoader(Numbers(10, 0.0))
    thread = threading.Thread(target=train, args=(loader, 0.0))
    thread.start()
    thread.join()


def replaced(calls_ours):
    """A script, or a module that it imports, that replaces `__next__` by its own."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    ours = _BaseDataLoaderIter.__next__

    def __next__(self):
        return ours(self) if calls_ours else self._next_data()

    _BaseDataLoaderIter.__next__ = __next__
    train(DataLoader(Numbers(10, 0.001)), 0.0)


def settled():
    """Runs with the settings in the second argument, and tells which ones the loader then has."""
    settings = json.loads(sys.argv[2])
    workers = settings.pop("num_workers", 0)
    loader = DataLoader(Numbers(24, 0.0), 2, True, None, None, workers, **settings)
    for _ in range(2):
        iterator = iter(loader)
        while take(iterator):
            pass
    names = "num_workers prefetch_factor pin_memory persistent_workers timeout batch_size".split()
    LOADED["seen"] = {name: getattr(loader, name) for name in names}
    LOADED["seen"]["processes"] = len(getattr(iterator, "_workers", ()))
    LOADED["seen"]["context"] = str(loader.multiprocessing_context)


class Named(Numbers):
    def __getitem__(self, index):
        return {"number": super().__getitem__(index).floor(), "kind": "number"}


def counted(steps=1000):
    """Makes `steps` steps, in epochs of 15 batches. Tells for each batch the number it begins with, and its address."""
    loader = DataLoader(Named(30, 0.004), **two())
    seen = LOADED["seen"] = []
    while len(seen) < steps:
        for batch in loader:
            number = batch.pop("number")
            seen.append([batch.pop("kind")[0], int(number[0][0]), number.data_ptr()])
            if len(seen) == 1000:
                print("a thousand steps", flush=True)
            if len(seen) == steps:
                break


def checked():
    """Validates after every 5 steps, with all batches of the validation."""
    training = DataLoader(Numbers(40, 0.002), batch_size=2)
    checking = DataLoader(Numbers(8, 0.002), batch_size=2)
    seen = LOADED["seen"] = []
    iterator = iter(training)
    for step in range(60):
        if not take(iterator):
            break
        if step % 5 == 4:
            seen.append(sum(1 for _ in checking))


def in_step():
    """Two loaders of 20 and 30 batches, one of each for a step."""
    loaders = [DataLoader(Numbers(length, 0.002), batch_size=2) for length in (40, 60)]
    LOADED["seen"] = sum(1 for _ in zip(range(100), *loaders))


def half_waiting():
    """Five times 200 batches, each with the wait share as a script would measure it itself."""
    LOADED["seen"] = []
    for _ in range(5):
        waited = worked = 0
        loader = DataLoader(Numbers(400, 0.02), **two())
        came = time.monotonic_ns()
        for batch in loader:
            had = time.monotonic_ns()
            time.sleep(0.012)
            done = time.monotonic_ns()
            waited, worked, came = waited + had - came, worked + done - had, done
            LOADED["batches"] += 1
        LOADED["waited"] += waited
        LOADED["seen"].append(waited / (waited + worked))


def in_pairs():
    """Steps of 12 ms, by turns five with the hook and five without it. Tells what a call for the next batch costs in
    addition to the loader's own work, as medians over the turns: CPU time, and the number of sleeps. A busy machine
    that lets the call run late does not change either."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    with_it = _BaseDataLoaderIter.__next__
    without = with_it.__wrapped__
    spent = {with_it: [], without: []}
    iterator = iter(DataLoader(Numbers(10_000, 0.0), **two()))
    loads = type(iterator)._next_data
    loading = [0, 0]

    def so_far():
        return time.thread_time_ns(), resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw

    def add(to, since):
        to[:] = [sum + now - before for sum, now, before in zip(to, so_far(), since)]

    def _next_data(self):
        came = so_far()
        batch = loads(self)
        add(loading, came)
        return batch

    type(iterator)._next_data = _next_data
    for _ in range(14):
        for function in (with_it, without, without, with_it):
            _BaseDataLoaderIter.__next__ = function
            took, loading[:] = [0, 0], [0, 0]
            for _ in range(5):
                came = so_far()
                next(iterator)
                add(took, came)
                time.sleep(0.012)
            spent[function].append([(all - own) / 5 for all, own in zip(took, loading)])
    medians = lambda function: [statistics.median(column) for column in zip(*spent[function])]
    LOADED["seen"] = [medians(with_it), medians(without)]


SITUATIONS = {
    "main": lambda: exact(dict(batch_size=2)),
    "fork": lambda: exact(two(multiprocessing_context="fork")),
    "spawn": lambda: exact(two(multiprocessing_context="spawn")),
    "forkserver": lambda: exact(two(multiprocessing_context="forkserver")),
    "persistent": lambda: exact(two(persistent_workers=True), epochs=2),
    "fresh": lambda: exact(two(), epochs=2),
    "interleaved": interleaved,
    "begun_early": begun_early,
    "full": lambda: train(DataLoader(Numbers(60, 0.0), **two()), 0.015),
    "empty": lambda: train(DataLoader(Numbers(60, 0.02), **two()), 0.0),
    "left": lambda: train(DataLoader(Numbers(60, 0.001), **two()), 0.001, most=7),
    "nested": lambda: train(DataLoader(Nested(6, 0.001), num_workers=0), 0.0),
    "nested_in_workers": lambda: train(DataLoader(Nested(12, 0.001), **two()), 0.0),
    "processes": processes,
    "broken": broken,
    "thread": in_thread,
    "half_waiting": half_waiting,
    "in_pairs": in_pairs,
    "settled": settled,
    "counted": lambda: counted(100),
    "endless": lambda: counted(10**9),
    "checked": checked,
    "in_step": in_step,
    "replaced": lambda: replaced(True),
    "replaced_whole": lambda: replaced(False),
}

if __name__ == "__main__":
    torch.manual_seed(7)
    SITUATIONS[sys.argv[1]]()
    LOADED["digest"] = DIGEST.hexdigest()
    LOADED["random"] = torch.rand(1).item()
    LOADED["hooked"] = "pipetop_hook" in sys.modules
    print(json.dumps(LOADED))
