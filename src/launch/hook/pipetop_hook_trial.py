"""Experiments on an unmodified script: other settings for its DataLoaders, and batches from a cache instead of loading.
The environment variable PIPETOP_HOOK selects them; docs/probe.md lists its words.
"""

import inspect
import os
import sys
import weakref
from collections import UserDict, deque
from copy import copy

# The settings of a DataLoader that can be changed.
_SETTINGS = {"workers", "prefetch", "pin"}


def _read(text):
    """Parses `text`: returns the requested settings, and the words that are unknown or invalid."""
    wishes, unknown = {}, []
    least = {"workers": 0, "prefetch": 1, "pin": 0, "cache": 1, "after": 0}
    for word in text.split():
        key, _, value = word.partition("=")
        try:
            number = int(value)
            if number < least[key] or (key == "pin" and number > 1):
                raise ValueError
            wishes[key] = number
        except (KeyError, ValueError):
            unknown.append(word)
    return wishes, unknown


_WISHES, UNKNOWN = _read(os.environ.get("PIPETOP_HOOK", ""))


def cache():
    """Returns the cache, or None if batches are loaded as usual."""
    return _Cache(_WISHES["cache"], _WISHES.get("after", 0)) if "cache" in _WISHES else None


def has_settings():
    return not _SETTINGS.isdisjoint(_WISHES)


class _Cache:
    """Keeps the last batches of each loader. After `after` batches it returns these in turn, as if loading were free.
    With several loaders, this applies only to those used for training, not to a validation loader."""

    def __init__(self, size, after):
        self.size, self.after = size, max(after, 1)
        self.loaders = {}
        self.count = 0
        self.on = False

    def loader(self, iterator):
        # Each loader has one sampler, which chooses the items to load and stays the same over its epochs.
        sampler = getattr(iterator, "_index_sampler", iterator)
        loader = self.loaders.get(id(sampler))
        if loader is None:
            loader = self.loaders[id(sampler)] = _Kept(sampler, self.size)
        loader.iterator = weakref.ref(iterator) if sampler is not iterator else lambda: iterator
        return loader

    def switches_on(self, loader):
        """Whether the requested batch of this loader is the first to come from the cache."""
        if self.on or self.count < self.after:
            return False
        others = self.loaders.values()
        if not loader.count or any(other.count > loader.count for other in others):
            # A loader for validation: it must end, so that training continues.
            return False
        for other in others:
            # Read in step with it, as by `zip`: not ended, and not abandoned long ago.
            reading = other.iterator is not None and other.iterator() is not None
            other.again = other is loader or (reading and 2 * other.count >= loader.count)
        self.on = True
        return True

    def keep(self, loader, batch):
        self.count += 1
        loader.count += 1
        # The script may change the batch that it got.
        loader.batches.append(_repacked(batch))


class _Kept:
    """The last batches of one loader."""

    def __init__(self, sampler, size):
        # Kept alive, so that no other loader gets its id.
        self.sampler = sampler
        self.batches = deque(maxlen=size)
        self.count = 0
        # The iterator that reads it. None: its epoch has ended.
        self.iterator = None
        self.again = False

    def next(self):
        batch = self.batches[0]
        self.batches.rotate(-1)
        return _repacked(batch)


def _repacked(batch):
    """Returns the same tensors in new containers, because a script may remove items from a batch."""
    kind = type(batch)
    if kind is dict:
        return {key: _repacked(value) for key, value in batch.items()}
    if kind is list:
        return [_repacked(value) for value in batch]
    if kind is tuple:
        return tuple([_repacked(value) for value in batch])
    if isinstance(batch, UserDict):
        return copy(batch)
    return batch


def _apply_settings(settings):
    """Applies the requested settings to `settings` of a DataLoader, and removes those that no longer fit."""
    if "workers" in _WISHES and not (_WISHES["workers"] and _may_have_no_children()):
        settings["num_workers"] = _WISHES["workers"]
        if not _WISHES["workers"]:
            # Settings that are only valid with workers.
            for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
                settings.pop(name, None)
    if "prefetch" in _WISHES and settings.get("num_workers"):
        settings["prefetch_factor"] = _WISHES["prefetch"]
    if "pin" in _WISHES:
        settings["pin_memory"] = bool(_WISHES["pin"])


def _may_have_no_children():
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.current_process().daemon


def overridden(init, disable):
    """Returns `DataLoader.__init__` with the requested settings applied."""
    signature = inspect.signature(init)

    def __init__(self, *arguments, **settings):
        try:
            # A worker's own loaders belong to its data set and are not changed.
            data = sys.modules.get("torch.utils.data")
            if data is not None and data.get_worker_info() is None:
                bound = signature.bind(self, *arguments, **settings)
                _apply_settings(bound.arguments)
                (_, *arguments), settings = bound.args, bound.kwargs
        except TypeError:
            # An error of the script, which torch reports.
            pass
        except Exception as error:
            disable(error)
        init(self, *arguments, **settings)

    return __init__
