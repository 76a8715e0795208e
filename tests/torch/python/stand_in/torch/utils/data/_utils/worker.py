"""The loop of a PyTorch worker: its locals, and nothing behind them."""

import functools


def _worker_loop(dataset, fetch, worker_id, num_workers, persistent_workers):
    fetcher = functools.partial(fetch)
    idx, index = 41, list(range(32))
    data = fetcher(index)
    del data, idx, index
    fetcher([])
    # The next epoch.
    fetcher = functools.partial(fetch)
    idx, index = 41, [0]
    data = fetcher(index)
    # A number too large for one digit of a CPython int.
    idx, index = 1 << 40, [0]
    data = fetcher(index)
