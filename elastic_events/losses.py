"""
What an outlet lost, and what of that it has still to report.
"""

from __future__ import annotations

import errno
import time

from .values import type_name


class Losses:
    """
    How many lines were lost, for each reason.

    Args:
        are_reported: Whether they are to be reported in a line.
    """

    def __init__(self, *, are_reported: bool) -> None:
        self._are_reported = are_reported
        self.of_all: dict[str, int] = {}
        self.unreported: dict[str, int] = {}
        self.since = 0

    def count(self, error: BaseException, lines: int) -> None:
        """
        Count *lines* that *error* kept from being written.
        """
        reason = _reason(error)
        if self._are_reported and not self.unreported:
            self.since = time.time_ns() // 1_000_000
        self.of_all[reason] = self.of_all.get(reason, 0) + lines
        if self._are_reported:
            unreported = self.unreported.get(reason, 0)
            self.unreported[reason] = unreported + lines

    def forget(self, reported: dict[str, int]) -> None:
        """
        Report no more what was *reported*.
        """
        for reason, lines in reported.items():
            self.unreported[reason] -= lines
            if not self.unreported[reason]:
                del self.unreported[reason]


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and type(error.errno) is int:
        return errno.errorcode.get(error.errno, type_name(error))
    return type_name(error)
