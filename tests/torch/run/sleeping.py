"""A dataset whose batches take as long to load as a script says."""

import time

import torch
from torch.utils.data import Dataset

torch.set_num_threads(1)


class Sleeping(Dataset):
    """`load` is the seconds for one batch of four."""

    def __init__(self, load, batches):
        self.load, self.batches = load, batches

    def __len__(self):
        return 4 * self.batches

    def __getitem__(self, index):
        time.sleep(self.load / 4)
        return torch.zeros(3, 32, 32), index
