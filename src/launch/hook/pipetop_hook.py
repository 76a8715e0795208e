"""Reports each step of a training loop to pipetop; docs/probe.md describes the protocol.

`pipetop run` loads this module into every Python process of the command that it launches, where it times torch's
DataLoader automatically. For any other iterable of batches, a script calls `watch`; it also runs without pipetop:

    try:
        from pipetop_hook import watch
    except ImportError:
        watch = iter

    for batch in watch(batches):
        ...

Only the main thread of a training process is timed, never a DataLoader worker. Nothing here blocks. An error in
this module never reaches the script: the hook disables itself and reports the error to pipetop.
"""

import atexit
import errno
import os
import socket
import sys
import threading
import weakref
from time import monotonic_ns as _now

import pipetop_hook_device as _device
import pipetop_hook_trial as _trial

# Steps are collected for this many nanoseconds, and at most this many of them, before they are sent; for a shorter time
# if no batch is ready, as the wait may be long.
_GATHERED = 20_000_000
_BEFORE_A_WAIT = 5_000_000
_MANY = 64
# Number of steps kept while the reader is behind. About 30 KiB.
_KEPT = 384

# `inspect.CO_GENERATOR`.
_GENERATOR = 0x20

_HEADER = b"pipetop-probe/1 pid=%d lost=%d%s\n"

# The probe of this process. None: not decided yet. False: reports are not wanted, or it has failed.
_probe = None
# Probes of the processes before a fork. Not freed: the child must not release what belongs to a GPU.
_before_fork = []
_this_thread = threading.get_ident


class _Probe:
    """Times the steps of the main thread and sends them."""

    def __init__(self, address):
        name = os.fsencode(address)
        self.address = b"\0" + name[1:] if name[:1] == b"@" else name
        # Not connected: if the script closes descriptors that it does not know and opens its own, then sending to an
        # address fails on the file that has our number now, and none of our data gets into it.
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.thread = threading.main_thread().ident
        self.pid = os.getpid()
        rank = os.environ.get("RANK", "")
        self.rank = b" rank=%d" % int(rank) if rank.isdigit() else b""
        # Facts about the loader that was timed last, and about the cache once batches come from it.
        self.loader_facts = self.cache_facts = b""
        self.cache = _trial.cache()
        # Whether the trainer is in the loader: a loader that is read within it has no steps of its own.
        self.inside = False
        # The current step: when it asked for its batch and when it had it. 0 = there is none.
        self.wait_from = self.wait_to = 0
        # Time taken to begin with loaders since the last batch, and when that was done.
        self.beginning = self.begun_at = 0
        # The GPU that it uses. None: none so far. False: it cannot be timed.
        self.device = None
        # A line for the listener, until it is sent.
        self.pending_line = b""
        self.ready = None
        self.number = self.lost = self.sent_at = 0
        self.lines = []
        self.warned = False
        # The loader iterator that was timed last, and the function that counts its ready batches.
        self.iterator = lambda: None
        self.count_ready = None

    def batch_requested(self, at, iterator):
        """Called when the trainer requests a batch; this ends the current step."""
        # Creating a loader's iterator, which starts its workers, also counts as waiting, anywhere in the step.
        wait_from = at - self.beginning
        if self.wait_to:
            self.ended(wait_from)
        if self.device:
            try:
                self.device.on_request(self.lines, self.beginning and at - self.begun_at)
            except Exception as error:
                self.disable_device(error)
        self.beginning = 0
        if iterator is None:
            self.ready = None
        else:
            if self.iterator() is not iterator:
                self.switch_iterator(iterator)
            count_ready = self.count_ready
            self.ready = count_ready and count_ready(iterator)
        gathered = at - self.sent_at
        if gathered >= (_BEFORE_A_WAIT if self.ready == 0 else _GATHERED) or not len(self.lines) % _MANY:
            self.sent_at = at
            self.send()
        self.wait_from = wait_from

    def ended(self, at):
        ready = self.ready
        if ready is None:
            line = b"step %d %d %d %d" % (self.number, self.wait_from, self.wait_to, at)
        else:
            line = b"step %d %d %d %d ready=%d" % (
                self.number,
                self.wait_from,
                self.wait_to,
                at,
                ready,
            )
        if self.device:
            self.device.step(line, self.wait_to - self.wait_from)
        else:
            self.lines.append(line)
        self.wait_to = 0
        self.number += 1

    def begin_iteration(self):
        """Called when the trainer starts to iterate over a loader: the wait for the first batch begins."""
        self.inside = True
        if self.device:
            try:
                self.device.on_begin()
            except Exception as error:
                self.disable_device(error)

    def end_iteration_start(self, took):
        self.inside = False
        self.beginning += took
        self.begun_at = _now()

    def look_for_device(self):
        try:
            self.device = _device.Device.in_use()
            if self.device:
                name = " ".join(self.device.name.split())
                self.pending_line = b"device %s\n" % name.encode("utf-8", "replace")
        except Exception as error:
            self.disable_device(error)

    def disable_device(self, error):
        """Stops timing the GPU; the loop is still timed."""
        if self.device:
            self.lines.extend(line for line, *_ in self.device.behind)
        self.device = False
        self.notice("cannot report the GPU's idle time: %s: %s" % (type(error).__name__, error))

    def switch_iterator(self, iterator):
        """Switches to another loader iterator: determines its capacity and how to count its ready batches."""
        self.send()
        self.iterator = weakref.ref(iterator)
        self.count_ready = None
        self.loader_facts = b""
        workers = getattr(iterator, "_num_workers", None)
        if workers is not None:
            pin = getattr(iterator, "_pin_memory", False)
            self.loader_facts = b" workers=%d pin=%d" % (workers, bool(pin))
        capacity = (workers or 0) * (getattr(iterator, "_prefetch_factor", 0) or 0)
        known = all(hasattr(iterator, name) for name in ("_task_info", "_rcvd_idx", "_data_queue"))
        if capacity and known:
            self.loader_facts += b" capacity=%d" % capacity
            shared = hasattr(iterator._data_queue, "qsize") and not hasattr(iterator._data_queue, "queue")
            self.count_ready = _ready_shared if shared else _ready_pinned

    def send(self):
        """Sends the collected lines, without blocking."""
        lines = self.lines
        if self.device is None:
            self.look_for_device()
        if not lines:
            return
        try:
            facts = self.rank + self.loader_facts + self.cache_facts
            header = _HEADER % (self.pid, self.lost, facts) + self.pending_line
            self.socket.sendto(header + b"\n".join(lines), self.address)
            self.pending_line = b""
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EINTR):
                # pipetop has ended.
                _stop()
            elif len(lines) < _KEPT:
                return
            self.lost += len(lines)
        lines.clear()

    def switch_to_cache(self, loader):
        """Called when batches come from the cache, from the current step on."""
        self.send()
        self.cache_facts = b" cached=%d cached_from=%d" % (len(loader.batches), self.number)

    def pause(self):
        """Ends the current step, because the epoch or the process ends."""
        if self.wait_to:
            self.ended(_now())
        if self.device:
            try:
                self.device.came = None
                self.device.report_finished(self.lines, 0)
            except Exception as error:
                self.disable_device(error)
        self.send()

    def notice(self, text):
        text = " ".join(text.split())[:200]
        message = _HEADER % (self.pid, self.lost, self.rank) + b"notice " + text.encode("utf-8", "replace")
        try:
            self.socket.sendto(message + b"\n", self.address)
        except OSError:
            pass

    def other_thread(self):
        if not self.warned:
            self.warned = True
            self.notice("another thread than the main one reads the loader: its waits are not the trainer's")


