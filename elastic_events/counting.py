"""
A count that needs no lock.
"""

from __future__ import annotations

import itertools


class Count:
    """
    0, 1, 2 …, each given to one caller, be it a thread or a signal handler.
    """

    __slots__ = ("_numbers", "take")

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.take = self._numbers.__next__

    def taken(self) -> int:
        """
        Return how many numbers were taken.
        """
        # Its repr is the one way to read it without taking one: "count(7)".
        return int(repr(self._numbers)[len("count(") : -1])
