"""
A count that needs no lock, and what was numbered by it.
"""

from __future__ import annotations

import itertools
import weakref

from .living import Living


class Count:
    """
    0, 1, 2 …, each given to one caller, be it a thread or a signal handler.

    Args:
        first: The first number.
    """

    __slots__ = ("__weakref__", "numbers")

    def __init__(self, first: int = 0) -> None:
        self.numbers = itertools.count(first)
        _in_use.add(self)

    def restart(self) -> None:
        """
        Count anew, from zero, as each does in a forked process.
        """
        self.numbers = itertools.count()

    def set_aside(self) -> itertools.count[int]:
        """
        Count on from here with other numbers; return those to `resume`.
        """
        before = self.numbers
        self.numbers = itertools.count(self.taken())
        return before

    def resume(self, numbers: itertools.count[int]) -> None:
        """
        Count on with *numbers* that were set aside.
        """
        self.numbers = numbers

    def take(self) -> int:
        """
        Return the next number.

        Where a call takes too long: ``next(count.numbers)``.
        """
        return next(self.numbers)

    def taken(self) -> int:
        """
        Return how many numbers were taken.
        """
        # Its repr is the one way to read it without taking one: "count(7)".
        return int(repr(self.numbers)[len("count(") : -1])


class _Owner(weakref.ref[object]):
    """
    Who was given a number, and by which count.
    """

    __slots__ = ("key", "number", "numbers")

    key: int
    number: int
    numbers: itertools.count[int]


class Given:
    """
    The numbers of a count that objects were given, as long as they live.

    In a forked process, which counts anew, they were given none.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        # Not by their values: a class may say that all its objects are equal.
        self._owners: dict[int, _Owner] = {}

    def note(self, owner: object, number: int) -> None:
        """
        Note that *owner* was given *number*.
        """
        found = _Owner(owner, self._forget)
        found.key = id(owner)
        found.number = number
        found.numbers = self._count.numbers
        self._owners[found.key] = found

    def to(self, owner: object) -> int | None:
        """
        Return the number that *owner* was given, if it was.
        """
        found = self._owners.get(id(owner))
        if found is None or found.numbers is not self._count.numbers:
            return None
        return found.number if found() is owner else None

    def _forget(self, owner: weakref.ref[object]) -> None:
        self._owners.pop(owner.key, None)  # type: ignore[attr-defined]


_in_use: Living[Count] = Living(Count.restart)
