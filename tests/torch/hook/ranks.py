"""One rank of several that torchrun started. Prints, as JSON, its number and how long it waited for data."""

import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Points(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.full((4,), float(index))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    points = Points()
    sampler = DistributedSampler(points)
    loader = DataLoader(points, 4, sampler=sampler, num_workers=1, persistent_workers=True)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    waits = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        came = time.perf_counter()
        for batch in loader:
            waits.append(time.perf_counter() - came)
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            came = time.perf_counter()
    dist.destroy_process_group()
    told = {"pid": os.getpid(), "rank": rank, "seconds": sum(waits), "waits": waits, "batches": len(waits)}
    # In one call, as the other ranks write to the same pipe.
    os.write(1, (json.dumps(told) + "\n").encode())


if __name__ == "__main__":
    main()
