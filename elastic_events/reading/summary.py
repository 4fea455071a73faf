"""
What failed first, in a few words.
"""

from __future__ import annotations

from typing import Final

from .escaping import escaped
from .signals import signal_of
from .verdicts import Cause


_LONGEST_MESSAGE: Final = 300


def summary(cause: Cause) -> str:
    """
    Return in a few words what failed.
    """
    error = _error_text(cause)
    if cause.kind == "worker":
        return _of_worker(cause, error)
    if cause.kind == "signal":
        return f"the agent was told to stop ({cause.signal})"
    if cause.kind == "node_lost":
        return f"node {escaped(cause.node)} was lost"
    if cause.kind == "rendezvous":
        return f"the rendezvous failed: {error or 'no error is known'}"
    if cause.kind == "agent":
        return f"an agent failed: {error or 'no error is known'}"
    return "not known"


def _of_worker(cause: Cause, error: str) -> str:
    who = "a worker" if cause.rank is None else f"rank {cause.rank}"
    signal = signal_of(cause.exit_code)
    if signal is not None:
        # Whether the error was the reason for the signal is not known.
        said = f"; its error data says {error}" if error else ""
        return f"{who} died by {signal}{said}"
    code = cause.exit_code
    how = "" if code is None else f" with exit code {code}"
    return f"{who} failed{how}" + (f": {error}" if error else "")


def _error_text(cause: Cause) -> str:
    error = cause.error
    if error is None:
        return ""
    known = (error.type, error.message)
    text = ": ".join(each for each in known if each)
    return escaped(text, _LONGEST_MESSAGE)
