"""
What every door to a destination shares: its sink, numbers and accounts.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from structlog.exceptions import DropEvent
from structlog.typing import EventDict, Processor, WrappedLogger

from .complaints import complain
from .counting import Count
from .drafts import draft_log, draft_unreadable
from .encoding import line_renderer
from .living import Living
from .pipeline import DEFAULT_MAX_LINE, build_chain
from .schema import KEYS, SHORTEST_HEAD
from .sinks import Sink
from .values import error_text, reraise_interrupt, text_of, type_name


if TYPE_CHECKING:
    from .formats import Format
    from .rendering import Form


_EVERY_KIND: Final = KEYS["time"].required


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
        kinds = _EVERY_KIND if form is None else form.kinds
        is_every = set(_EVERY_KIND).issubset(kinds)
        self.admit = None if is_every else _kinds_passer(kinds)
        self._has_logs = "log" in kinds
        if form is None:
            self.render = line_renderer(
                max_line, urgent_from=urgent_from, head=SHORTEST_HEAD
            )
        else:
            # Few processes need it.
            from .rendering import form_renderer  # noqa: PLC0415

            self.render = form_renderer(
                _watched(form),
                max_line,
                urgent_from=urgent_from,
                mover=form.to if form.is_mover else None,
                decisive=form.decisive,
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
        if not self._has_logs:
            self.drop(error)
            return None
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
            if not self._has_logs:
                # Of what is no event `health` tells alone.
                self._unreported.clear()
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
    admit: Processor | None
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
            outlet.numbers,
            self.processors,
            complain,
            outlet.render,
            outlet.admit,
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


class NoForm(Exception):  # noqa: N818
    """
    What has to be said cannot be said in the form that was asked for.
    """


def _kinds_passer(kinds: Collection[str]) -> Processor:
    """
    Return the step that leaves out lines that are not of *kinds*.

    What this package itself says of what it was given is not left out without
    a word.
    """

    def pass_kinds(
        _: WrappedLogger, __: str, event_dict: EventDict
    ) -> EventDict:
        if event_dict["kind"] in kinds:
            return event_dict
        if event_dict.get(
            "logger"
        ) == "elastic_events" and "given" in event_dict.get("metadata", ()):
            raise NoForm(event_dict["message"])
        raise DropEvent

    return pass_kinds


def _watched(form: Format) -> Form:
    """
    Return what makes the *form*, and complains where it cannot.
    """

    def watched(line: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _made(form, line)
        except BaseException as error:
            reraise_interrupt(error)
            complain(
                f"format {form.name!r}: {error_text(error)}: the line is"
                " written as it is"
            )
            raise NoForm from error

    return watched


def _made(form: Format, line: Mapping[str, Any]) -> dict[str, Any]:
    made: Any = form.to(line)
    if not isinstance(made, dict):
        raise TypeError(f"expected a dict, got {type_name(made)}")
    return made


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
