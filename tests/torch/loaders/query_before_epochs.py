"""A loop over the rows of a database, which sorts them before each epoch and computes a little for each."""

import sqlite3
import time

from training import Load, Model, Truth, arguments

BATCHES = 20
ROWS = [(number,) for number in range(3000)]
ORDER = f"select number from numbers order by random() limit {BATCHES}"
QUERY = f"select number, length(replace(hex(zeroblob(600000 + number)), '00', '1')) from ({ORDER})"


def main():
    given = arguments()
    model, truth, load = Model(given.step), Truth(given), Load(given)
    database = sqlite3.connect(":memory:")
    database.execute("create table numbers (number integer)")
    database.executemany("insert into numbers values (?)", ROWS)
    while True:
        truth.waits()
        until = time.thread_time() + BATCHES * load.seconds()
        rows = database.execute(QUERY)
        while time.thread_time() < until:
            rows = database.execute(QUERY)
        for row in rows:
            truth.steps()
            model.train_for_a_while(row)
            truth.waits()


if __name__ == "__main__":
    main()
