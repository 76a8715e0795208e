"""A training of the test's: sleeps for its loading and its steps, and says at its end how long it waited.

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
    waited = 0
    batches = iter(loader)
    first = None
    for _ in range(BATCHES):
        came = time.monotonic_ns()
        next(batches)
        had = time.monotonic_ns()
        if first is None:
            first = had
        else:
            waited += had - came
        time.sleep(STEP)
    total = time.monotonic_ns() - first
    print(json.dumps({"rank": os.environ.get("RANK"), "wait_share": waited / total}), flush=True)


if __name__ == "__main__":
    main()
