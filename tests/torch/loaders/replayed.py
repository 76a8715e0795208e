"""A stock loader whose data is in memory; after the model has run, the main thread makes samples of a buffer for it."""

from torch.utils.data import DataLoader

from samples import Samples
from training import Load, Model, Truth


def replay(given, sample):
    """Trains; `sample` makes samples for so many seconds."""
    model, truth, load = Model(given.step), Truth(given), Load(given)
    loader = DataLoader(Samples(lambda index: index), batch_size=1, num_workers=given.workers)
    truth.waits()
    for batch in loader:
        truth.steps()
        model.layers(model.input)
        truth.waits()
        sample(load.seconds())
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()
