"""Datasets for torch's own loader."""

import torch
from torch.utils.data import Dataset

from training import ENDLESS


class Samples(Dataset):
    def __init__(self, load):
        self.load = load

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        return self.load(index)


class QuickSamples(Dataset):
    """Samples that take no time to load."""

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        return torch.zeros(64)
