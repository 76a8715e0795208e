"""Where the stand-in stops until the test has looked."""

import sys


def pause(state):
    print(state, flush=True)
    if not sys.stdin.readline():
        sys.exit()
