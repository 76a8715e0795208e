"""Tells pipetop of each step of a training loop: docs/probe.md has the protocol.

`pipetop run` puts this into the Pythons below the command that it launches. There it times torch's DataLoader
by itself. For any other iterable of batches a script says so, and runs without pipetop as well:

    try:
        from pipetop_hook import watch
    except ImportError:
        watch = iter

    for batch in watch(batches):
        ...

Only the main thread of a process that trains is timed, never a DataLoader's worker. Nothing here waits, and
nothing that fails here reaches the script: it is left alone from then on, and pipetop is told why.
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

# Steps are gathered for so many nanoseconds, and so many of them, before they are sent; for a shorter time
# where no batch is ready, as the wait may be long.
_GATHERED = 20_000_000
_BEFORE_A_WAIT = 5_000_000
_MANY = 64
# So many are kept while the reader is behind. About 30 KiB.
_KEPT = 384

_HEADER = b"pipetop-probe/1 pid=%d lost=%d%s\n"

# The probe of this process. None: not asked yet. False: nobody wants to know, or it has failed.
_probe = None
# Those of the processes before a fork. Not freed: what belongs to a GPU is not for the child to give back.
_left = []
_this_thread = threading.get_ident


class _Probe:
    """Times the steps of the main thread and sends them."""

    def __init__(self, address):
        name = os.fsencode(address)
        self.address = b"\0" + name[1:] if name[:1] == b"@" else name
        # Not connected: if the script closes descriptors that it does not know and opens its own, then
        # sending to an address fails on whatever has our number now, and nothing of ours gets into it.
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.thread = threading.main_thread().ident
        self.pid = os.getpid()
        rank = os.environ.get("RANK", "")
        self.rank = b" rank=%d" % int(rank) if rank.isdigit() else b""
        # Of the loader that was timed last, and of the cache once batches come from it.
        self.loader_facts = self.cache_facts = b""
        self.cache = _trial.cache()
        # The trainer is in the loader: a loader that is read within it has no steps of its own.
        self.inside = False
        # The step that goes on: when it came for its batch and had it. 0 = there is none.
        self.wait_from = self.wait_to = 0
        # What it took to begin with loaders since the last batch, and when that was done.
        self.beginning = self.begun_at = 0
        # The GPU that it uses. None: none so far. False: it cannot be timed.
        self.device = None
        # A line for whoever listens, until it is sent.
        self.news = b""
        self.ready = None
        self.number = self.lost = self.sent_at = 0
        self.lines = []
        self.told = False
        # The loader iterator that was timed last, and how its queue is asked.
        self.iterator = lambda: None
        self.count_ready = None

    def came(self, at, iterator):
        """The trainer comes for a batch: the step that went on has ended."""
        # To begin with a loader, which starts its workers, is a wait as well, wherever in the step it was.
        wait_from = at - self.beginning
        if self.wait_to:
            self.ended(wait_from)
        if self.device:
            try:
                self.device.comes(self.lines, self.beginning and at - self.begun_at)
            except Exception as error:
                self.leave_device(error)
        self.beginning = 0
        if iterator is None:
            self.ready = None
        else:
            if self.iterator() is not iterator:
                self.turn_to(iterator)
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

    def begin(self):
        """The trainer begins with a loader: its wait for the first batch."""
        self.inside = True
        if self.device:
            try:
                self.device.begins()
            except Exception as error:
                self.leave_device(error)

    def begun(self, took):
        self.inside = False
        self.beginning += took
        self.begun_at = _now()

    def look_for_device(self):
        try:
            self.device = _device.Device.in_use()
            if self.device:
                name = " ".join(self.device.name.split())
                self.news = b"device %s\n" % name.encode("utf-8", "replace")
        except Exception as error:
            self.leave_device(error)

    def leave_device(self, error):
        """Times the loop alone from now on."""
        if self.device:
            self.lines.extend(line for line, *_ in self.device.behind)
        self.device = False
        self.notice("cannot report the GPU's idle time: %s: %s" % (type(error).__name__, error))

    def turn_to(self, iterator):
        """Another loader, or a new round of one: how many batches it can hold, and who counts them."""
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
        """Sends what was gathered, without waiting."""
        lines = self.lines
        if self.device is None:
            self.look_for_device()
        if not lines:
            return
        try:
            facts = self.rank + self.loader_facts + self.cache_facts
            header = _HEADER % (self.pid, self.lost, facts) + self.news
            self.socket.sendto(header + b"\n".join(lines), self.address)
            self.news = b""
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EINTR):
                # pipetop has ended.
                _stop()
            elif len(lines) < _KEPT:
                return
            self.lost += len(lines)
        lines.clear()

    def turn_to_cache(self, loader):
        """From this step on its batches are those that were kept."""
        self.send()
        self.cache_facts = b" cached=%d cached_from=%d" % (len(loader.batches), self.number)

    def pause(self):
        """No step goes on: an epoch or the process ends."""
        if self.wait_to:
            self.ended(_now())
        if self.device:
            try:
                self.device.came = None
                self.device.tell(self.lines, 0)
            except Exception as error:
                self.leave_device(error)
        self.send()

    def notice(self, text):
        text = " ".join(text.split())[:200]
        message = _HEADER % (self.pid, self.lost, self.rank) + b"notice " + text.encode("utf-8", "replace")
        try:
            self.socket.sendto(message + b"\n", self.address)
        except OSError:
            pass

    def other_thread(self):
        if not self.told:
            self.told = True
            self.notice("another thread than the main one reads the loader: its waits are not the trainer's")


def _ready_shared(iterator):
    """Batches that the iterator holds already and can hand out one after the other, and those in its queue."""
    tasks = iterator._task_info
    first = number = iterator._rcvd_idx
    while len(tasks.get(number, ())) == 2:
        number += 1
    # Reads one semaphore: nothing is taken out, nothing is locked.
    return number - first + iterator._data_queue.qsize()


def _ready_pinned(iterator):
    tasks = iterator._task_info
    first = number = iterator._rcvd_idx
    while len(tasks.get(number, ())) == 2:
        number += 1
    # The length of a deque: its lock is left to the thread that pins.
    return number - first + len(iterator._data_queue.queue)


def _start():
    """Decides on the first batch of a process whether it reports."""
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
                # Its processes end without atexit.
                multiprocessing.Finalize(None, _at_exit, exitpriority=0)
    except Exception as error:
        _step_aside(error)
    return _probe


def _stop():
    global _probe
    _probe = False


def _step_aside(error):
    """Leaves the script alone from now on, and says why."""
    global _probe
    try:
        probe = _probe or _Probe(os.environ["PIPETOP_PROBE"])
        _probe = False
        probe.notice("the Python hook is disabled after an error: %s: %s" % (type(error).__name__, error))
    except Exception:
        _probe = False


def _forget():
    # In a forked child: the parent's steps are the parent's to tell.
    global _probe
    if _probe:
        _left.append(_probe)
    _probe = None


def _at_exit():
    try:
        if _probe:
            _probe.pause()
    except Exception:
        pass


def _timed(take, is_loader):
    """`take`, the function that takes the next batch, with each call timed."""

    def __next__(self):
        came = _now()
        probe = _probe
        if probe is None:
            probe = _start()
        if not probe:
            return take(self)
        cache = loader = None
        try:
            if _this_thread() != probe.thread:
                probe.other_thread()
                probe = None
            elif probe.inside:
                probe = None
            else:
                probe.came(came, self if is_loader else None)
                cache = probe.cache
                if cache is not None:
                    loader = cache.loader(self)
                    if cache.turns_on(loader):
                        probe.turn_to_cache(loader)
                    if loader.again:
                        batch = loader.next()
                        probe.wait_to = _now()
                        if probe.device:
                            probe.device.has()
                        return batch
        except Exception as error:
            _step_aside(error)
            probe = None
        if probe is None:
            return take(self)
        probe.inside = True
        try:
            batch = take(self)
        except BaseException:
            # There is no batch: this was no step.
            probe.inside = False
            if loader is not None:
                loader.iterator = None
            _at_exit()
            raise
        probe.wait_to = _now()
        probe.inside = False
        if probe.device:
            try:
                probe.device.has()
            except Exception as error:
                probe.leave_device(error)
        if loader is not None:
            try:
                cache.keep(loader, batch)
            except Exception as error:
                _step_aside(error)
        return batch

    return __next__


def _begun(begin):
    """`begin`, the function that makes an iterator of a loader, with each call timed."""

    def __iter__(self):
        came = _now()
        probe = _probe
        if probe is None:
            probe = _start()
        if not probe or probe.inside or _this_thread() != probe.thread:
            return begin(self)
        probe.begin()
        try:
            return begin(self)
        finally:
            probe.begun(_now() - came)

    return __iter__


def _replace(owner, name, function):
    """Puts `function` in the place of a method, in its name."""
    before = getattr(owner, name)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, attribute, getattr(before, attribute))
    function.__wrapped__ = before
    function.timed_by_pipetop = True
    setattr(owner, name, function)


def install(dataloader):
    """Times the loaders of this module, torch.utils.data.dataloader."""
    if not os.environ.get("PIPETOP_PROBE"):
        return
    try:
        iterator = vars(dataloader)["_BaseDataLoaderIter"]
        if hasattr(iterator.__next__, "timed_by_pipetop"):
            return
        loader = vars(dataloader)["DataLoader"]
        _replace(iterator, "__next__", _timed(iterator.__next__, True))
        _replace(loader, "__iter__", _begun(loader.__iter__))
        if _trial.has_settings():
            _replace(loader, "__init__", _trial.overridden(loader.__init__, _step_aside))
    except Exception as error:
        # The process that started this one has the same torch and says so itself.
        process = sys.modules.get("multiprocessing.process")
        if process is None or process.parent_process() is None:
            _step_aside(error)


def watch(iterable):
    """Yields what `iterable` yields; pipetop sees each wait for it as a wait for data."""
    take = _timed(next, False)
    iterator = _begun(iter)(iterable)
    while True:
        try:
            batch = take(iterator)
        except StopIteration:
            return
        yield batch


os.register_at_fork(after_in_child=_forget)
atexit.register(_at_exit)
