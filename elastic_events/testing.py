"""
For the tests of programs that record: what they recorded, as a list.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from . import destinations, outlets
from .backlog import flush
from .encoding import decode
from .handlers import EventHandler, NullEventHandler
from .logger import EventLogger, _NullLogger, get_logger
from .outlets import Destination, Outlet
from .queued_outlet import QueuedOutlet
from .sinks import Sink


VOLATILE_KEYS: Final = frozenset(
    ("timestamp", "time", "hostname", "pid", "seq")
)
"""The keys of every line whose values are others in each run of a test."""

_EVENTS: Final = ("event", "rdzv")
_MOST_LISTED: Final = 20


class CapturedEvents(list[dict[str, Any]]):
    """
    The lines that were captured, read back, in the order of recording.

    They are ordinary dicts in an ordinary list.
    """

    @property
    def events(self) -> CapturedEvents:
        """
        Those of events, rendezvous events included.
        """
        return self._those(lambda line: line.get("kind") in _EVENTS)

    @property
    def logs(self) -> CapturedEvents:
        """
        Those of log messages.
        """
        return self.matching(kind="log")

    @property
    def stable(self) -> list[dict[str, Any]]:
        """
        Each line without its `VOLATILE_KEYS`, to compare it as a whole.
        """
        return [_stable(line) for line in self]

    def named(self, name: str) -> CapturedEvents:
        """
        Return the events with this *name*.
        """
        return self.matching(name=name)

    def matching(self, **expected: Any) -> CapturedEvents:
        """
        Return the lines that have what is *expected*, and maybe more.

        A mapping is expected to be part of the line's, at any depth. All else
        is expected to be equal, so that ``unittest.mock.ANY`` and
        ``pytest.approx`` can be used; a tuple equals a list.
        """
        return self._those(lambda line: not _differences(expected, line))

    def one(
        self, name: str | None = None, /, **expected: Any
    ) -> dict[str, Any]:
        """
        Return the one line that matches.

        Args:
            name: The event's name.

            **expected: As for `matching`.

        Raises:
            AssertionError: If none matches, or several do.
        """
        __tracebackhide__ = True
        if name is not None:
            expected = {"name": name, **expected}
        found = self.matching(**expected)
        if not found:
            raise AssertionError(self._account_of_none(expected))
        if len(found) > 1:
            raise AssertionError(
                f"expected one line that has {expected!r}, but"
                f" {len(found)} have:\n{_listed(found)}"
            )
        return found[0]

    def assert_has(self, **expected: Any) -> None:
        """
        Assert that at least one line matches.

        Args:
            **expected: As for `matching`.

        Raises:
            AssertionError:
                If none does. It says in what the most similar line differs.
        """
        __tracebackhide__ = True
        if not self.matching(**expected):
            raise AssertionError(self._account_of_none(expected))

    def _those(
        self, are_wanted: Callable[[dict[str, Any]], bool]
    ) -> CapturedEvents:
        return CapturedEvents(filter(are_wanted, self))

    def _account_of_none(self, expected: Mapping[str, Any]) -> str:
        account = f"no captured line has {dict(expected)!r}"
        if not self:
            return f"{account}: nothing was captured"
        nearest = min(
            range(len(self)),
            key=lambda at: len(_differences(expected, self[at])),
        )
        differences = _differences(expected, self[nearest])
        return "\n".join(
            (
                account,
                f"line {nearest} is the most similar, but for:",
                *(f"  {each}" for each in differences),
                f"captured, without {', '.join(sorted(VOLATILE_KEYS))}:",
                _listed(self),
            )
        )


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


def _stable(line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in line.items() if key not in VOLATILE_KEYS
    }


def _listed(lines: CapturedEvents) -> str:
    """
    Return *lines* as text for people, the last ones if there are many.
    """
    left_out = max(0, len(lines) - _MOST_LISTED)
    rows = [f"  {left_out} more"] if left_out else []
    for at, line in enumerate(lines[left_out:], left_out):
        rows.append(f"  {at}: {_stable(line)!r}")
    return "\n".join(rows)


def _differences(expected: Any, actual: Any, where: str = "") -> list[str]:
    """
    Return how *actual* differs from what it is expected to have.
    """
    if isinstance(expected, Mapping) and isinstance(actual, dict):
        found = []
        for key, value in expected.items():
            place = f"{where}.{key}" if where else str(key)
            if key in actual:
                found += _differences(value, actual[key], place)
            else:
                found.append(f"{place}: expected {value!r}, there is none")
        return found
    if isinstance(expected, (list, tuple)) and isinstance(actual, list):
        if len(expected) == len(actual):
            pairs = enumerate(zip(expected, actual, strict=True))
            return [
                each
                for at, (one, other) in pairs
                for each in _differences(one, other, f"{where}[{at}]")
            ]
    elif _are_equal(expected, actual):
        return []
    return [f"{where}: expected {expected!r}, got {actual!r}"]


def _are_equal(expected: Any, actual: Any) -> bool:
    try:
        return bool(expected == actual)
    except Exception:
        # An array, for one, has no single answer.
        return False


# From here on: how the lines get here. While anything is captured, every
# outlet has a stand-in for its sink, and what goes nowhere has an outlet.

_captures: list[CapturedEvents] = []
_lock = threading.RLock()
_undo = contextlib.ExitStack()


def _begin(captured: CapturedEvents) -> None:
    with _lock:
        if not _captures:
            _take_over()
        _captures.append(captured)


def _end(captured: CapturedEvents) -> None:
    with _lock:
        # Not `remove`: lists with the same lines are equal.
        _captures[:] = [each for each in _captures if each is not captured]
        if not _captures:
            _undo.close()


class _StandIn:
    """
    Take the lines that a sink would have been given.

    Args:
        sink: Gets those that come when nothing is captured any more.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, line: bytes, /) -> None:
        try:
            captured = _captures[-1]
        except IndexError:
            self._sink.write(line)
            return
        captured.append(decode(line))

    def after_fork(self) -> None:
        self._sink.after_fork()


