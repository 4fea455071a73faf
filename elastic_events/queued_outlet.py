"""
An outlet behind a queue: for sinks that may stall, such as a network's files.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
from typing import Final
from weakref import WeakSet

from .complaints import complain
from .counting import Count
from .outlets import Outlet


SECONDS_AT_EXIT: Final = 5.0
"""How long the end of the process waits for what is queued."""

_PAUSE: Final = 0.001


class QueueFull(Exception):  # noqa: N818
    """
    There was no room in the queue.
    """


class QueuedOutlet:
    """
    Hand finished lines to one thread, which writes them to an outlet.

    The lines are numbered and accounted for by the outlet. The thread is
    started by the first line, and anew in a forked process, whose queue is
    empty.

    Args:
        outlet: Where the lines go.

        size: How many may wait.

        blocks:
            Whether a line that finds no room waits for it, however long, or
            is dropped and counted.
    """

    def __init__(self, outlet: Outlet, *, size: int, blocks: bool) -> None:
        self._outlet = outlet
        self._size = size
        self._blocks = blocks
        self.render = outlet.render
        self.numbers = outlet.numbers
        self.after_fork()
        _all.add(self)

    @property
    def name(self) -> str:
        """
        How `health` names it, the same as without the queue.
        """
        return self._outlet.name

    def after_fork(self) -> None:
        """
        Begin with an empty queue: what waits is the parent's to write.
        """
        # Of all queues the one that a signal handler can put into at any time.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._put = Count()
        self._done = 0
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._outlet.queued = self.queued

    def queued(self) -> int:
        """
        Return how many lines wait, or are being written.
        """
        return self._put.taken() - self._done

    def write(self, line: bytes) -> None:
        """
        Queue *line*; never raises.
        """
        if self._is_closing or not self._has_thread():
            self._outlet.write(line)
            return
        while self.queued() >= self._size:
            if not self._blocks:
                self._outlet.drop(QueueFull(f"{self._size} lines wait"))
                return
            time.sleep(_PAUSE)
        self._put.take()
        self._lines.put(line)

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Queue a line about *given*, of which *error* kept us from making one.
        """
        line = self._outlet.unreadable_line(given, error)
        if line is not None:
            self.write(line)

    def flush(self, deadline: float) -> bool:
        """
        Wait until nothing is queued; tell whether that came to pass.

        Args:
            deadline: When to give up, by `time.monotonic`.
        """
        while self.queued():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def close(self, deadline: float) -> None:
        """
        Flush, and have lines that come later written at once.
        """
        if not self.flush(deadline):
            complain(f"{self.name}: {self.queued()} lines were still queued")
        self._is_closing = True

    def _has_thread(self) -> bool:
        """
        Tell whether there is a thread, started by whoever comes first.
        """
        if self._thread is None and self._starting.acquire(blocking=False):
            thread = threading.Thread(
                target=self._work, name=f"queue:{self.name}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                # At the end of the process none can be started.
                self._is_closing = True
                self._write_waiting()
                return False
            self._thread = thread
        return True

    def _work(self) -> None:
        lines = self._lines
        while True:
            self._outlet.write(lines.get())
            self._done += 1

    def _write_waiting(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._outlet.write(self._lines.get_nowait())
                self._done += 1


_all: WeakSet[QueuedOutlet] = WeakSet()


def flush(timeout: float = 5.0) -> bool:
    """
    Wait until all that was recorded to a ``queue:`` destination is written.

    Args:
        timeout: The most seconds to wait.

    Returns:
        Whether nothing is left in the queues.
    """
    deadline = time.monotonic() + timeout
    # Each is waited for, also after one that did not get done.
    flushed = [each.flush(deadline) for each in tuple(_all)]
    return all(flushed)


def _at_exit() -> None:
    deadline = time.monotonic() + SECONDS_AT_EXIT
    for each in tuple(_all):
        each.close(deadline)


def _after_fork() -> None:
    for each in tuple(_all):
        each.after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
