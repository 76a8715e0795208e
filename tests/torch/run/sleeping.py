"""A dataset whose batches take as long to load as the script sets."""

import time

import torch
from torch.utils.data import Dataset

torch.set_num_threads(1)


class Sleeping(Dataset):
    """Samples of which a batch of four takes `load` seconds."""

    def __init__(self, load, batches):
        self.load, self.batches = load, batches

    def __len__(self):
        return 4 * self.batches

    def __getitem__(self, index):
        time.sleep(self.load / 4)
        return torch.zeros(3, 32, 32), index
