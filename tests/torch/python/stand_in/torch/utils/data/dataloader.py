"""The classes, functions and attributes of PyTorch's loader, and nothing behind them.

Stands in for PyTorch, which some Python versions do not have: the tests read how objects of this shape lie
in the memory of each version.
"""

import queue

from pause import pause


class Connection:
    def __init__(self, handle):
        self._handle = handle
        self._readable = True


class Queue:
    def __init__(self, handle):
        self._maxsize = 0
        self._reader = Connection(handle)


class BatchSampler:
    def __init__(self, batch_size):
        self.sampler = object()
        self.batch_size = batch_size
        self.drop_last = False


class DataLoader:
    def __init__(self, persistent=False, batches=1_000_000):
        self.dataset = object()
        self.num_workers = 8
        self.persistent = persistent
        self.batches = batches
        self._iterator = None

    def __iter__(self):
        if not self.persistent:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        return self._iterator


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._num_workers = loader.num_workers
        self._prefetch_factor = 3
        self._pin_memory = False
        self._persistent_workers = loader.persistent
        self._in_order = True
        self._index_sampler = BatchSampler(32)
        self._num_yielded = 0
        self._batches = loader.batches

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        return data

    def __iter__(self):
        return self


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def _next_data(self):
        pause("loading")
        return self._num_yielded


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        # As many attributes as the real iterator has: too many for the key-sharing dict of a class.
        for number in range(24):
            setattr(self, f"_filler_{number}", number)
        self._send_idx = 24
        self._rcvd_idx = 0
        self._tasks_outstanding = 24
        self._task_info = {index: (index % 8,) for index in range(24)}
        self._workers = []
        self._worker_result_queue = Queue(77)
        # As with a pin-memory thread, which keeps three batches ready.
        self._data_queue = queue.Queue()
        for batch in range(3):
            self._data_queue.put(batch)

    def _next_data(self):
        if self._num_yielded == self._batches:
            raise StopIteration
        self._get_data()
        # Two batches ahead of their turn, in a dict that has lost its first entries.
        self._task_info.pop(self._rcvd_idx)
        self._task_info[self._send_idx] = (0,)
        self._task_info[self._rcvd_idx + 1] = (1, "batch")
        self._task_info[self._rcvd_idx + 2] = (2, "batch")
        self._rcvd_idx += 1
        self._send_idx += 1
        return self._rcvd_idx

    def _get_data(self):
        return self._try_get_data()

    def _try_get_data(self):
        if self._num_yielded % 100 == 0:
            pause("waiting")
