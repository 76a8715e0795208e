"""Fresh processes, which load PyTorch too, make parts of a batch and send them through pipes: environments of a game."""

import multiprocessing

import torch

from training import Load, Model, Truth, arguments

ENVIRONMENTS = 2


def environment(pipe, given):
    load = Load(given, parts=ENVIRONMENTS)
    while True:
        action = pipe.recv()
        pipe.send(torch.full((16,), float(load(action))).numpy())


def main():
    given = arguments()
    context = multiprocessing.get_context("spawn")
    pipes = []
    for _ in range(ENVIRONMENTS):
        ours, theirs = context.Pipe()
        context.Process(target=environment, args=(theirs, given), daemon=True).start()
        pipes.append(ours)
    model, truth = Model(given.step), Truth(given)
    # They need long to start.
    for pipe in pipes:
        pipe.send(0)
        pipe.recv()
    step = 0
    while True:
        truth.waits()
        for pipe in pipes:
            pipe.send(step)
        observations = [pipe.recv() for pipe in pipes]
        truth.steps()
        model.train_for_a_while(observations)
        step += 1


if __name__ == "__main__":
    main()
