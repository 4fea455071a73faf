"""
For the tests of programs that record: what they recorded, as a list.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from . import backlog, destinations, outlets
from .captured import VOLATILE_KEYS, CapturedEvents
from .encoding import decode
from .entrances import Destination
from .outlets import Outlet
from .sinks import CallableSink


__all__ = ["VOLATILE_KEYS", "CapturedEvents", "capture_events"]


@contextlib.contextmanager
def capture_events() -> Iterator[CapturedEvents]:
    """
    Capture what is recorded in this process, instead of writing it.

    It gives the list that the lines are added to: those of `record`,
    `construct_and_record_rdzv_event`, bound loggers, and `logging` by an
    `EventHandler`, whatever their destination, ``null`` included. A line is
    what would have been written, read back. Nothing is written, neither to
    files nor to the console, and a file's numbers go on afterwards as if
    nothing had been recorded. A ``queue:`` does not delay a line.

    Captures can be nested: the inner one gets the lines alone. Threads are
    captured too. A forked process has a copy of the list: what it records is
    not written either. A spawned one is not captured.
    """
    captured = CapturedEvents()
    _begin(captured)
    try:
        yield captured
    finally:
        _end(captured)


_captures: list[CapturedEvents] = []
_lock = threading.RLock()


def _begin(captured: CapturedEvents) -> None:
    with _lock:
        if not _captures:
            _divert()
        _captures.append(captured)


def _end(captured: CapturedEvents) -> None:
    with _lock:
        # Not `remove`: lists with the same lines are equal.
        _captures[:] = [each for each in _captures if each is not captured]
        if not _captures:
            _divert_no_longer()


def _take(line: bytes) -> bool:
    """
    Add *line* to what is captured, if anything still is.
    """
    try:
        captured = _captures[-1]
    except IndexError:
        return False
    captured.append(decode(line))
    return True


def _divert() -> None:
    # What is queued already is not of this test.
    backlog.flush()
    try:
        backlog.bypass(are_bypassed=True)
        outlets.divert(_take)
        nothing = Outlet(lambda: "null", CallableSink(lambda _: None))
        destinations.divert_nowhere(Destination(nothing))
    except BaseException:
        _divert_no_longer()
        raise


def _divert_no_longer() -> None:
    destinations.divert_nowhere(None)
    outlets.divert(None)
    backlog.bypass(are_bypassed=False)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603
    # Another thread may have held it.
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
