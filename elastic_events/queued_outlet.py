"""
An outlet behind a queue: for sinks that may stall, such as a network's files.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import sys
import threading
import time
from collections import deque
from typing import Final, Protocol

from .complaints import complain
from .counting import Count
from .living import Living
from .outlets import Outlet


SECONDS_AT_EXIT: Final = 5.0
"""How long the end of the process waits for what is queued."""

_PAUSE: Final = 0.001

# Before multiprocessing ends what a sink may need: its pools, managers and
# queues, of 15 and less.
_EXIT_PRIORITY: Final = 100


class QueueFull(Exception):  # noqa: N818
    """
    There was no room in the queue.
    """


class Waiting(Protocol):
    """
    What has lines that wait to be written.
    """

    def flush(self, deadline: float) -> bool:
        """
        Wait until none does; tell whether that came to pass.
        """

    def close(self, deadline: float) -> None:
        """
        Flush, and have lines that come later written by then as well.
        """

    def after_fork(self) -> None:
        """
        Be a new process's.
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
            is dropped and counted. The thread's own never wait.
    """

    def __init__(self, outlet: Outlet, *, size: int, blocks: bool) -> None:
        self._outlet = outlet
        self._size = size
        self._blocks = blocks
        self.render = outlet.render
        self.admit = outlet.admit
        self.numbers = outlet.numbers
        self.after_fork()
        _in_use.add(self)

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
        # A line is in it until it is written.
        self._lines: deque[bytes] = deque()
        # Of all queues the one that a signal handler can put into at any time.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._starting: dict[str, threading.Thread] = {}
        self._begun = Count()
        self._writer: int | None = None
        self._is_closing = False
        self._outlet.queued = self.queued

    def queued(self) -> int:
        """
        Return how many lines wait, or are being written.
        """
        return len(self._lines)

    def write(self, line: bytes) -> None:
        """
        Queue *line*; never raises.
        """
        while self._has_thread():
            if self.queued() < self._size:
                self._lines.append(line)
                self._calls.put(None)
                return
            # The thread would wait for room that only it can make.
            if not self._blocks or self._writer == threading.get_ident():
                self._outlet.drop(QueueFull(f"{self._size} lines wait"))
                return
            time.sleep(_PAUSE)
        self._outlet.write(line)

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
        # Whoever queued the last line may have been interrupted in between.
        if self.queued() and self._has_thread():
            self._calls.put(None)
        while self.queued():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def close(self, deadline: float) -> None:
        """
        Flush, and have lines that come later written at once.
        """
        if self._is_closing:
            return
        if not self.flush(deadline):
            complain(f"{self.name}: {self.queued()} lines were still queued")
        self._is_closing = True

    def _has_thread(self) -> bool:
        """
        Tell whether there is a thread, started by whoever comes first.
        """
        if self._writer is None and not self._is_closing:
            self._start_thread()
        return not self._is_closing

    def _start_thread(self) -> None:
        thread = threading.Thread(
            target=self._work, name=f"queue:{self.name}", daemon=True
        )
        try:
            # Unlike a lock, it tells who came first also when interrupted.
            if self._starting.setdefault("thread", thread) is thread:
                _wait_at_end_of_child()
                thread.start()
        except BaseException as error:
            # threading turns some interruptions into a RuntimeError as well.
            if (
                isinstance(error, RuntimeError)
                and thread not in threading.enumerate()
            ):
                self._do_without_thread()
                return
            # It may have started nevertheless: then the next ends at once.
            if self._starting.get("thread") is thread:
                del self._starting["thread"]
            raise

    def _do_without_thread(self) -> None:
        """
        Close: at the end of the process no thread can be started.
        """
        self._is_closing = True
        if self._comes_first():
            self._write_waiting(self._lines)

    def _comes_first(self) -> bool:
        """
        Tell the first who asks, and nobody else, to write what is queued.
        """
        return self._begun.take() == 0

    def _work(self) -> None:
        if not self._comes_first():
            return
        self._writer = threading.get_ident()
        lines, calls = self._lines, self._calls
        # In a process that the sink forks they are the parent's.
        while lines is self._lines:
            # Without the thread all would wait for ever, whatever is raised.
            with contextlib.suppress(BaseException):
                calls.get()
                try:
                    self._write_waiting(lines)
                except BaseException as error:
                    self._outlet.drop(error)

    def _write_waiting(self, lines: deque[bytes]) -> None:
        while lines:
            try:
                self._outlet.write(lines[0])
            finally:
                lines.popleft()


_in_use: Living[Waiting] = Living(lambda each: each.after_fork())
_waiting_child: int | None = None


def wait_for(each: Waiting) -> None:
    """
    Have `flush`, and the end of the process, wait for *each* as well.
    """
    _in_use.add(each)
    _wait_at_end_of_child()


def flush(timeout: float = 5.0) -> bool:
    """
    Wait until what was recorded to ``queue:`` and ``otlp:`` is written.

    Args:
        timeout: The most seconds to wait.

    Returns:
        Whether nothing is left in the queues.
    """
    deadline = time.monotonic() + timeout
    # Each is waited for, also after one that did not get done.
    flushed = [each.flush(deadline) for each in _in_use.all()]
    return all(flushed)


def _at_exit() -> None:
    deadline = time.monotonic() + SECONDS_AT_EXIT
    for each in _in_use.all():
        each.close(deadline)


def _wait_at_end_of_child() -> None:
    """
    Have a child of multiprocessing wait as well: it may run no `atexit`.
    """
    global _waiting_child  # noqa: PLW0603
    if _waiting_child == os.getpid():
        return
    # One that another thread is importing has no parent_process() yet.
    with contextlib.suppress(KeyError, AttributeError):
        if sys.modules["multiprocessing.process"].parent_process() is None:
            return
        sys.modules["multiprocessing.util"].Finalize(
            None, _at_exit, exitpriority=_EXIT_PRIORITY
        )
        _waiting_child = os.getpid()


atexit.register(_at_exit)
