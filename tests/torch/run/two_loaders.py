"""Takes a batch from each of two loaders for a step, as a GAN does, outside of any function.

    two_loaders.py FOLDER WORKERS WORKERS SECONDS [BATCHES]

Each loader starts anew after BATCHES batches.

The first loader keeps up; the second has too few workers. Logs the waits for each as `situations.py` does:
FOLDER/truth.0 and FOLDER/truth.1.
"""

import os
import sys
import time

from sleeping import Sleeping
from torch.utils.data import DataLoader


class Marked:
    def __init__(self, loader, path):
        self.batches = endless(loader)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __next__(self):
        self.mark("wait")
        batch = next(self.batches)
        self.mark("step")
        return batch

    def mark(self, state):
        os.write(self.file, f"{state} {time.monotonic():.6f}\n".encode())


def endless(loader):
    while True:
        yield from loader


folder, workers, seconds = sys.argv[1], [int(count) for count in sys.argv[2:4]], float(sys.argv[4])
# The second loader makes a batch every 120 ms, however many workers it has.
loads = [0.03 * workers[0], 0.12 * workers[1]]
batches = int(sys.argv[5]) if len(sys.argv) > 5 else 1_000_000
loaders = [DataLoader(Sleeping(load, batches), 4, num_workers=count) for load, count in zip(loads, workers)]
real, noise = [Marked(loader, f"{folder}/truth.{place}") for place, loader in enumerate(loaders)]
end = time.monotonic() + seconds
while time.monotonic() < end:
    images = next(real)
    latent = next(noise)
    time.sleep(0.04)
