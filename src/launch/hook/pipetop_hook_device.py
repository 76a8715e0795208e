"""Measures how long a GPU idles while the trainer waits for a batch, with two CUDA events per step on torch's current
stream. The GPU timestamps each event when it reaches it.

Nothing here waits for the GPU or initialises CUDA. Work on other streams is not measured.
"""

import sys
from collections import deque

# Maximum number of steps that the GPU may be behind. Older ones are reported without their idle time.
_BEHIND = 32
# A wait that began with iter(loader) continues if the first batch is asked for within this many nanoseconds.
_AT_ONCE = 1_000_000


class Device:
    """The GPU that the main thread computes on."""

    @classmethod
    def in_use(cls):
        """Returns the current device, or None if the script has not initialised CUDA yet."""
        cuda = sys.modules.get("torch.cuda")
        return cls(cuda) if cuda is not None and cuda.is_initialized() else None

    def __init__(self, cuda):
        self.new_event = cuda.Event
        self.name = cuda.get_device_name()
        # During a capture an event would become part of the graph.
        self.capturing = getattr(cuda, "is_current_stream_capturing", bool)
        self.spare = []
        # Events of the current or next step: recorded when the trainer began with a loader, asked for a batch and had
        # it. None = not recorded.
        self.began = self.came = self.had = None
        # Steps that have ended, oldest first: the line of each, the length of its wait and its events.
        self.behind = deque()

    def record(self):
        if self.capturing():
            return None
        event = self.spare.pop() if self.spare else self.new_event(enable_timing=True)
        event.record()
        return event

    def on_begin(self):
        """Called when the trainer starts to iterate over a loader."""
        if self.began is None:
            self.began = self.record()

    def on_request(self, lines, since_begun):
        """Called when the trainer requests a batch, `since_begun` nanoseconds after it started to iterate over a loader
        (0 = it has not). Moves finished steps to `lines`."""
        if self.behind:
            self.report_finished(lines, _BEHIND)
        if since_begun:
            self.came = self.began if since_begun < _AT_ONCE else None
            self.began = None
        else:
            self.came = self.record()

    def on_batch(self):
        """Called when the trainer has received its batch."""
        if self.came is not None:
            self.had = self.record()

    def step(self, line, waited):
        """Called when a step has ended, with its line and the length of its wait."""
        self.behind.append((line, waited, self.came, self.had))
        self.came = self.had = None

    def report_finished(self, lines, behind):
        """Moves to `lines` the steps whose events the GPU has reached, with the GPU's idle time. If more than `behind`
        steps are pending, the oldest ones are moved without their idle time."""
        steps = self.behind
        while steps:
            line, waited, came, had = steps[0]
            if had is not None:
                if had.query() and came.query():
                    line += b" idle=%d" % min(int(came.elapsed_time(had) * 1e6), waited)
                    self.spare += came, had
                elif len(steps) <= behind:
                    return
            lines.append(line)
            steps.popleft()
