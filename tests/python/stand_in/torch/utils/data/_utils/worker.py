"""The loop of a PyTorch worker: its locals, and nothing behind them."""


def _worker_loop(dataset, fetch, worker_id, num_workers, persistent_workers):
    idx, index = 41, list(range(32))
    data = fetch(index)
    del data, idx, index
    fetch([])
