"""Blocks in functions written in C, which are called in many ways. Each line on standard input lets one call go on."""

import contextlib
import sys
import threading
import types

free = threading.Lock()
until = threading.Lock()


class Tensor:
    """Its methods are written in C, as torch's are."""

    def __init__(self):
        self.item = self.to = self.other = free.acquire
        self.flag = True
        self.options = {"timeout": 60}


class Slotted:
    __slots__ = ()
    item = to = staticmethod(free.acquire)


t, slotted = Tensor(), Slotted()
torch = types.ModuleType("torch")
torch.cuda = types.ModuleType("torch.cuda")
torch.cuda.synchronize = free.acquire
float = free.acquire
values, flags, options, flag, never = [], [True], {"timeout": 60}, True, False
nothing = contextlib.nullcontext()


def same(value):
    return value


SYNCHRONIZES = [
    "t.item()",
    "slotted.item()",
    "values.append(t.item())",
    "value = 2 * t.item() + 1",
    "value = f'{t.item():1} {flag}'",
    "value = {'loss': t.item(), 'flag': flag}",
    "float(flag)",
    "torch.cuda.synchronize()",
    "if flag:\n    t.item()\nelse:\n    t.other()",
    "if never:\n    t.other()\nelse:\n    t.item()",
    "if never:\n    t.other()\nelse:\n    float(True)",
    "with nothing:\n    t.item()",
    "try:\n    t.item()\nfinally:\n    values.clear()",
    "value = sum(u.item() for u in [t])",
    "value = [u.item() for u in [t]]",
    "value = never or t.item()",
    "value = (t if flag else slotted).item()",
    "if never:\n    " + ", ".join(f"t.name{i}" for i in range(400)) + "\nt.item()",
]
COPIES = [
    "t.to(True, timeout=60)",
    "slotted.to(True, timeout=60)",
    "t.to(flags[0], 59 + 1)",
    "t.to(t.flag, timeout=t.options['timeout'])",
    "t.to(same(flag), -1)",
    "t.to(same(same(flag)), timeout=same(t.options.get('timeout')))",
    "t.to(*flags, **options)",
    "t.to(True, **options)",
    "t.to(**options)",
    "t.to(*flags)",
    "t.to(*flags, *[60])",
    "t.to(len(f'{flag}:0'))",
    "value = [u.to(flag) for u in [t]]",
    "value = {name: u.to(flag, timeout=60) for name, u in {'x': t}.items()}",
    "for u in [t]:\n    u.to(True, **options)",
    "if flag:\n    value = t.to(True, timeout=60)",
]
NEITHER = [
    "t.other()",
    "value = t.other(True, timeout=60)",
    "(t.other if flag else t.to)(*flags)",
    "(t.other if flag else t.to)(True, timeout=60)",
    "(t.other or t.to)(True, timeout=60)",
    "(t.other or float)(True)",
    "(t.other if flag else float)(True)",
    "same(t.item)()",
    "value = list(map(t.to, flags))",
    "[t.other, t.item][0]()",
    "t.other(t.item and flag)",
]


def wait_for_input():
    for _ in sys.stdin:
        free.release()
        until.acquire()


def run(source, means):
    """Runs the source in a function and in a module, each after enough calls for Python to specialise the bytecode."""
    names = dict(globals())
    body = source.replace("\n", "\n    ")
    # The first takes its names from the module, the second as arguments.
    exec("def function():\n    " + body, names)
    exec("def local(t, values=values, flags=flags, flag=flag):\n    " + body, names)
    module = compile(source, "module.py", "exec")
    for call in [names["function"], lambda: exec(module, names), lambda: names["local"](t)]:
        for _ in range(200):
            call()
            free.release()
        free.acquire()
        print(means, source.replace("\n", ";")[:80], sep="\t", flush=True)
        call()
        until.release()
        free.release()


until.acquire()
threading.Thread(target=wait_for_input, daemon=True).start()
for means, sources in ("synchronize", SYNCHRONIZES), ("copies to the device", COPIES), ("", NEITHER):
    for source in sources:
        run(source, means)
print("end", flush=True)
