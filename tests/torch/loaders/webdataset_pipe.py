"""WebDataset: shards that come out of a slow command."""

import os
import shlex

import torch
import webdataset

from training import Model, Truth, arguments

IN_A_SHARD = 20


def write_shards(directory, count):
    for number in range(count):
        with webdataset.TarWriter(os.path.join(directory, f"{number}.tar")) as shard:
            for key in range(IN_A_SHARD):
                shard.write({"__key__": f"{number}-{key}", "pth": torch.zeros(50_000)})


def slow(path, seconds):
    """Returns a command that writes out a shard within `seconds`."""
    size = os.path.getsize(path)
    parts = 2 * IN_A_SHARD
    part = -(-size // parts)
    copy = f"tail -c +$((i * {part} + 1)) {shlex.quote(path)} | head -c {part}"
    return f"pipe:i=0; while [ $i -lt {parts} ]; do sleep {seconds / parts:.4f}; {copy}; i=$((i + 1)); done"


def main():
    given = arguments()
    write_shards(given.directory, given.workers)
    urls = [slow(os.path.join(given.directory, f"{n}.tar"), given.load * IN_A_SHARD) for n in range(given.workers)]
    dataset = webdataset.WebDataset(urls, resampled=True, shardshuffle=False, nodesplitter=None).decode().to_tuple("pth")
    model, truth = Model(given.step), Truth(given)
    loader = webdataset.WebLoader(dataset, batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
