"""Data in memory: within its step, the loop gives a thread what a model says, and waits for the answer."""

import queue
import threading

import torch

from training import Load, Model, Truth, arguments


def judge(load, scores, answers):
    while True:
        score = scores.get()
        load(0)
        answers.put(score)


def main():
    given = arguments()
    model, truth, scorer = Model(given.step), Truth(given), torch.nn.Linear(1024, 1024)
    scores, answers = queue.Queue(), queue.Queue()
    threading.Thread(target=judge, args=(Load(given), scores, answers), daemon=True).start()
    samples = torch.rand(256, 1024)
    while True:
        truth.waits()
        truth.steps()
        with torch.no_grad():
            score = scorer(samples)
        scores.put(score.mean())
        answer = answers.get()
        model.train_for_a_while(samples * answer)


if __name__ == "__main__":
    main()
