"""The data is in memory. Each step runs a command and keeps its output."""

import subprocess

from training import Load, Model, Truth, arguments


def output_of_command(seconds):
    return subprocess.check_output(["sh", "-c", f"sleep {seconds}; echo 7"], text=True)


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    data = [[float(index)] for index in range(1000)]
    log, step = [], 0
    while True:
        truth.waits()
        batch = data[step % len(data)]
        truth.steps()
        model.train_for_a_while(batch)
        log.append(output_of_command(load.seconds()))
        step += 1


if __name__ == "__main__":
    main()
