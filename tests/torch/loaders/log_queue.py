"""Batches through a bare pipe of the operating system, and a thread that logs what the trainer puts into a queue."""

import os
import queue
import threading
import time

from training import ENDLESS, Load, Model, Truth, arguments


def produce(load, pipe, workers):
    for index in range(ENDLESS):
        load(index)
        os.write(pipe, b"x" * 8)


def write_down(log):
    while True:
        log.get()
        time.sleep(0.08)


def receive(pipe):
    return os.read(pipe, 8)


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given, parts=given.workers)
    reading, writing = os.pipe()
    if os.fork() == 0:
        produce(load, writing, given.workers)
    log = queue.Queue()
    threading.Thread(target=write_down, args=(log,), daemon=True).start()
    step = 0
    while True:
        truth.waits()
        batch = receive(reading)
        truth.steps()
        model.train_step(batch)
        step += 1
        metrics = {"step": step, "loss": 1.0 / step}
        log.put(metrics)


if __name__ == "__main__":
    main()
