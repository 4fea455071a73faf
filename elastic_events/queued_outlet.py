"""
An outlet behind a queue: for sinks that may stall, such as a network's files.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from .backlog import Backlog, QueueFull, fitted
from .outlets import Outlet


_PAUSE: Final = 0.001


class QueuedOutlet:
    """
    Hand finished lines to one thread, which writes them to an outlet.

    The lines are numbered and accounted for by the outlet. Those that come at
    the very end of the process wait no longer than that waited.

    Args:
        outlet: Where the lines go.

        size: How many may wait.

        blocks:
            Whether a line that finds no room waits for it, however long, or
            is dropped and counted. The thread's own never wait.

        options: What was asked for after the ``?``.
    """

    def __init__(
        self,
        outlet: Outlet,
        *,
        size: int,
        blocks: bool,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.options = dict(options or {})
        self._outlet = outlet
        self._size = size
        self._blocks = blocks
        self.render = outlet.render
        self.admit = outlet.admit
        self.numbers = outlet.numbers
        self.backlog = Backlog(lambda: outlet.name, self._write_first)
        self.queued = outlet.queued = self.backlog.queued

    @property
    def name(self) -> str:
        """
        How `health` names it, the same as without the queue.
        """
        return self._outlet.name

    def write(self, line: bytes) -> None:
        """
        Queue *line*. Raises nothing but what interrupts the wait for room.
        """
        backlog = self.backlog
        while backlog.is_running():
            if backlog.queued() < self._size:
                backlog.put(fitted(line))
                return
            # The thread would wait for room that only it can make.
            if not self._blocks or backlog.is_writer():
                self._outlet.drop(QueueFull(f"{self._size} lines wait"))
                return
            self._wait_for_room()
        # At the end never beside the thread: it may hang in the sink.
        if not (backlog.is_closed() and backlog.put_at_end(line)):
            self._outlet.write(line)

    def _wait_for_room(self) -> None:
        backlog = self.backlog
        try:
            while backlog.is_running() and backlog.queued() >= self._size:
                time.sleep(_PAUSE)
        except BaseException as error:
            # The line has its number.
            self._outlet.drop(error)
            raise

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Queue a line about *given*, of which *error* kept us from making one.
        """
        line = self._outlet.unreadable_line(given, error)
        if line is not None:
            self.write(line)

    def _write_first(self, lines: deque[bytes]) -> None:
        self._outlet.write_waiting(lines[0], lines.popleft)
