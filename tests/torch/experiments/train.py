"""A training whose times are known: loads sleep or compute, steps sleep. Prints the share of its time in which it
waited for batches, and the time of a step by its own clock: the mean, and the median over turns of two workers, which does not
change if something else delays a single step.
"""

import argparse
import statistics
import time

import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--load-ms", type=float, default=0.0)
parser.add_argument("--compute", type=int, default=0)
parser.add_argument("--step-ms", type=float, default=1.0)
parser.add_argument("--batches", type=int, default=1_000_000)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--fails-after", type=int)
arguments = parser.parse_args()


class Items(Dataset):
    def __len__(self):
        return arguments.batches

    def __getitem__(self, index):
        time.sleep(arguments.load_ms / 1000)
        for _ in range(arguments.compute):
            index = (index * 1103515245 + 12345) & 0x7FFFFFFF
        return torch.full((8,), float(index))


torch.set_num_threads(1)
print("begins with", arguments.workers, "workers", flush=True)
waited = 0.0
# Times from the end of a step to the end of the next one, in ms.
steps = []
came = began = time.monotonic()
for number, batch in enumerate(DataLoader(Items(), num_workers=arguments.workers)):
    had = time.monotonic()
    # Here `headspace --after 5` begins to measure: two workers have four batches ready.
    if number == 10:
        waited, began, steps = 0.0, came, []
    waited += had - came
    if number == arguments.fails_after:
        raise RuntimeError("it fails at its batch %d" % number)
    # By the clock: a sleep that takes too long is made up for.
    time.sleep(max(0.0, had + arguments.step_ms / 1000 - time.monotonic()))
    came, before = time.monotonic(), came
    steps.append((came - before) * 1000)
    if number > 11:
        turns = [sum(turn) / 2 for turn in zip(steps[::2], steps[1::2])]
        figures = (waited / (came - began), statistics.mean(steps), statistics.median(turns))
        print("waited %.4f of %.3f ms, median %.3f ms" % figures, flush=True)
