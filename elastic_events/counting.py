"""
A count that needs no lock.
"""

from __future__ import annotations

import itertools

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


_in_use: Living[Count] = Living(Count.restart)
