"""
The names of signals.
"""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """
    Return the name of a signal, ``SIGTERM`` for 15.
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_of(exit_code: object) -> str | None:
    """
    Return the name of the signal that ended a process, ``SIGKILL`` for -9.

    Args:
        exit_code: As Python has it: what a signal ended is negative.
    """
    if type(exit_code) is not int or exit_code >= 0:
        return None
    return signal_name(-exit_code)
