"""
The functions of ``torch.distributed.elastic.events``.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import Final

# Two of torch's names are looked up in the package at each call, so that
# `mock.patch("elastic_events.…")` reaches the code that torch's tests patch.
import elastic_events as package

from . import process
from .api import Event, NodeState, RdzvEvent
from .destinations import ByName
from .logger import get_logger


# To look it up in the class takes longer.
_FAILED: Final = NodeState.FAILED

KEEPALIVE_VARIABLE: Final = "ELASTIC_EVENTS_KEEPALIVE"
_KEEPALIVE_STEPS: Final = (
    "._keep_alive",
    "_DistributedRendezvousOpExecutor.run",
)


def record(event: Event, destination: str = "null") -> None:
    """
    Record *event*.

    Unlike torch's it goes to the destination that the environment variable
    ``ELASTIC_EVENTS_DESTINATION`` names, if *destination* is ``"null"``; it
    takes torch's events and `RdzvEvent` as well; and neither a value nor a
    failing write makes it raise.

    Args:
        event:
            What happened. Anything but an event is recorded as a warning.

        destination: The name or URI of a destination.

    Raises:
        UnknownDestination: If there is no such destination.
    """
    _recorders[destination](event)


def record_rdzv_event(event: RdzvEvent) -> None:
    """
    Record *event* to the destination ``"dynamic_rendezvous"``.

    Same as torch's, but for what `record` does differently.

    Args:
        event: A step of a rendezvous.
    """
    record(event, "dynamic_rendezvous")  # type: ignore[arg-type]


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """
    Record a step of a rendezvous, with the file and function that took it.

    Does nothing while ``"dynamic_rendezvous"`` goes nowhere. Unlike torch's
    it does not read source files to find its caller, does not ask DNS for the
    host's name, and leaves ``error_trace`` empty for a failure outside of an
    ``except``. With ``ELASTIC_EVENTS_KEEPALIVE=off`` in the environment it
    leaves out what a node that is alive repeats every few seconds.

    Args:
        run_id: The id of the job.

        message: The step in words.

        node_state: The node's state; FAILED takes the current traceback.

        name: The step's name. (default: the calling function's)

        hostname: The node's host. (default: this one)

        pid: The process id of the node's agent. (default: this process's)

        master_endpoint: Where the rendezvous store listens, if known.

        local_id: The node's number within its process, if known.

        rank: The node's rank, if known.
    """
    handler = package.get_logging_handler("dynamic_rendezvous")
    if isinstance(handler, logging.NullHandler):
        return
    file, function = _calling_code()
    name = name or function
    has_failed = node_state == _FAILED
    if name.endswith(_KEEPALIVE_STEPS) and not has_failed and _is_off():
        return
    who = process.here or process.current()
    package.record_rdzv_event(
        RdzvEvent(
            f"{file}:{name}",
            run_id,
            message,
            hostname or who.hostname,
            pid or who.pid,
            node_state,
            master_endpoint,
            rank,
            local_id,
            _current_trace() if has_failed else "",
        )
    )


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    """
    Return the stdlib logger ``elastic_events.<destination>``.

    It has exactly one handler, that of the destination, and does not
    propagate. Unlike torch's it does not heed ``LOGLEVEL``, which would drop
    events.
    """
    handler = package.get_logging_handler(destination)
    logger = logging.getLogger(f"elastic_events.{destination}")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    if logger.handlers != [handler]:
        logger.handlers = [handler]
    return logger


def _is_off() -> bool:
    """
    Tell whether the events of nodes that are alive are not wanted.
    """
    return os.environ.get(KEEPALIVE_VARIABLE, "").lower() == "off"


def _calling_code() -> tuple[str, str]:
    """
    Return file and function of whoever called the caller, as torch does.
    """
    try:
        code = sys._getframe(2).f_code  # noqa: SLF001
    except ValueError:
        # A thread's own target, or C, called.
        return "no_file", ""
    return code.co_filename.rpartition(os.sep)[2], code.co_name


def _current_trace() -> str:
    return traceback.format_exc() if sys.exc_info()[0] else ""


_recorders: ByName[Callable[[Event], None]] = ByName(
    lambda destination: get_logger(destination).record
)
