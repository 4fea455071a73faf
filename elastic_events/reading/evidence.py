"""
What an error or an exit code says of who was to blame.
"""

from __future__ import annotations

import re
import signal
from typing import Final

from .facts import Error
from .signals import signal_of


# What a shell ends with whose program a signal has ended: this and its number.
_OF_SHELL: Final = 128
_STOPPED: Final = (-signal.SIGTERM, _OF_SHELL + signal.SIGTERM)
_KILLED: Final = (-signal.SIGKILL, _OF_SHELL + signal.SIGKILL)

_PEER_CLOSED: Final = re.compile(
    r"connection (?:was )?(?:closed|reset) by (?:remote )?peer"
    r"|connection was likely closed|broken pipe|remote process exited",
    re.IGNORECASE,
)
_WAITED_IN_VAIN: Final = re.compile(
    r"caught collective operation timeout|timed out waiting \d+ ?ms for",
    re.IGNORECASE,
)
_RENDEZVOUS_CLOSED: Final = re.compile(
    r"RendezvousClosedError|RendezvousGracefulExitError"
)


def is_peer_closed(error: Error | None) -> bool:
    """
    Tell whether an error only says that another process was gone.
    """
    return error is not None and bool(
        _PEER_CLOSED.search(error.message or error.traceback or "")
    )


def has_waited_in_vain(error: Error | None) -> bool:
    """
    Tell whether an error only says that other workers did not come in time.
    """
    return error is not None and bool(
        _WAITED_IN_VAIN.search(error.message or error.traceback or "")
    )


def is_rendezvous_closed(error: Error | None) -> bool:
    """
    Tell whether an error only says that the job was over.
    """
    return error is not None and bool(
        _RENDEZVOUS_CLOSED.fullmatch(error.type or "")
    )


def is_of_agent(exit_code: int | None) -> bool:
    """
    Tell whether *exit_code* is that of a worker that its agent has stopped.
    """
    return exit_code in _STOPPED + _KILLED


def is_terminated(exit_code: int | None) -> bool:
    """
    Tell whether *exit_code* is that of a worker that SIGTERM has ended.
    """
    return exit_code in _STOPPED


def is_end_by(number: int, exit_code: int | None, error: Error | None) -> bool:
    """
    Tell whether a worker ended so because it got the signal *number*.
    """
    if error is None:
        return exit_code in (-number, _OF_SHELL + number)
    return number == signal.SIGINT and error.type == "KeyboardInterrupt"


def signal_told_by_shell(exit_code: int | None) -> str | None:
    """
    Return the signal that a shell's exit code tells of, ``SIGKILL`` for 137.
    """
    if exit_code is None or not _OF_SHELL < exit_code < 2 * _OF_SHELL:
        return None
    name = signal_of(_OF_SHELL - exit_code)
    return name if name in signal.Signals.__members__ else None
