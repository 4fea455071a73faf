"""
What waits to be written by a thread of its own, in this process.
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
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from .complaints import complain
from .living import Living


SECONDS_AT_EXIT: Final = 5.0
"""How long the end of the process waits for what is queued."""

_PAUSE: Final = 0.001

# Before multiprocessing ends what a sink may need: its pools, managers and
# queues, of 15 and less.
_EXIT_PRIORITY: Final = 100

_T = TypeVar("_T")


class QueueFull(Exception):  # noqa: N818
    """
    There was no room in the queue.
    """


def fitted(line: bytes) -> bytes:
    """
    Return *line* in no more memory than it fills, for as long as it waits.
    """
    # orjson's have some KiB to spare; those of other types are copies already.
    return bytes(memoryview(line)) if type(line) is bytes else line


class Backlog(Generic[_T]):
    """
    Hand what is put in to one thread, which writes it.

    The thread is started when there is something to write, and anew in a
    forked process, which begins with nothing waiting. No call takes a lock, so
    that a signal handler can put something in at any time.

    Args:
        name: Returns what waits, in words.

        write:
            Called by the thread with all that waits. Writes some of it, from
            the left, and removes that; never raises.

        stands_in:
            Whether who puts in writes what waits while no thread can be
            started, or leaves it to the first thread that can.
    """

    def __init__(
        self,
        name: Callable[[], str],
        write: Callable[[deque[_T]], object],
        *,
        stands_in: bool = True,
    ) -> None:
        self._name = name
        self._write = write
        self._stands_in = stands_in
        self.after_fork()
        _in_use.add(self)

    def after_fork(self) -> None:
        """
        Begin with nothing: what waits is the parent's to write.
        """
        # Each is in it until it is written.
        self._waiting: deque[_T] = deque()
        # Of all queues the one that a signal handler can put into at any time.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._starting: dict[str, threading.Thread] = {}
        self._writing: dict[str, int] = {}
        self._writer: int | None = None
        self._is_closed = False
        self._ends_at = 0.0
        self.bypass(_are_bypassed)

    def bypass(self, is_bypassed: bool) -> None:
        """
        Tell that there is no thread, or tell it as it is again.
        """
        self._is_open = not is_bypassed and not self._is_closed

    def queued(self) -> int:
        """
        Return how much waits, or is being written.
        """
        return len(self._waiting)

    def put(self, item: _T) -> None:
        """
        Have *item* written.
        """
        self._waiting.append(item)
        self._calls.put(None)

    def put_at_end(self, item: _T) -> bool:
        """
        Have *item*, which comes after `close`, written until the same time.

        Returns:
            Whether there is a thread to do it.
        """
        # In the end it stands still, and nothing is being written.
        is_over = sys.is_finalizing() and not self.queued()
        if self._writer is None or is_over:
            return False
        self.put(item)
        if not self.is_writer():
            self.flush(self._ends_at)
        return True

    def hurry(self) -> None:
        """
        Have the thread look for what waits, unless it is about to.
        """
        if self._calls.empty():
            self._calls.put(None)

    def flush(self, deadline: float) -> bool:
        """
        Wait until nothing is queued; tell whether that came to pass.

        Args:
            deadline: When to give up, by `time.monotonic`.
        """
        # Whoever put in the last may have been interrupted in between.
        if self.queued():
            self.is_running()
            self.hurry()
        while self.queued():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
            self.is_running()
        return True

    def close(self, deadline: float) -> None:
        """
        Flush, and take nothing more that is not waited for.
        """
        if self._is_closed:
            return
        self._ends_at = deadline
        if not self.flush(deadline):
            text = f"{self._name()}: {self.queued()} lines were not written"
            complain(text, is_last=True)
        self._close()

    def _close(self) -> None:
        self._is_closed = True
        self._is_open = False

    def is_running(self) -> bool:
        """
        Tell whether there is a thread, or will be, started by who comes first.
        """
        if self._writer is None and self._is_open:
            return self._start_thread()
        return self._is_open

    def is_closed(self) -> bool:
        """
        Tell whether it is the end of the process.
        """
        return self._is_closed

    def is_writer(self) -> bool:
        """
        Tell whether this thread is the one that writes.
        """
        return self._writer == threading.get_ident()

    def _start_thread(self) -> bool:
        """
        Start the thread, unless somebody else does; tell as `is_running`.
        """
        thread = threading.Thread(
            target=self._work, name=f"queue:{self._name()}", daemon=True
        )
        try:
            # Unlike a lock, it tells who came first also when interrupted.
            if self._starting.setdefault("thread", thread) is thread:
                return self._started(thread)
        except BaseException:
            # It may have started nevertheless: then the next ends at once.
            self._begin_anew(thread)
            raise
        return self._is_open

    def _started(self, thread: threading.Thread) -> bool:
        """
        Start *thread*, or do without; tell as `is_running`.
        """
        try:
            _wait_at_end_of_child()
            thread.start()
        except RuntimeError as error:
            # threading turns some interruptions into one as well.
            if thread in threading.enumerate():
                raise
            # At the end of the process no other can be started. What is short
            # for a moment, the next line asks for again.
            if sys.is_finalizing() or "interpreter shutdown" in str(error):
                self._close()
            if self._stands_in or not self._is_open:
                self._write_instead()
            self._begin_anew(thread)
            return self._is_open and not self._stands_in
        return self._is_open

    def _begin_anew(self, thread: threading.Thread) -> None:
        """
        Have the next line start another than *thread*.
        """
        if self._writing.get("by") == threading.get_ident():
            self._writer, self._writing = None, {}
        if self._starting.get("thread") is thread:
            del self._starting["thread"]

    def _write_instead(self) -> None:
        """
        Write what waits by now, unless there is a thread nevertheless.
        """
        waiting = self._waiting
        if not self._comes_first():
            return
        self._writer = threading.get_ident()
        # Not what others put in meanwhile, or it may never end.
        for _ in range(len(waiting)):
            if not waiting or waiting is not self._waiting or self._is_late():
                return
            self._write(waiting)

    def _is_late(self) -> bool:
        return 0 < self._ends_at <= time.monotonic()

    def _comes_first(self) -> bool:
        """
        Tell the first thread that asks, and no other, to write what waits.
        """
        me = threading.get_ident()
        return self._writing.setdefault("by", me) == me

    def _work(self) -> None:
        if not self._comes_first():
            return
        self._writer = threading.get_ident()
        waiting, calls = self._waiting, self._calls
        # In a process that is forked while writing, they are the parent's.
        while waiting is self._waiting:
            # Without the thread all would wait for ever, whatever is raised.
            with contextlib.suppress(BaseException):
                calls.get()
                self.write_all(waiting)

    def write_all(self, waiting: deque[_T]) -> None:
        """
        Write all that is *waiting*, in the thread.
        """
        while waiting and waiting is self._waiting:
            self._write(waiting)


_in_use: Living[Backlog[Any]] = Living(lambda each: each.after_fork())
_are_bypassed = False
_waiting_child: int | None = None


def bypass(are_bypassed: bool) -> None:
    """
    Have every backlog, those made later too, say that it has no thread.

    Args:
        are_bypassed: Whether it is so from now on, or no longer.
    """
    global _are_bypassed  # noqa: PLW0603
    _are_bypassed = are_bypassed
    for each in _in_use.all():
        each.bypass(are_bypassed)


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
