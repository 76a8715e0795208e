"""How long a GPU idles while the trainer waits for a batch: two events a step on torch's current stream, which the
GPU passes in its own time and dates by its own clock.

Nothing here waits for the GPU, nor makes CUDA start. Work on other streams is not seen.
"""

import sys
from collections import deque

# Steps that the GPU may be behind. One that it has not come to by then is reported without its time.
_BEHIND = 32
# A wait that began with iter(loader) goes on if the first batch is asked for so many nanoseconds after.
_AT_ONCE = 1_000_000


class Device:
    """The GPU that the main thread computes on."""

    @classmethod
    def in_use(cls):
        """None as long as the script has not begun to use one."""
        cuda = sys.modules.get("torch.cuda")
        return cls(cuda) if cuda is not None and cuda.is_initialized() else None

    def __init__(self, cuda):
        self.new_event = cuda.Event
        self.name = cuda.get_device_name()
        # In a capture an event would become part of the graph.
        self.capturing = getattr(cuda, "is_current_stream_capturing", bool)
        self.spare = []
        # Recorded when the trainer began with a loader, came for a batch and had it, of the step that goes on
        # or is about to. None = not recorded.
        self.began = self.came = self.had = None
        # Steps that have ended, oldest first: the line of each, the length of its wait and its events.
        self.behind = deque()

    def record(self):
        if self.capturing():
            return None
        event = self.spare.pop() if self.spare else self.new_event(enable_timing=True)
        event.record()
        return event

    def begins(self):
        """The trainer begins with a loader."""
        if self.began is None:
            self.began = self.record()

    def comes(self, lines, since_begun):
        """The trainer comes for a batch, so many nanoseconds after it has begun with a loader; 0 = it has not.
        Moves to `lines` what there is to tell."""
        if self.behind:
            self.tell(lines, _BEHIND)
        if since_begun:
            self.came = self.began if since_begun < _AT_ONCE else None
            self.began = None
        else:
            self.came = self.record()

    def has(self):
        """The trainer has its batch."""
        if self.came is not None:
            self.had = self.record()

    def step(self, line, waited):
        """The step has ended, of which this is to be told."""
        self.behind.append((line, waited, self.came, self.had))
        self.came = self.had = None

    def tell(self, lines, behind):
        """Moves to `lines` those of the steps that the GPU has come to, and says of each how long it idled.
        Steps beyond so many that it is behind go without."""
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
