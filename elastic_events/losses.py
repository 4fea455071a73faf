"""
What an outlet lost, and what of that it has still to report.
"""

from __future__ import annotations

import errno
import time

from .counting import Count
from .values import type_name


class Losses:
    """
    How many lines were lost, for each reason.

    A signal handler may count in the middle of anything here: only what is
    done in one step is relied upon.

    Args:
        are_reported: Whether they are to be reported in a line.
    """

    def __init__(self, *, are_reported: bool) -> None:
        self._are_reported = are_reported
        self._counts: dict[str, Count] = {}
        self._reported: dict[str, int] = {}
        # The reasons for which there is something to report.
        self.unreported: dict[str, bool] = {}
        self.since = 0

    def count(self, error: BaseException, lines: int) -> None:
        """
        Count *lines* that *error* kept from being written.
        """
        reason = _reason(error)
        if self._are_reported and not self.unreported:
            self.since = time.time_ns() // 1_000_000
        count = self._counts.get(reason)
        if count is None:
            count = self._counts.setdefault(reason, Count())
        for _ in range(lines):
            count.take()
        if self._are_reported:
            self.unreported[reason] = True

    def of_all(self) -> dict[str, int]:
        """
        Return how many were lost.
        """
        counts = list(self._counts.items())
        return {reason: count.taken() for reason, count in counts}

    def to_report(self) -> dict[str, int]:
        """
        Return how many were lost of which nothing was reported yet.
        """
        return {reason: self._left(reason) for reason in list(self.unreported)}

    def forget(self, reported: dict[str, int]) -> None:
        """
        Report no more what was *reported*, for which one at a time may ask.
        """
        for reason, lines in reported.items():
            self._reported[reason] = self._reported.get(reason, 0) + lines
            del self.unreported[reason]
            # One more may have been counted in between.
            if self._left(reason):
                self.unreported[reason] = True

    def _left(self, reason: str) -> int:
        return self._counts[reason].taken() - self._reported.get(reason, 0)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and type(error.errno) is int:
        return errno.errorcode.get(error.errno, type_name(error))
    return type_name(error)
