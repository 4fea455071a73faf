"""
When something was recorded, and the silences between.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple


_MOST_SPELLS: Final = 20_000
_NARROWEST: Final = 1000


class Silence(NamedTuple):
    """
    A time in which nothing was recorded, in ms since the epoch.
    """

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """
        How long it is.
        """
        return (self.end - self.start) / 1000


class Activity:
    """
    Remember when something was recorded, in whatever order it comes.

    Time is divided into spells of one width, and of each the first and last
    moment are kept. As there are more and more spells they are made wider, so
    that memory stays bounded. A silence that is longer than a spell is known
    exactly.
    """

    def __init__(self) -> None:
        self._width = _NARROWEST
        self._spells: dict[int, tuple[float, float]] = {}

    def see(self, timestamp: float) -> None:
        """
        Take note of a moment, in ms since the epoch.
        """
        number = int(timestamp // self._width)
        spell = self._spells.get(number)
        if spell is None:
            self._spells[number] = (timestamp, timestamp)
            while len(self._spells) > _MOST_SPELLS:
                self._widen()
        elif timestamp > spell[1]:
            self._spells[number] = (spell[0], timestamp)
        elif timestamp < spell[0]:
            self._spells[number] = (timestamp, spell[1])

    def silences(self, most: int) -> list[Silence]:
        """
        Return the longest silences, at *most* so many, the longest first.
        """
        return heapq.nlargest(
            most, self._silences(), key=lambda each: each.end - each.start
        )

    def _silences(self) -> Iterator[Silence]:
        spells = sorted(self._spells.values())
        for (_, start), (end, _) in pairwise(spells):
            if end - start >= self._width:
                yield Silence(start, end)

    def _widen(self) -> None:
        self._width *= 2
        spells, self._spells = self._spells, {}
        for number, (first, last) in spells.items():
            wide = self._spells.get(number // 2, (first, last))
            self._spells[number // 2] = (
                min(wide[0], first),
                max(wide[1], last),
            )
