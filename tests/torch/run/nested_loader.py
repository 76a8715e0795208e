"""Takes its batches from a loader whose dataset takes them from another loader, which has the workers.

    nested_loader.py FOLDER WORKERS SECONDS

WORKERS is the number of the inner loader, which makes a batch every 60 ms with two; a step takes 40 ms. Logs its waits as
`situations.py` does: FOLDER/truth.
"""

import os
import sys
import time

from sleeping import Sleeping
from torch.utils.data import DataLoader, IterableDataset


class Chunks(IterableDataset):
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        yield from self.loader


folder, workers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
inner = DataLoader(Sleeping(0.12 if workers else 0.06, 1_000_000), 4, num_workers=workers)
batches = iter(DataLoader(Chunks(inner), batch_size=None))
file = os.open(f"{folder}/truth", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
end = time.monotonic() + seconds
while time.monotonic() < end:
    os.write(file, f"wait {time.monotonic():.6f}\n".encode())
    next(batches)
    os.write(file, f"step {time.monotonic():.6f}\n".encode())
    time.sleep(0.04)
