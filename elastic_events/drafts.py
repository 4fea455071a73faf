"""
What an event or a log says, as the keys of a line in their order.

A draft is a line in which time and number are still blank; the processors
fill them in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

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
from .process import Process
from .schema import EARLIEST, JOB_KEYS, LATEST, fits
from .torchelastic import EVENT_PREFIX
from .values import reraise_interrupt, text_of, type_name


_NOTHING: Final[Mapping[str, Any]] = {}
# A slice takes two thirds of the time of `str.startswith`.
_PREFIX: Final = len(EVENT_PREFIX)


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
    # Nearly all are of this kind, and are told at once.
    if type(event) is Event:
        name, source, metadata = event.name, event.source, event.metadata
        timestamp = event.timestamp
        if (
            type(name) is str
            and type(source) is EventSource
            and type(metadata) is dict
            and type(timestamp) is int
            and (not timestamp or EARLIEST <= timestamp <= LATEST)
        ):
            bound = context
            blanks = _last_blanks
            if blanks.who is not process.here:
                blanks = _blanks()
            if name[:_PREFIX] == EVENT_PREFIX:
                line, bound = _of_torchelastic(
                    blanks, source, metadata, context
                )
            elif context:
                line, bound = _with_place(blanks.bare_event, _NOTHING, context)
            else:
                line = blanks.event.copy()
            line["timestamp"] = timestamp or created
            line["name"] = line["message"] = name
            line["source"] = source
            line["metadata"] = metadata
            return with_context(line, bound) if bound else line
    if type(event) is RdzvEvent:
        return _draft_rdzv_event(event, context, created)
    # A subclass, or a look-alike such as torch's.
    if is_event(event):
        return _draft_odd_event(event, context, created)
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
    worker: dict[str, Any] = {}
    if logger.startswith(torchelastic.LOGGER_PREFIX):
        worker, said_trace = torchelastic.worker_of_log(message)
        error_trace = error_trace or said_trace
    blanks = _blanks()
    bound: Mapping[str, Any] = _NOTHING
    if context:
        line, bound = _with_place(blanks.bare_log, _NOTHING, context)
        line["logger"] = logger
    else:
        line = blanks.log.copy()
        line["logger"] = logger
    line["timestamp"] = created
    line["level"] = level
    line["message"] = message
    if error_trace:
        line["error_trace"] = error_trace
    if worker:
        line["worker"] = worker
    if metadata:
        line["metadata"] = metadata
    return with_context(line, bound) if bound else line


def _draft_odd_event(
    event: Event, context: Mapping[str, Any], created: int
) -> dict[str, Any]:
    """
    Return what an event says of which a field is of another type.
    """
    odd: dict[str, Any] = {}
    timestamp, metadata = event.timestamp, event.metadata
    if type(timestamp) is not int or not EARLIEST <= timestamp <= LATEST:
        odd["timestamp"] = timestamp
        timestamp = 0
    mended = Event(
        name=str.__str__(text_of(event.name)),
        source=_source(event.source, odd),
        timestamp=timestamp,
        metadata=_mapping(metadata, odd),
    )
    return with_context(draft(mended, context, created), odd)


def _of_torchelastic(
    blanks: _Blanks,
    source: EventSource,
    metadata: dict[str, Any],
    context: Mapping[str, Any],
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """
    Return the line of an event that states its place in the job itself.
    """
    if source is _WORKER:
        usual = torchelastic.usual_line(blanks.worker_event, metadata)
        if usual is not None:
            if context:
                own = {key: usual[key] for key in JOB_KEYS}
                context = place(own, context, _NOTHING)[1]
            return usual, context
    failed, job, worker, trace = torchelastic.account_of_event(metadata)
    line, bound = _with_place(blanks.bare_event, job, context)
    if failed or trace:
        line["level"] = "error"
    if trace:
        line["error_trace"] = trace
    if worker and source is _WORKER:
        line["worker"] = worker
    return line, bound


def _draft_rdzv_event(
    event: RdzvEvent, context: Mapping[str, Any], created: int
) -> dict[str, Any]:
    odd: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, kind in _RDZV_FIELDS:
        value = getattr(event, key)
        # What is empty says nothing; not every value can be compared.
        if value is None or (type(value) is str and not value):
            continue
        if type(value) is str is kind or fits(value, kind):
            own[key] = value
        else:
            odd[key] = value
    job: dict[str, Any] = {}
    for key in ("run_id", "rank"):
        if key in own:
            job[key] = own.pop(key)
    line, bound = _with_place(_blanks().rdzv, job, context)
    name, message = event.name, event.message
    line["timestamp"] = created
    line["name"] = name if type(name) is str else text_of(name)
    line["message"] = message if type(message) is str else text_of(message)
    if "hostname" in own:
        line["hostname"] = own.pop("hostname")
    if own.get("pid"):
        line["pid"] = own["pid"]
    own.pop("pid", None)
    if "error_trace" in own or own.get("node_state") == _FAILED:
        line["level"] = "error"
    line.update(own)
    if bound:
        with_context(line, bound)
    return with_context(line, odd) if odd else line


# Those that stand at the end of a line at the end, in their order.
_RDZV_FIELDS: Final[tuple[tuple[str, type], ...]] = (
    ("run_id", str),
    ("rank", int),
    ("hostname", str),
    ("pid", int),
    ("node_state", str),
    ("local_id", int),
    ("master_endpoint", str),
    ("error_trace", str),
)


class _Blanks(NamedTuple):
    """
    The lines of a process before anything is said: the keys in their order.

    Who records is in them already: looked up once, and again after a fork.

    A bare one is to be given its place in the job. That of an event about a
    worker is to be given all that torch says of one.
    """

    who: Process
    event: dict[str, Any]
    bare_event: dict[str, Any]
    worker_event: dict[str, Any]
    log: dict[str, Any]
    bare_log: dict[str, Any]
    rdzv: dict[str, Any]


# To look it up in the class takes longer.
_FAILED: Final = NodeState.FAILED
_WORKER: Final = EventSource.WORKER
_NOBODY: Final = Process("", 0, EventSource.AGENT, {})

_last_blanks = _Blanks(_NOBODY, {}, {}, {}, {}, {}, {})


def _blanks() -> _Blanks:
    """
    Return the blanks of this process.
    """
    if _last_blanks.who is not process.here:
        _renew_blanks()
    return _last_blanks


def _renew_blanks() -> None:
    global _last_blanks  # noqa: PLW0603
    who = process.current()
    event = _blank("event", {"name": ""}, who)
    log = _blank("log", {}, who)
    _last_blanks = _Blanks(
        who=who,
        event={**event, **who.job, "metadata": {}},
        bare_event=event,
        worker_event={
            **event,
            **dict.fromkeys(JOB_KEYS),
            "worker": None,
            "metadata": None,
        },
        log={**log, **who.job, "logger": ""},
        bare_log=log,
        rdzv=_blank("rdzv", {"name": ""}, who),
    )


def _blank(
    kind: str, naming: Mapping[str, str], who: Process
) -> dict[str, Any]:
    return {
        "timestamp": 0,
        "time": "",
        "level": "info",
        "kind": kind,
        **naming,
        "message": "",
        "source": who.source,
        "hostname": who.hostname,
        "pid": who.pid,
        "seq": 0,
    }


def _with_place(
    blank: dict[str, Any],
    own: Mapping[str, Any],
    context: Mapping[str, Any],
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """
    Return a bare *blank* with its place in the job, and the rest of *context*.
    """
    environment = _last_blanks.who.job
    if not context and not environment:
        return {**blank, **own}, context
    line = blank.copy()
    job, bound = place(own, context, environment)
    line.update(job)
    return line, bound


def _source(source: object, odd: dict[str, Any]) -> EventSource:
    if isinstance(source, str):
        for known in EventSource:
            if source == known:
                return known
    odd["source"] = source
    return process.current().source


def _mapping(value: Any, odd: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, dict):
        return value if type(value) is dict else dict(dict.items(value))
    if isinstance(value, Mapping):
        return dict(value)
    if value is not None:
        odd["metadata"] = value
    return {}
