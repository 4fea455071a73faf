"""
How a command ends.
"""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """
    The exit statuses.
    """

    FINE = 0
    FINDINGS = 1
    USAGE = 2
    UNDECIDED = 3
    INTERRUPTED = 130


class UsageError(Exception):
    """
    The command cannot do what was asked; its text says why.
    """