def _ready_shared(iterator):
    """Number of ready batches: those that the iterator has received and can return next, and those in its queue."""
    tasks = iterator._task_info
    first = number = iterator._rcvd_idx
    while len(tasks.get(number, ())) == 2:
        number += 1
    # Reads one semaphore: takes nothing out and locks nothing.
    return number - first + iterator._data_queue.qsize()


def _ready_pinned(iterator):
    tasks = iterator._task_info
    first = number = iterator._rcvd_idx
    while len(tasks.get(number, ())) == 2:
        number += 1
    # The length of a deque: its lock is left to the thread that pins.
    return number - first + len(iterator._data_queue.queue)


def _start():
    """Decides, at the first batch of a process, whether the process reports."""
    global _probe
    _probe = False
    try:
        address = os.environ.get("PIPETOP_PROBE")
        data = sys.modules.get("torch.utils.data")
        worker = data is not None and data.get_worker_info() is not None
        if address and not worker:
            _probe = _Probe(address)
            if _trial.UNKNOWN:
                _probe.notice("ignoring unknown settings in PIPETOP_HOOK: " + " ".join(_trial.UNKNOWN))
            multiprocessing = sys.modules.get("multiprocessing.util")
            if multiprocessing is not None:
                # The processes of multiprocessing end without atexit.
                multiprocessing.Finalize(None, _at_exit, exitpriority=0)
    except Exception as error:
        _disable(error)
    return _probe


def _stop():
    global _probe
    _probe = False


def _disable(error):
    """Disables the hook after an error, and reports the error."""
    global _probe
    try:
        probe = _probe or _Probe(os.environ["PIPETOP_PROBE"])
        _probe = False
        probe.notice("the Python hook is disabled after an error: %s: %s" % (type(error).__name__, error))
    except Exception:
        _probe = False


def _forget():
    # In a forked child: the parent reports its own steps.
    global _probe
    if _probe:
        _before_fork.append(_probe)
    _probe = None


def _at_exit():
    try:
        if _probe:
            _probe.pause()
    except Exception:
        pass


