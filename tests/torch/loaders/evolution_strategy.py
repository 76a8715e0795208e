"""An evolution strategy: processes of a pool evaluate variants of the model. There is no data, so the main thread waits for steps."""

import multiprocessing
import time

import torch

from training import Load, Truth, arguments

PARAMETERS = 512


def evaluate(seconds):
    torch.set_num_threads(1)
    model, probe = torch.nn.Linear(PARAMETERS, PARAMETERS), torch.ones(64, PARAMETERS)
    until = time.monotonic() + seconds
    with torch.no_grad():
        while time.monotonic() < until:
            reward = model(probe).mean()
    return float(reward)


def main():
    given = arguments()
    truth, load = Truth(given), Load(given)
    pool = multiprocessing.Pool(given.workers)
    parameters = torch.zeros(PARAMETERS)
    while True:
        truth.waits()
        truth.steps()
        rewards = pool.map(evaluate, [load.seconds()] * given.workers)
        parameters += sum(rewards) * torch.randn(PARAMETERS)


if __name__ == "__main__":
    main()
