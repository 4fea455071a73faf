"""
What every door to a destination shares: its sink, numbers and accounts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from .complaints import complain
from .counting import Count
from .drafts import draft_log, draft_unreadable
from .living import Living
from .losses import Losses
from .pipeline import DEFAULT_MAX_LINE, build_chain
from .shaping import Shape
from .sinks import Sink
from .values import reraise_interrupt, text_of


if TYPE_CHECKING:
    from .formats import Format


Take: TypeAlias = "Callable[[bytes], bool]"


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

        form: The form of the lines. (default: our own)

        options: What was asked for after the ``?``.
    """

    def __init__(
        self,
        name: Callable[[], str],
        sink: Sink,
        *,
        max_line: int = DEFAULT_MAX_LINE,
        urgent_from: int | None = None,
        form: Format | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        shape = Shape(form, max_line, urgent_from)
        self.render = shape.render
        self.admit = shape.admit
        self._has_logs = shape.has_logs
        self.options = dict(options or {})
        self.queued: Callable[[], int] = lambda: 0
        self._find_name = name
        self._sink = self._own_sink = sink
        self.numbers = Count()
        self._start()
        _in_use.add(self)
        if _diversion is not None:
            self.divert(_diversion)

    def _start(self) -> None:
        self.name = self._find_name()
        self._numbers_set_aside: count[int] | None = None
        self._counting = threading.RLock()
        self._reporting = threading.Lock()
        self._losses = Losses(are_reported=self._has_logs)
        # To look it up there takes longer.
        self._unreported = self._losses.unreported
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

    def write_waiting(self, line: bytes, done: Callable[[], object]) -> None:
        """
        Write *line*, which counts as queued until *done* is called.
        """
        error: BaseException | None = None
        try:
            if self._unreported:
                self._report_drops()
            self._sink.write(line)
        except BaseException as failure:
            # Whoever empties a queue must go on, whatever is raised.
            error = failure
        self.settle(done, error)

    def settle(
        self,
        done: Callable[[], object],
        error: BaseException | None = None,
        lost: int = 1,
    ) -> None:
        """
        Call *done*, and count what *error* took, as one step for `health`.
        """
        with self._counting:
            try:
                if error is not None:
                    self.drop(error, lost)
            finally:
                done()

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
        if not self._has_logs:
            self.drop(error)
            return None
        try:
            return self._line(draft, number)
        except Exception as failure:
            self.drop(failure)
            return None

    def drop(self, error: BaseException, lines: int = 1) -> None:
        """
        Count numbered lines that *error* kept from being written.
        """
        with self._counting:
            self._losses.count(error, lines)
        complain(f"{self.name}: an event was not written: {text_of(error)}")

    def health(self) -> dict[str, Any]:
        """
        Return what became of the lines of this process.
        """
        with self._counting:
            dropped = self._losses.of_all()
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
        self._own_sink.after_fork()

    def divert(self, take: Take | None) -> None:
        """
        Give lines to *take* first, and `None` for no longer: see `divert`.
        """
        if take is None:
            self._sink = self._own_sink
            # Those of a new outlet, or process, begin with the next line.
            self.numbers.resume(self._numbers_set_aside or count())
            self._numbers_set_aside = None
        elif self._sink is self._own_sink:
            self._numbers_set_aside = self.numbers.set_aside()
            self._sink = _DivertedSink(take, self._own_sink)

    def _report_drops(self) -> None:
        """
        Write the line that says what was dropped, if the sink takes it.
        """
        if self._sink is not self._own_sink:
            # What was lost is for the sink to hear that lost it.
            return
        # Whoever comes second, be it a signal handler, does not wait.
        if not self._reporting.acquire(blocking=False):
            return
        try:
            with self._counting:
                reasons = self._losses.to_report()
                since = self._losses.since
            if reasons:
                self._sink.write(self._drop_line(reasons, since))
                self._forget(reasons)
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

    def _forget(self, reported: dict[str, int]) -> None:
        with self._counting:
            self._reserved = None
            self._losses.forget(reported)


class _DivertedSink:
    """
    Give each line to *take*, and to the sink if that does not want it.
    """

    def __init__(self, take: Take, sink: Sink) -> None:
        self._take = take
        self._sink = sink

    def write(self, line: bytes, /) -> None:
        if not self._take(line):
            self._sink.write(line)

    def after_fork(self) -> None:
        """
        Do nothing: the outlet looks after its own sink.
        """


_in_use: Living[Outlet] = Living(Outlet.after_fork)
_diversion: Take | None = None


def divert(take: Take | None) -> None:
    """
    Have every outlet, those made later too, give its lines to *take*.

    Args:
        take:
            Returns whether it took the line, which else goes where it always
            does. `None` ends the diversion: the outlets go on with the numbers
            and the losses that they had before.
    """
    global _diversion  # noqa: PLW0603
    _diversion = take
    for outlet in _in_use.all():
        outlet.divert(take)


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