class _Nowhere:
    """
    The sink of what has no destination.
    """

    def write(self, line: bytes, /) -> None:
        pass

    def after_fork(self) -> None:
        pass


def _take_over() -> None:
    # What is queued already is not of this test.
    flush()
    with contextlib.ExitStack() as stack:
        # Names are resolved anew at the beginning and, last of all, the end.
        stack.callback(destinations.resolve_anew)
        stack.enter_context(_numbers_kept())
        for owner, name, value in _replacements():
            stack.enter_context(_replaced(owner, name, value))
        destinations.resolve_anew()
        _undo.push(stack.pop_all())


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """
    Yield what has a stand-in while events are captured: owner, name, value.

    Each is looked up at every call, also of what was made before.
    """
    yield Outlet, "_sink", property(_stand_in_of, _set_sink)
    # What was lost before is for the real sink to tell.
    yield Outlet, "_report_drops", lambda _: None
    # A queue without a thread writes at once.
    yield QueuedOutlet, "_has_thread", lambda _: False
    resolved = destinations._resolved
    yield resolved, "_make", _somewhere(resolved._make)
    yield _NullLogger, "record", _record_nowhere
    yield _NullLogger, "_log", _log_nowhere
    yield EventHandler, "emit", _emit_anywhere(EventHandler.emit)
    yield NullEventHandler, "handle", EventHandler.handle


def _stand_in_of(outlet: Outlet) -> Sink:
    return _StandIn(vars(outlet)["_sink"])


def _set_sink(outlet: Outlet, sink: Sink) -> None:
    vars(outlet)["_sink"] = sink


def _somewhere(
    find: Callable[[str], Destination | None],
) -> Callable[[str], Destination]:
    nowhere = Destination(Outlet(lambda: "null", _Nowhere()))
    return lambda name: find(name) or nowhere


def _awake(logger: EventLogger) -> EventLogger:
    """
    Return what a logger to nowhere would be if that were somewhere.
    """
    writer = logger._logger
    awake = get_logger(
        level=writer.request.level,
        processors=writer.request.processors,
        name=writer.name,
    )
    return awake.bind(**logger._context)


def _record_nowhere(self: EventLogger, event: Any, /) -> None:
    _awake(self).record(event)


def _log_nowhere(self: EventLogger, *call: Any) -> None:
    _awake(self)._log(*call)


def _emit_anywhere(
    emit: Callable[[EventHandler, logging.LogRecord], None],
) -> Callable[[EventHandler, logging.LogRecord], None]:
    def emit_anywhere(self: EventHandler, record: logging.LogRecord) -> None:
        if self._found is None:
            self = EventHandler(processors=self._processors)
        emit(self, record)

    return emit_anywhere


@contextlib.contextmanager
def _numbers_kept() -> Iterator[None]:
    """
    Have the outlets go on with the numbers that they had.
    """
    process = os.getpid()
    before = {}
    for outlet in outlets._in_use.all():
        before[outlet] = outlet.numbers.numbers
        taken = outlet.numbers.taken()
        outlet.numbers.numbers = itertools.count(taken)
    try:
        yield
    finally:
        # In a forked process they are the parent's.
        if os.getpid() != process:
            before = {}
        for outlet in outlets._in_use.all():
            outlet.numbers.restart()
            if outlet in before:
                outlet.numbers.numbers = before[outlet]


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603
    # Another thread may have held it.
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
