"""
What an error or an exit code says of who was to blame.
"""

from __future__ import annotations

import re
import signal
from typing import Final

from .facts import Error


SIGNALS_OF_AGENTS: Final = (-signal.SIGTERM, -signal.SIGKILL)
"""How a worker ends that its agent has stopped."""

_PEER_CLOSED: Final = re.compile(
    r"connection (?:was )?(?:closed|reset) by (?:remote )?peer"
    r"|connection was likely closed|broken pipe|remote process exited",
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
    return exit_code in SIGNALS_OF_AGENTS
