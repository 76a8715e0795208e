"""Runs the stand-in loader. Each line on standard input ends one pause."""

import itertools
import sys
import threading

from pause import pause
from torch.utils.data._utils.worker import _worker_loop
from torch.utils.data.dataloader import DataLoader, _SingleProcessDataLoaderIter


def train_step(batch):
    print("training", flush=True)
    sys.stdin.readline()


def progress(batches):
    shown = 0
    for batch in batches:
        shown += 1
        yield batch


def plain(loader):
    for batch in loader:
        if batch % 100 == 1:
            train_step(batch)


def enumerated(loader):
    for step, batch in enumerate(progress(itertools.islice(loader, 1_000_000))):
        if batch % 100 == 1:
            train_step(batch)


def persistent(loader):
    next(iter(loader))
    train_step(1)


def script(loader):
    """Takes its batch like a script that calls `next` outside of any function."""
    global batches
    batches = iter(loader)
    next(batches)
    train_step(1)


def epochs(loader):
    for batch in loader:
        pass
    pause("between")


def single():
    for batch in _SingleProcessDataLoaderIter(DataLoader()):
        train_step(batch)


def decode(index):
    pause("busy")


def burn(until):
    """Runs Python and never sleeps."""
    while not until.is_set():
        pass


def train_without_pause(until):
    while not until.is_set():
        sum(range(1000))


def contended():
    """Two threads want to run Python at the same time."""
    until = threading.Event()
    threading.Thread(target=burn, args=[until], daemon=True).start()
    threading.Thread(target=lambda: (sys.stdin.readline(), until.set()), daemon=True).start()
    print("running", flush=True)
    train_without_pause(until)


def locked():
    """The main thread waits for a lock other than the interpreter's, while another thread runs Python."""
    until = threading.Event()
    threading.Thread(target=burn, args=[until], daemon=True).start()
    print("running", flush=True)
    until.wait()


mode = sys.argv[1]
if mode == "worker":
    _worker_loop(object(), decode, 3, 8, True)
elif mode in ("single", "contended", "locked"):
    globals()[mode]()
elif mode == "busy":
    print("running", flush=True)
    while True:
        source = "def f(n):\n    return n and f(n - 1)\n"
        scope = {}
        exec(source, scope)
        scope["f"](20)
else:
    loader = DataLoader(mode == "persistent", 1 if mode == "epochs" else 1_000_000)
    globals()[mode](loader)
