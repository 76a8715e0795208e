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
        self.facts = self.rank
        # The trainer is in the loader: a loader that is read within it has no steps of its own.
        self.inside = False
        # The step that goes on: when it came for its batch and had it. 0 = there is none.
        self.wait_from = self.wait_to = 0
        self.ready = None
        self.number = self.lost = self.sent_at = 0
        self.lines = []
        self.told = False
        # The loader iterator that was timed last, and how its queue is asked.
        self.iterator = lambda: None
        self.count_ready = None

    def came(self, at, iterator):
        """The trainer comes for a batch: the step that went on has ended."""
        if self.wait_to:
            self.ended(at)
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
        self.wait_from = at

    def ended(self, at):
        ready = self.ready
        if ready is None:
            line = b"step %d %d %d %d\n" % (self.number, self.wait_from, self.wait_to, at)
        else:
            line = b"step %d %d %d %d ready=%d\n" % (
                self.number,
                self.wait_from,
                self.wait_to,
                at,
                ready,
            )
        self.wait_to = 0
        self.number += 1
        self.lines.append(line)

    def turn_to(self, iterator):
        """Another loader, or a new round of one: how many batches it can hold, and who counts them."""
        self.send()
        self.iterator = weakref.ref(iterator)
        self.count_ready = None
        self.facts = self.rank
        capacity = getattr(iterator, "_num_workers", 0) * (getattr(iterator, "_prefetch_factor", 0) or 0)
        known = all(hasattr(iterator, name) for name in ("_task_info", "_rcvd_idx", "_data_queue"))
        if capacity and known:
            self.facts += b" capacity=%d" % capacity
            shared = hasattr(iterator._data_queue, "qsize") and not hasattr(iterator._data_queue, "queue")
            self.count_ready = _ready_shared if shared else _ready_pinned

    def send(self):
        """Sends what was gathered, without waiting."""
        lines = self.lines
        if not lines:
            return
        try:
            header = _HEADER % (self.pid, self.lost, self.facts)
            self.socket.sendto(header + b"".join(lines), self.address)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EINTR):
                # pipetop has ended.
                _stop()
            elif len(lines) < _KEPT:
                return
            self.lost += len(lines)
        lines.clear()

    def pause(self):
        """No step goes on: an epoch or the process ends."""
        if self.wait_to:
            self.ended(_now())
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
            self.notice("a thread beside the main one reads the loader: its waits are not the trainer's")


def _in_a_row(iterator):
    """Batches that the iterator holds already and can hand out one after the other."""
    tasks = iterator._task_info
    first = number = iterator._rcvd_idx
    while len(tasks.get(number, ())) == 2:
        number += 1
    return number - first


def _ready_shared(iterator):
    # Reads one semaphore: nothing is taken out, nothing is locked.
    return _in_a_row(iterator) + iterator._data_queue.qsize()


def _ready_pinned(iterator):
    # The length of a deque: its lock is left to the thread that pins.
    return _in_a_row(iterator) + len(iterator._data_queue.queue)


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
        probe.notice("the hook in Python stepped aside: %s: %s" % (type(error).__name__, error))
    except Exception:
        _probe = False


def _forget():
    # In a forked child: the parent's steps are the parent's to tell.
    global _probe
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
        try:
            if _this_thread() != probe.thread:
                probe.other_thread()
                probe = None
            elif probe.inside:
                probe = None
            else:
                probe.came(came, self if is_loader else None)
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
            _at_exit()
            raise
        probe.wait_to = _now()
        probe.inside = False
        return batch

    return __next__


def install(dataloader):
    """Times the loaders of this module, torch.utils.data.dataloader."""
    if not os.environ.get("PIPETOP_PROBE"):
        return
    try:
        loader = vars(dataloader)["_BaseDataLoaderIter"]
        take = loader.__next__
        if hasattr(take, "timed_by_pipetop"):
            return
        timed = _timed(take, True)
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(timed, name, getattr(take, name))
        timed.__wrapped__ = take
        timed.timed_by_pipetop = True
        loader.__next__ = timed
    except Exception as error:
        # The process that started this one has the same torch and says so itself.
        process = sys.modules.get("multiprocessing.process")
        if process is None or process.parent_process() is None:
            _step_aside(error)


def watch(iterable):
    """Yields what `iterable` yields; pipetop sees each wait for it as a wait for data."""
    take = _timed(next, False)
    iterator = iter(iterable)
    while True:
        try:
            batch = take(iterator)
        except StopIteration:
            return
        yield batch


os.register_at_fork(after_in_child=_forget)
atexit.register(_at_exit)
