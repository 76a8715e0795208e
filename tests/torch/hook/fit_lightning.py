"""A Lightning module that is fitted and checked. Prints, as JSON, what it did and how
long it loaded."""

import json
import os
import time

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    began = None
    seconds = 0.0

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        Points.began = Points.began or time.perf_counter()
        time.sleep(0.001)
        return torch.full((4,), float(index))


def collate(points):
    batch = torch.stack(points)
    Points.seconds += time.perf_counter() - Points.began
    Points.began = None
    return batch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.batches = 0

    def training_step(self, batch, number):
        self.batches += 1
        return self.layer(batch).square().mean()

    def validation_step(self, batch, number):
        self.batches += 1

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)


def main():
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loaders = [DataLoader(Points(length), 4, collate_fn=collate) for length in (80, 20)]
    trainer.fit(model, *loaders)
    print(json.dumps({"pid": os.getpid(), "batches": model.batches, "seconds": Points.seconds}))


if __name__ == "__main__":
    main()
