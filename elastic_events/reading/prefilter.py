"""
Which lines are wanted, told by their bytes: most need not be read then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final


BEGINNING: Final = b'{"timestamp":'
"""How our lines begin."""

_ENDS: Final = (b"}", b"}\r")


class Prefilter:
    """
    What finds the lines that hold what they must, without reading them.

    Args:
        must_hold: What a line must hold, all of it.
    """

    def __init__(self, must_hold: tuple[bytes, ...]) -> None:
        self._needles = must_hold
        # Where a character may be spelled otherwise than in the needles.
        # Only what is not ASCII is spelled \u0100 and above.
        together = b"".join(must_hold)
        self._spellings = [b"\\u00" if together.isascii() else b"\\u"]
        if b"/" in together:
            self._spellings.append(rb"\/")

    def lines(
        self, block: bytes, line_feeds: int
    ) -> Iterable[tuple[int, bytes]]:
        """
        Return the lines of *block* that must be read.

        Returns:
            Each line, after the number of lines before it.
        """
        if self._is_sound(block, line_feeds):
            return self._found(block)
        return [
            (passed, raw)
            for passed, raw in enumerate(block.split(b"\n"))
            if self.must_be_read(raw)
        ]

    def _is_sound(self, block: bytes, line_feeds: int) -> bool:
        """
        Tell whether all lines are ours and whole, as far as one can see.
        """
        return (
            block.startswith(BEGINNING)
            and block.endswith(b"}")
            and block.count(b'}\n{"timestamp":') == line_feeds
            and not self._is_spelled_otherwise(block)
        )

    def _is_spelled_otherwise(self, data: bytes) -> bool:
        return any(holds(data, each) for each in self._spellings)

    def must_be_read(self, raw: bytes) -> bool:
        """
        Tell whether a line is not ours and whole, or holds what it must.
        """
        return (
            not raw.startswith(BEGINNING)
            or not raw.endswith(_ENDS)
            or all(needle in raw for needle in self._needles)
            or self._is_spelled_otherwise(raw)
        )

    def _found(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        needle, *others = self._needles
        if others:
            needle, *others = sorted(self._needles, key=block.count)
        passed = end = 0
        while (found := block.find(needle, end)) >= 0:
            start = block.rfind(b"\n", end, found) + 1 or end
            passed += block.count(b"\n", end, start)
            end = block.find(b"\n", found) + 1 or len(block) + 1
            raw = block[start : end - 1]
            if all(each in raw for each in others):
                yield passed, raw
            passed += 1


def holds(data: bytes, part: bytes) -> bool:
    """
    Tell whether *part* is in *data*, soon where its first byte is not.
    """
    # One byte is searched for many times faster than two.
    return data.find(part[0]) >= 0 and part in data
