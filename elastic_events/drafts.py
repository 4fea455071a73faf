"""
What an event or a log says, as the keys of a line in their order.

A draft is a line in which the recorder's own keys (time, host, process,
sequence) are still blank; the processors fill them in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import process, torchelastic
from .api import (
    Event,
    EventSource,
    NodeState,
    RdzvEvent,
    is_event,
    is_rdzv_event,
)
from .context import place, with_context
from .schema import EARLIEST, LATEST, fits
from .values import reraise_interrupt, text_of, type_name


_NOTHING: Final[Mapping[str, Any]] = {}


def can_draft(value: object) -> bool:
    """
    Tell whether *value* is an event of either kind, ours or a look-alike.
    """
    return is_event(value) or is_rdzv_event(value)


def draft(
    event: Any, context: Mapping[str, Any] = _NOTHING, created: int = 0
) -> dict[str, Any]:
    """
    Return what *event* says.

    Args:
        event:
            An `Event` or a `RdzvEvent`, or a look-alike. Anything else gives
            a warning that holds it, for nothing may be lost.

        context: What was bound.

        created:
            The moment of recording in milliseconds since the epoch, zero for
            now. An event's own time goes before it.
    """
    # By far the most frequent, and spared the closer look.
    if isinstance(event, Event) or is_event(event):
        return _draft_event(event, context, created)
    if is_rdzv_event(event):
        return _draft_rdzv_event(event, context, created)
    return draft_log(
        f"expected an Event or RdzvEvent, got {type_name(event)}",
        level="warning",
        logger="elastic_events",
        metadata={"given": event},
        context=context,
        created=created,
    )


def draft_unreadable(given: object, error: BaseException) -> dict[str, Any]:
    """
    Return what there is to say of what could not be read.

    Raises:
        KeyboardInterrupt, SystemExit: If that is the error.
    """
    reraise_interrupt(error)
    return draft_log(
        f"could not read {type_name(given)}: {text_of(error)}",
        level="warning",
        logger="elastic_events",
        metadata={"given": given, "error": type_name(error)},
    )


def draft_log(
    message: str,
    *,
    level: str,
    logger: str,
    metadata: Mapping[str, Any] = _NOTHING,
    error_trace: str = "",
    context: Mapping[str, Any] = _NOTHING,
    created: int = 0,
) -> dict[str, Any]:
    """
    Return what a log call says.

    Args:
        message: The text, its arguments filled in.

        level: One of the five standard names.

        logger: The logger's name.

        metadata: The call's own fields.

        error_trace: The traceback, if any.

        context: What was bound.

        created:
            The moment of the call in milliseconds since the epoch, zero for
            now.
    """
    details: dict[str, Any] = {"logger": logger}
    worker: dict[str, Any] = {}
    if logger.startswith(torchelastic.LOGGER_PREFIX):
        worker, said_trace = torchelastic.worker_of_log(message)
        error_trace = error_trace or said_trace
    if error_trace:
        details["error_trace"] = error_trace
    if worker:
        details["worker"] = worker
    if metadata:
        details["metadata"] = metadata
    who = process.current()
    job, bound = place(_NOTHING, context, who.job)
    line = _line(
        created, level, "log", _NOTHING, message, who.source, job, details
    )
    return with_context(line, bound) if bound else line


def _draft_event(
    event: Event, context: Mapping[str, Any], created: int
) -> dict[str, Any]:
    odd: list[tuple[str, Any]] = []
    who = process.current()
    name, source, metadata = event.name, event.source, event.metadata
    timestamp = event.timestamp
    if type(timestamp) is not int or not EARLIEST <= timestamp <= LATEST:
        odd.append(("timestamp", timestamp))
        timestamp = 0
    if type(name) is not str:
        name = text_of(name)
    if type(source) is not EventSource:
        source = _source(source, who.source, odd)
    if not isinstance(metadata, dict):
        metadata = _mapping(metadata, odd)

    level, job, details = "info", _NOTHING, {"metadata": metadata}
    if name.startswith(torchelastic.EVENT_PREFIX):
        level, job, details = _unwrapped(metadata, source)
    if job or context:
        job, bound = place(job, context, who.job)
    else:
        job, bound = who.job, ()
    line = _line(
        timestamp or created,
        level,
        "event",
        {"name": name},
        name,
        source,
        job,
        details,
    )
    return with_context(line, (*odd, *bound)) if odd or bound else line


def _unwrapped(
    metadata: dict[str, Any], source: str
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """
    Return level, place in the job and details of a ``torchelastic.*`` event.
    """
    account = torchelastic.account_of_event(metadata)
    details: dict[str, Any] = {}
    if account.error_trace:
        details["error_trace"] = account.error_trace
    if account.worker and source == EventSource.WORKER:
        details["worker"] = account.worker
    details["metadata"] = metadata
    failed = account.failed or account.error_trace
    return ("error" if failed else "info"), account.job, details


def _draft_rdzv_event(
    event: RdzvEvent, context: Mapping[str, Any], created: int
) -> dict[str, Any]:
    odd: list[tuple[str, Any]] = []
    who = process.current()
    own = {
        key: _typed(key, getattr(event, key), kind, odd)
        for key, kind in _RDZV_FIELDS.items()
    }
    details = {key: own[key] for key in _RDZV_DETAILS if own[key] is not None}
    failed = own["node_state"] == NodeState.FAILED or own["error_trace"]
    job, bound = place(own, context, who.job)
    name = text_of(event.name)
    line = _line(
        created,
        "error" if failed else "info",
        "rdzv",
        {"name": name},
        text_of(event.message),
        who.source,
        job,
        details,
        own["hostname"] or "",
        own["pid"] or 0,
    )
    return with_context(line, (*odd, *bound)) if odd or bound else line


_RDZV_FIELDS: Final[dict[str, type]] = {
    "run_id": str,
    "hostname": str,
    "pid": int,
    "node_state": str,
    "local_id": int,
    "master_endpoint": str,
    "rank": int,
    "error_trace": str,
}
_RDZV_DETAILS: Final = (
    "node_state",
    "local_id",
    "master_endpoint",
    "error_trace",
)


def _line(
    timestamp: int,
    level: str,
    kind: str,
    naming: Mapping[str, Any],
    message: str,
    source: str,
    job: Mapping[str, Any],
    details: Mapping[str, Any],
    hostname: str = "",
    pid: int = 0,
) -> dict[str, Any]:
    """
    Return a line up to its metadata: the one place that orders the keys.
    """
    return {
        "timestamp": timestamp,
        "time": "",
        "level": level,
        "kind": kind,
        **naming,
        "message": message,
        "source": source,
        "hostname": hostname,
        "pid": pid,
        "seq": 0,
        **job,
        **details,
    }


def _typed(
    key: str, value: Any, kind: type, odd: list[tuple[str, Any]]
) -> Any:
    """
    Return *value* if it is a *kind* that says something, else `None`.

    One that says something and is of another type is added to *odd*.
    """
    if fits(value, kind):
        return value
    is_empty = value is None or (isinstance(value, str) and not value)
    if not is_empty:
        odd.append((key, value))
    return None


def _source(
    source: object, fallback: EventSource, odd: list[tuple[str, Any]]
) -> EventSource:
    if isinstance(source, str):
        for known in EventSource:
            if source == known:
                return known
    odd.append(("source", source))
    return fallback


def _mapping(value: Any, odd: list[tuple[str, Any]]) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if value is not None:
        odd.append(("metadata", value))
    return {}