def _is_helper():
    """Whether this process is a helper of its parent process, and not a rank of a training job."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return False
    distributed = sys.modules.get("torch.distributed")
    return distributed is None or not distributed.is_available() or not distributed.is_initialized()


def _timed(take, is_loader, own_threads=False):
    """Returns a wrapper that times each call of `take`, the function that returns the next batch. A loader with
    `own_threads` also calls it in threads and processes of its own."""

    def __next__(self):
        came = _now()
        probe = _probe
        if probe is None:
            if own_threads and _is_helper():
                return take(self)
            probe = _start()
        if not probe:
            return take(self)
        cache = loader = None
        try:
            if _this_thread() != probe.thread:
                if not own_threads:
                    probe.other_thread()
                probe = None
            elif probe.inside:
                probe = None
            else:
                probe.batch_requested(came, self if is_loader else None)
                cache = probe.cache
                if cache is not None:
                    loader = cache.loader(self)
                    if cache.switches_on(loader):
                        probe.switch_to_cache(loader)
                    if loader.again:
                        batch = loader.next()
                        probe.wait_to = _now()
                        if probe.device:
                            probe.device.on_batch()
                        return batch
        except Exception as error:
            _disable(error)
            probe = None
        if probe is None:
            return take(self)
        probe.inside = True
        try:
            batch = take(self)
        except BaseException:
            # There is no batch, so this was not a step.
            probe.inside = False
            if loader is not None:
                loader.iterator = None
            _at_exit()
            raise
        probe.wait_to = _now()
        probe.inside = False
        if probe.device:
            try:
                probe.device.on_batch()
            except Exception as error:
                probe.disable_device(error)
        if loader is not None:
            try:
                cache.keep(loader, batch)
            except Exception as error:
                _disable(error)
        return batch

    return __next__


def _timed_iter(begin):
    """Returns a wrapper that times each call of `begin`, the function that makes an iterator of a loader."""

    def __iter__(self):
        came = _now()
        probe = _probe
        if probe is None:
            probe = _start()
        if not probe or probe.inside or _this_thread() != probe.thread:
            return begin(self)
        probe.begin_iteration()
        try:
            return begin(self)
        finally:
            probe.end_iteration_start(_now() - came)

    return __iter__


def _replace(owner, name, function):
    """Replaces a method with `function`, which takes over its name and docstring."""
    before = getattr(owner, name)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, attribute, getattr(before, attribute))
    function.__wrapped__ = before
    function.timed_by_pipetop = True
    setattr(owner, name, function)


def install(dataloader):
    """Times the loaders of torch.utils.data.dataloader, which is passed in."""
    if not os.environ.get("PIPETOP_PROBE"):
        return
    try:
        iterator = vars(dataloader)["_BaseDataLoaderIter"]
        if hasattr(iterator.__next__, "timed_by_pipetop"):
            return
        loader = vars(dataloader)["DataLoader"]
        _replace(iterator, "__next__", _timed(iterator.__next__, True))
        _replace(loader, "__iter__", _timed_iter(loader.__iter__))
        if _trial.has_settings():
            _replace(loader, "__init__", _trial.overridden(loader.__init__, _disable))
    except Exception as error:
        # The process that started this one has the same torch and reports the error itself.
        process = sys.modules.get("multiprocessing.process")
        if process is None or process.parent_process() is None:
            _disable(error)


def install_others(module, places):
    """Times the loaders of `module` that `places` lists as MODULE:CLASS.METHOD, where `*` may end a module name or stand
    for every class. Methods that do not exist, or take more arguments than `self`, are skipped."""
    if not os.environ.get("PIPETOP_PROBE"):
        return
    try:
        for place in places:
            name, _, rest = place.partition(":")
            owner, _, method = rest.partition(".")
            inside = name.endswith("*") and module.__name__.startswith(name[:-1])
            if not inside and name != module.__name__:
                continue
            for one in list(vars(module).values()):
                if isinstance(one, type) and owner in ("*", one.__name__) and one.__module__ == module.__name__:
                    _time_method(one, method)
    except Exception as error:
        _disable(error)


def _time_method(owner, name):
    method = vars(owner).get(name)
    code = getattr(method, "__code__", None)
    alone = code is not None and code.co_argcount <= 1 and not code.co_kwonlyargcount
    if not alone or hasattr(method, "timed_by_pipetop") or getattr(method, "__isabstractmethod__", False):
        return
    if code.co_flags & _GENERATOR:
        _replace(owner, name, _yielding(method))
    elif name == "__iter__":
        _replace(owner, name, _timed_iter(method))
    else:
        _replace(owner, name, _timed(method, False, True))


def _yielding(generate):
    """Returns a wrapper of `generate`, a generator function of batches, that times each batch."""

    def __iter__(self):
        return _each(generate(self), _timed(next, False, True))

    return __iter__


def _each(iterator, take):
    while True:
        try:
            batch = take(iterator)
        except StopIteration:
            return
        yield batch


def watch(iterable):
    """Yields the items of `iterable`, and reports the time spent waiting for each as waiting for data."""
    yield from _each(_timed_iter(iter)(iterable), _timed(next, False))


os.register_at_fork(after_in_child=_forget)
atexit.register(_at_exit)
