"""
For the tests of programs that record: what they recorded, as a list.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from . import backlog, destinations, outlets
from .encoding import decode
from .entrances import Destination
from .outlets import Outlet
from .sinks import CallableSink


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


# From here on: how the lines get here. While anything is captured, they are
# diverted, also on the way to nowhere.

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
