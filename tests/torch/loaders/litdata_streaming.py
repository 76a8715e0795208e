"""LitData: torch's workers, and a thread in each that prepares chunks."""

import os

import litdata
from litdata.streaming.writer import BinaryWriter

from training import Load, Model, Truth, arguments


class Samples(litdata.StreamingDataset):
    def __init__(self, load, *positional, **settings):
        super().__init__(*positional, **settings)
        self.load = load

    def __getitem__(self, index):
        super().__getitem__(index)
        return self.load(0)


def main():
    given = arguments()
    chunks = os.path.join(given.directory, "chunks")
    writer = BinaryWriter(chunks, chunk_size=1_000)
    for number in range(20_000):
        writer[number] = {"number": number}
    writer.done()
    writer.merge()
    model, truth = Model(given.step), Truth(given)
    loader = litdata.StreamingDataLoader(Samples(Load(given), chunks), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.train_step(batch)
        truth.waits()


if __name__ == "__main__":
    main()
