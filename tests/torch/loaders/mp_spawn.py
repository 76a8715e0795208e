"""Two ranks of `torch.multiprocessing.spawn`, each with a stock loader."""

import os
import time

import torch
import torch.distributed
import torch.multiprocessing
from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth, arguments


def train(rank, given):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    torch.distributed.init_process_group("gloo", init_method=f"file://{given.directory}/store", rank=rank, world_size=2)
    model, truth = Model(given.step), Truth(given, rank)
    parallel = torch.nn.parallel.DistributedDataParallel(model.layers)
    model.layers = parallel
    loader = DataLoader(Samples(Load(given)), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        # The ranks exchange gradients after their accelerators are done, so a rank that is ahead of the other waits only once.
        time.sleep(given.step)
        model.optimize()
        truth.waits()


if __name__ == "__main__":
    given = arguments()
    torch.multiprocessing.spawn(train, args=(given,), nprocs=2)
