"""A notebook's kernel that trains, and a client that waits for it. This script is the client."""

import os
import sys

from jupyter_client import KernelManager

CELL = """
import sys
sys.path.insert(0, {folder!r})
sys.argv = {argv!r}

import torch
from torch.utils.data import DataLoader
from training import Load, Model, Truth, arguments
from samples import Samples

given = arguments()
truth, model = Truth(given), Model(given.step)
loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
truth.waits()
for batch in loader:
    truth.steps()
    model.train_step(batch)
    truth.waits()
"""


def main():
    manager = KernelManager()
    manager.start_kernel(cwd=sys.argv[1])
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    folder = os.path.dirname(os.path.abspath(__file__))
    client.execute_interactive(CELL.format(folder=folder, argv=sys.argv))


if __name__ == "__main__":
    main()
