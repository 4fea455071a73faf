"""
Lines that a test captured, and how they compare with what is expected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final


VOLATILE_KEYS: Final = frozenset(
    ("timestamp", "time", "hostname", "pid", "seq")
)
"""The keys of every line whose values are others in each run of a test."""

_EVENTS: Final = ("event", "rdzv")
_MOST_LISTED: Final = 20
_NOT_THERE: Final = "there is none"


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
        # Of several the last, which is more likely what was waited for.
        nearest = min(
            reversed(range(len(self))),
            key=lambda at: _distance(_differences(expected, self[at])),
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


def _distance(differences: list[str]) -> tuple[int, int]:
    """
    Return how much so many *differences* are, more where a key is not there.
    """
    missing = sum(each.endswith(_NOT_THERE) for each in differences)
    return len(differences), missing


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
                found.append(f"{place}: expected {value!r}, {_NOT_THERE}")
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
