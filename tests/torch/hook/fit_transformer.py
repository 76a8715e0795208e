"""A tiny language model, trained and checked by the Trainer of Transformers. Prints, as JSON, what it did and how
long it loaded."""

import json
import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator


class Texts(Dataset):
    began = None
    seconds = 0.0

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        Texts.began = Texts.began or time.perf_counter()
        time.sleep(0.001)
        words = torch.arange(8) % 7 + index % 3
        return {"input_ids": words, "labels": words.clone()}


def collate(texts):
    batch = default_data_collator(texts)
    Texts.seconds += time.perf_counter() - Texts.began
    Texts.began = None
    return batch


class Counted(Trainer):
    batches = 0

    def compute_loss(self, *arguments, **settings):
        self.batches += 1
        return super().compute_loss(*arguments, **settings)


def main():
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1))
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            num_train_epochs=2,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Counted(model, settings, collate, Texts(80), Texts(20))
        trainer.train()
    print(json.dumps({"pid": os.getpid(), "batches": trainer.batches, "seconds": Texts.seconds}))


if __name__ == "__main__":
    main()
