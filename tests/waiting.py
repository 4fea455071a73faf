"""
What the tests of queues and of collectors share.
"""

import contextlib
import gc
import itertools
import os
import subprocess
import sys
import time


def sums(health):
    """
    Return how many lines *health* accounts for.
    """
    dropped = sum(health["dropped"].values())
    return health["written"] + dropped + health["queued"]


@contextlib.contextmanager
def interrupted_after(events):
    """
    Raise KeyboardInterrupt where the interpreter looks for signals: when a
    function begins, and when one written in C has returned.
    """
    count = itertools.count(1)

    def profile(_, event, __):
        if event in ("call", "c_return") and next(count) == events:
            raise KeyboardInterrupt

    # Nobody hears of what is raised while garbage is collected.
    gc.disable()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        gc.enable()


def wait_until(is_so, seconds=60):
    """
    Wait until *is_so* tells that it is so, at most so many *seconds*.
    """
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def run_recording(to, code, **environment):
    """
    Run *code* in a process of its own, with an event and where *to* send it.
    """
    beginning = (
        "import elastic_events as ee, atexit, os, sys, time\n"
        "event = ee.Event('n', ee.EventSource.AGENT)\n"
        f"to = {to!r}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", beginning + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, **environment},
    )
