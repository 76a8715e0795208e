"""Lightning's Trainer with a stock loader."""

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

from training import ENDLESS, Load, Model, Timed, Truth, arguments


class Samples(Dataset):
    def __init__(self, load):
        self.load = load

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        self.load(index)
        return torch.ones(64)


class Network(lightning.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model, self.layers = model, model.layers

    def training_step(self, batch, index):
        self.model.train_step(batch)
        return self.layers(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.layers.parameters(), lr=0.01)


def main():
    given = arguments()
    truth = Truth(given)
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=given.directory,
    )
    loader = DataLoader(Samples(Load(given)), num_workers=given.workers)
    trainer.fit(Network(Model(given.step)), Timed(loader, truth))


if __name__ == "__main__":
    main()
