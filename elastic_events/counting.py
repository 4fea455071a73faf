"""
A count that needs no lock.
"""

from __future__ import annotations

import itertools


class Count:
    """
    0, 1, 2 …, each given to one caller, be it a thread or a signal handler.

    Args:
        first: The first number.
    """

    __slots__ = ("numbers",)

    def __init__(self, first: int = 0) -> None:
        self.restart(first)

    def restart(self, first: int = 0) -> None:
        """
        Count anew.
        """
        self.numbers = itertools.count(first)

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
