"""A GPU that computes nothing, under the names that torch.cuda has for one.

It runs launched work one piece after the other, on the host's clock: `free_at` is the time when all of it is done.
An error is raised by use before the start, by a wait for the GPU, and by a question whose answer is not known yet.
"""

import os
import time

free_at = 0
started = False
capturing = False
# The number of events that can still be recorded. None = any number.
records_left = None


def start():
    global started
    started = True


def launch(seconds):
    global free_at
    free_at = max(time.monotonic_ns(), free_at) + int(seconds * 1e9)


def wait():
    time.sleep(max(0, free_at - time.monotonic_ns()) / 1e9)


def is_initialized():
    return started


def is_current_stream_capturing():
    return capturing


def get_device_name():
    assert started
    return "Fake GPU"


class Event:
    def __init__(self, enable_timing=False):
        assert started and enable_timing
        self.process = os.getpid()

    def record(self):
        global records_left
        if records_left is not None:
            records_left -= 1
            if records_left < 0:
                raise RuntimeError("CUDA error: out of events")
        assert not capturing
        self.at = max(time.monotonic_ns(), free_at)

    def query(self):
        return time.monotonic_ns() >= self.at

    def elapsed_time(self, end):
        assert self.query() and end.query(), "not yet"
        return (end.at - self.at) / 1e6

    def synchronize(self):
        raise AssertionError("this waits")

    def __del__(self):
        if os is not None and os.getpid() != self.process:
            os.write(2, b"freed in another process\n")
