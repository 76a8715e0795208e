"""A training for a test: sleeps for its loads and its steps, and prints at its end when it waited, as pairs of seconds since
its first batch.

usage: train.py BATCHES WORKERS LOAD_SECONDS STEP_SECONDS
"""
import json
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCHES, WORKERS, LOAD, STEP = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])


class Samples(Dataset):
    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        time.sleep(LOAD)
        return torch.full((4,), float(index)), index


def main():
    loader = DataLoader(Samples(), batch_size=1, num_workers=WORKERS)
    print("training begins", flush=True)
    waits = []
    batches = iter(loader)
    for _ in range(BATCHES):
        came = time.monotonic()
        next(batches)
        waits.append((came, time.monotonic()))
        time.sleep(STEP)
    first = waits[0][1]
    since = [(came - first, had - first) for came, had in waits[1:]]
    seconds = time.monotonic() - first
    print(json.dumps({"rank": os.environ.get("RANK"), "waits": since, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
