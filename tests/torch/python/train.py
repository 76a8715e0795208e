"""A small training job with the real PyTorch: one function loads, one trains."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

arguments = argparse.ArgumentParser()
arguments.add_argument("--workers", type=int, default=2)
arguments.add_argument("--method")
arguments.add_argument("--persistent", action="store_true")
arguments.add_argument("--load", type=float, default=0.01, help="seconds per sample")
arguments.add_argument("--step", type=float, default=0.002, help="seconds per step")
arguments.add_argument("--samples", type=int, default=1_000_000)
options = arguments.parse_args()


def decode(index):
    time.sleep(options.load)
    return torch.full((3,), index)


class Images(Dataset):
    def __len__(self):
        return options.samples

    def __getitem__(self, index):
        return decode(index)


def train_step(batch):
    time.sleep(options.step)


def main():
    several = {}
    if options.workers:
        several = dict(
            multiprocessing_context=options.method,
            persistent_workers=options.persistent,
            prefetch_factor=3,
        )
    loader = DataLoader(Images(), batch_size=4, num_workers=options.workers, **several)
    print("ready", flush=True)
    while True:
        for step, batch in enumerate(loader):
            train_step(batch)


if __name__ == "__main__":
    main()
