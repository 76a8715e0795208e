"""Hugging Face's Trainer; without workers, which is its default, it loads in the main thread."""

import os

os.environ["USE_TF"] = "0"

import torch
from transformers import Trainer, TrainingArguments

from training import Load, Model, Timed, Truth, arguments


class Samples(torch.utils.data.Dataset):
    def __init__(self, load):
        self.load = load

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        self.load(index)
        return {"input": torch.ones(64)}


class Network(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model, self.layers = model, model.layers

    def forward(self, input):
        self.model.train_step(input)
        return {"loss": self.layers(input).mean()}


class TimedTrainer(Trainer):
    truth: Truth

    def get_train_dataloader(self):
        return Timed(super().get_train_dataloader(), self.truth)


def main():
    given = arguments()
    model, truth = Network(Model(given.step)), Truth(given)
    settings = TrainingArguments(
        output_dir=os.path.join(given.directory, "trained"),
        per_device_train_batch_size=1,
        dataloader_num_workers=given.workers,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = TimedTrainer(model, settings, train_dataset=Samples(Load(given)))
    trainer.truth = truth
    trainer.train()


if __name__ == "__main__":
    main()
