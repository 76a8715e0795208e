"""MosaicML streaming: torch's workers, and threads in them that fetch shards."""

import fcntl
import os
import tempfile

import streaming
from torch.utils.data import DataLoader

from training import Load, Model, Truth, arguments


class Samples(streaming.StreamingDataset):
    def __init__(self, load, **settings):
        super().__init__(**settings)
        self.load = load

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return self.load(sample["number"])


def main():
    given = arguments()
    remote, local = os.path.join(given.directory, "remote"), os.path.join(given.directory, "local")
    with streaming.MDSWriter(out=remote, columns={"number": "int"}, size_limit=1 << 12) as shards:
        for number in range(20_000):
            shards.write({"number": number})
    model, truth = Model(given.step), Truth(given)
    # Two processes that look for a free name in shared memory at the same time would take the same one.
    with open(os.path.join(tempfile.gettempdir(), "mosaicml_streaming.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dataset = Samples(Load(given), remote=remote, local=local, batch_size=1, shuffle=False)
    loader = DataLoader(dataset, batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
