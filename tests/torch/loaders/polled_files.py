"""Another process writes batches into files. The main thread looks for one again and again, and sleeps between."""

import os
import subprocess
import sys
import time

import torch

from training import Load, Model, Truth, arguments

LOOKS = 0.01  # seconds
KEPT = 4  # files that are ahead


def write(given):
    """Writes a batch for as long as a load takes, unless enough are ahead."""
    load, number = Load(given), 0
    while True:
        if len(os.listdir(given.batches)) >= KEPT:
            time.sleep(LOOKS)
            continue
        load(number)
        path = os.path.join(given.directory, "unfinished")
        with open(path, "wb") as file:
            torch.save(torch.ones(16), file)
        os.rename(path, os.path.join(given.batches, f"{number:09}"))
        number += 1


def main():
    given = arguments()
    given.batches = os.path.join(given.directory, "batches")
    os.makedirs(given.batches, exist_ok=True)
    if os.environ.get("WRITES"):
        return write(given)
    writer = subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "WRITES": "1"})
    model, truth = Model(given.step), Truth(given)
    try:
        train(given.batches, model, truth)
    finally:
        writer.kill()


def train(folder, model, truth):
    truth.waits()
    while True:
        names = sorted(os.listdir(folder))
        if not names:
            time.sleep(LOOKS)
            continue
        path = os.path.join(folder, names[0])
        with open(path, "rb") as file:
            batch = torch.load(file)
        os.remove(path)
        truth.steps()
        model.train_for_a_while(batch)
        truth.waits()


if __name__ == "__main__":
    main()
