"""
What every door to a destination shares: its sink, numbers and accounts.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from structlog.typing import Processor

from .complaints import complain
from .counting import Count
from .drafts import draft_log, draft_unreadable
from .encoding import line_renderer
from .living import Living
from .pipeline import DEFAULT_MAX_LINE, build_chain
from .schema import SHORTEST_HEAD
from .sinks import Sink
from .values import reraise_interrupt, text_of, type_name


class Outlet:
    """
    One sink, the numbers of its lines, and the account of what was lost.

    Args:
        name:
            Returns how `health` names it. In a forked process it may be
            another name.

        sink: Where the lines go.

        max_line: The most bytes of a line.

        urgent_from: The level from which lines are urgent.

        options: What was asked for after the ``?``.
    """

    def __init__(
        self,
        name: Callable[[], str],
        sink: Sink,
        *,
        max_line: int = DEFAULT_MAX_LINE,
        urgent_from: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.render = line_renderer(
            max_line, urgent_from=urgent_from, head=SHORTEST_HEAD
        )
        self.options = dict(options or {})
        self.queued: Callable[[], int] = lambda: 0
        self._find_name = name
        self._sink = sink
        self.numbers = Count()
        self._start()
        _in_use.add(self)

    def _start(self) -> None:
        self.name = self._find_name()
        self._counting = threading.RLock()
        self._reporting = threading.Lock()
        self._dropped: dict[str, int] = {}
        self._unreported: dict[str, int] = {}
        self._unreported_since = 0
        self._reserved: int | None = None

    def write(self, line: bytes) -> None:
        """
        Write *line*. What fails is counted and never raised.
        """
        if self._unreported:
            self._report_drops()
        try:
            self._sink.write(line)
        except BaseException as error:
            reraise_interrupt(error)
            self.drop(error)

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Write a line about *given*, of which *error* kept us from making one.
        """
        line = self.unreadable_line(given, error)
        if line is not None:
            self.write(line)

    def unreadable_line(
        self, given: object, error: BaseException
    ) -> bytes | None:
        """
        Return the line about *given*, `None` if there is not even that.
        """
        draft = draft_unreadable(given, error)
        number = self.numbers.take()
        try:
            return self._line(draft, number)
        except Exception as failure:
            self.drop(failure)
            return None

    def drop(self, error: BaseException) -> None:
        """
        Count a numbered line that *error* kept from being written.
        """
        reason = type_name(error)
        if isinstance(error, OSError) and type(error.errno) is int:
            reason = errno.errorcode.get(error.errno, reason)
        with self._counting:
            if not self._unreported:
                self._unreported_since = time.time_ns() // 1_000_000
            for counts in self._dropped, self._unreported:
                counts[reason] = counts.get(reason, 0) + 1
        complain(f"{self.name}: an event was not written: {text_of(error)}")

    def health(self) -> dict[str, Any]:
        """
        Return what became of the lines of this process.
        """
        with self._counting:
            dropped = dict(self._dropped)
            # Before the lines recorded: one may be taken in between.
            queued = self.queued()
            recorded = self.numbers.taken() - (self._reserved is not None)
        return {
            "recorded": recorded,
            "written": recorded - sum(dropped.values()) - queued,
            "dropped": dropped,
            "queued": queued,
        }

    def after_fork(self) -> None:
        """
        Begin anew: numbers and losses are the parent's.
        """
        self._start()
        self._sink.after_fork()

    def _report_drops(self) -> None:
        """
        Write the line that says what was dropped, if the sink takes it.
        """
        # Whoever comes second, be it a signal handler, does not wait.
        if not self._reporting.acquire(blocking=False):
            return
        try:
            with self._counting:
                reasons = dict(self._unreported)
                since = self._unreported_since
            if reasons:
                self._sink.write(self._drop_line(reasons, since))
                self._settle(reasons)
        except BaseException as error:
            reraise_interrupt(error)
            complain(f"{self.name}: {text_of(error)}")
        finally:
            self._reporting.release()

    def _drop_line(self, reasons: dict[str, int], since: int) -> bytes:
        if self._reserved is None:
            self._reserved = self.numbers.take()
        # A report that fails is made again, under the same number.
        reserved = self._reserved
        total = sum(reasons.values())
        return self._line(
            draft_log(
                f"dropped {total} events",
                level="warning",
                logger="elastic_events",
                metadata={
                    "dropped": total,
                    "reasons": reasons,
                    "since": since,
                },
            ),
            reserved,
        )

    def _line(self, line: Any, number: int) -> bytes:
        """
        Return the line of a draft of our own, numbered *number*.
        """
        for step in build_chain(Count(number), render=self.render):
            line = step(None, "warning", line)
        return line  # type: ignore[no-any-return]

    def _settle(self, reported: dict[str, int]) -> None:
        with self._counting:
            self._reserved = None
            for reason, count in reported.items():
                self._unreported[reason] -= count
                if not self._unreported[reason]:
                    del self._unreported[reason]


class Entrance(Protocol):
    """
    Where doors hand in their lines: an outlet, or a queue before it.
    """

    render: Processor
    numbers: Count

    @property
    def name(self) -> str:
        """
        How `health` names it.
        """

    def write(self, line: bytes) -> None:
        """
        Take *line*. Never raises.
        """

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Take what *error* kept from being made a line.
        """


class _Withheld(Exception):  # noqa: N818
    """
    Stands for what could not be read, and must not be shown as it is.
    """


class Destination:
    """
    An entrance, and the steps that make its lines.

    Args:
        outlet: Where the lines are handed in, shared by all who write there.

        processors: The user's own.
    """

    def __init__(
        self, outlet: Entrance, processors: Sequence[Processor] = ()
    ) -> None:
        self.outlet = outlet
        self.processors = tuple(processors)
        self.chain = build_chain(
            outlet.numbers, self.processors, complain, outlet.render
        )

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Write a line about *given*, of which *error* kept us from making one.
        """
        if self.processors:
            # They have not seen it: it may hold what they are to take away.
            reraise_interrupt(error)
            error = _Withheld(f"{type_name(given)} raised {type_name(error)}")
            given = error
        self.outlet.write_unreadable(given, error)

    def with_processors(self, processors: Sequence[Processor]) -> Destination:
        """
        Return the same destination with further *processors*.
        """
        if not processors:
            return self
        return Destination(self.outlet, (*self.processors, *processors))


_in_use: Living[Outlet] = Living(Outlet.after_fork)


def health() -> dict[str, dict[str, Any]]:
    """
    Return what became of the lines that this process recorded.

    Returns:
        For each destination in use, under its full name (a file under its
        absolute path): ``recorded``, ``written``, ``dropped`` (a number for
        each reason, such as ``ENOSPC``) and ``queued``, where *recorded =
        written + dropped + queued*.
    """
    healths: dict[str, dict[str, Any]] = {}
    for outlet in sorted(_in_use.all(), key=lambda each: each.name):
        health = outlet.health()
        before = healths.setdefault(outlet.name, health)
        if before is not health:
            healths[outlet.name] = _sum(before, health)
    return healths


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """
    Return the health of a name that was given to one outlet, then another.
    """
    dropped = Counter(one["dropped"]) + Counter(other["dropped"])
    counts = {
        key: one[key] + other[key] for key in ("recorded", "written", "queued")
    }
    return {**one, **counts, "dropped": dict(dropped)}
