"""
The steps from a draft to a line, as structlog processors.

Each is called with ``(logger, method_name, event_dict)`` and returns the
event dict, the last one the line. None of them writes.

Loggers, handlers and formatters of the package run them by themselves. Who
keeps a structlog chain of their own puts them at its end, in this order:
`draft_line`, `redact`, `add_time`, `sequence_adder`, `line_renderer`, and
`as_bytes`, `as_text` or `as_logging_call`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from time import time_ns
from typing import Any, Final

from structlog.typing import EventDict, Processor, WrappedLogger

from .context import merged_context
from .counting import Count
from .drafts import can_draft, draft, draft_log, draft_unreadable
from .encoding import line_renderer as renderer_within
from .guarding import Guarded
from .levels import LEVELS
from .messages import add_field, error_trace
from .redaction import redact
from .schema import LATEST
from .values import text_of


__all__ = [
    "Guarded",
    "add_time",
    "as_bytes",
    "as_logging_call",
    "as_text",
    "draft_line",
    "line_renderer",
    "redact",
    "sequence_adder",
]

_LEAST_MAX_LINE: Final = 4096
_NOTHING: Final[Mapping[str, Any]] = {}
_LEVEL_OF_METHOD: Final = {
    **{name: name for name in LEVELS},
    "warn": "warning",
    "exception": "error",
    "fatal": "critical",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ENDINGS: Final = tuple(f".{ms:03}Z" for ms in range(1000))
# When it began, in milliseconds, and how it is written.
_last_second: tuple[int, str] = (LATEST + 1, "")


def draft_line(
    logger: WrappedLogger, method_name: str, event_dict: EventDict
) -> EventDict:
    """
    Make structlog's event dict a line, its time and number still blank.

    It is for structlog chains of one's own, as the first of our steps. It
    finds in the event dict:

    - ``event``: the message, or an `Event` or `RdzvEvent`, which gives the
      line that `record` gives;
    - ``exc_info``, or ``exception`` as text: the traceback;
    - ``logger``: the logger's name. (default: the *name* of the logger that
      structlog wraps, else ``root``)

    All else goes to the end of the line as what was bound does: of a key that
    the package owns, under another name. It never raises an `Exception`.
    """
    name = event_dict.get("logger") or getattr(logger, "name", None)
    try:
        return draft_event_dict(
            event_dict,
            level=_LEVEL_OF_METHOD.get(method_name, "info"),
            logger=name if type(name) is str else "root",
        )
    except BaseException as error:
        return draft_unreadable(event_dict.get("event"), error)


def draft_event_dict(
    event_dict: Mapping[str, Any],
    *,
    level: str,
    logger: str,
    metadata: Mapping[str, Any] = _NOTHING,
    trace: str = "",
    created: int = 0,
) -> dict[str, Any]:
    """
    Return what the *event_dict* of another structlog chain says.

    Args:
        event_dict: As `draft_line` finds it.

        level: One of the five standard names.

        logger: The logger's name.

        metadata: Fields that are known to be a call's own.

        trace: The traceback, unless the event dict has one.

        created:
            The moment of the call in milliseconds since the epoch, zero for
            now.
    """
    bound: dict[str, Any] = dict(event_dict)
    message = bound.pop("event", "")
    said_trace = error_trace(bound.pop("exc_info", None))
    if type(bound.get("exception")) is str:
        said_trace = said_trace or bound["exception"]
        del bound["exception"]
    # What structlog's own processors add, and the line says anyway.
    for key, said in ("level", level), ("logger", logger):
        if type(bound.get(key)) is str and bound[key] == said:
            del bound[key]
    trace = said_trace or trace
    if can_draft(message):
        if trace:
            # An event has a traceback of its own.
            add_field(bound, "exception", trace)
        context = merged_context({**metadata, **bound})
        return draft(message, context, created)
    return draft_log(
        text_of(message),
        level=level,
        logger=logger,
        metadata=metadata,
        error_trace=trace,
        context=merged_context(bound),
        created=created,
    )


def add_time(_: WrappedLogger, __: str, event_dict: EventDict) -> EventDict:
    """
    Fill in ``timestamp`` and ``time``.

    It needs a ``timestamp``, in milliseconds since the epoch; one that is zero
    becomes the current time. ``time`` is the same instant as RFC 3339 text in
    UTC.
    """
    global _last_second  # noqa: PLW0603
    milliseconds = event_dict["timestamp"]
    if not milliseconds:
        event_dict["timestamp"] = milliseconds = time_ns() // 1_000_000
    # Read once: another thread may replace it in between.
    second, text = _last_second
    rest = milliseconds - second
    if not 0 <= rest < 1000:
        rest = milliseconds % 1000
        second = milliseconds - rest
        moment = _EPOCH + timedelta(milliseconds=second)
        text = moment.replace(tzinfo=None).isoformat()
        _last_second = (second, text)
    event_dict["time"] = text + _ENDINGS[rest]
    return event_dict


def sequence_adder(count: Count | None = None) -> Processor:
    """
    Return the step that fills in ``seq``, in the order of the calls.

    It needs nothing. It stands after what may drop a line: a gap in the
    numbers proves a loss. In a forked process they begin anew.

    Args:
        count: What counts the lines. (default: a count of its own)
    """
    count = Count() if count is None else count

    def add_sequence(
        _: WrappedLogger, __: str, event_dict: EventDict
    ) -> EventDict:
        event_dict["seq"] = next(count.numbers)
        return event_dict

    return add_sequence


def line_renderer(max_line: int = sys.maxsize) -> Processor:
    r"""
    Return the step that makes the line: one JSON object in UTF-8 and a ``\n``.

    It needs a line with its time and number. It never raises an `Exception`,
    whatever the values: what JSON lacks is written in a documented form or as
    text, what cannot be read is marked.

    Args:
        max_line:
            The most bytes of a line, 4096 or more. One that would be longer
            is cut, and has the key ``truncated``. (default: no limit)

    Raises:
        TypeError: If *max_line* is not an int.

        ValueError: If a line may have no room for what each line says.
    """
    wanted = f"max_line must be an int, {_LEAST_MAX_LINE} or more, not"
    if not isinstance(max_line, int):
        raise TypeError(f"{wanted} {max_line!r}")
    if max_line < _LEAST_MAX_LINE:
        raise ValueError(f"{wanted} {max_line!r}")
    return renderer_within(max_line)


def as_bytes(_: WrappedLogger, __: str, line: Any) -> bytes:
    """
    Return the *line* without its line feed, for loggers that add one.

    It needs what `line_renderer` returns, and is for structlog's
    ``BytesLogger``.
    """
    return bytes(line[:-1])


def as_text(_: WrappedLogger, __: str, line: Any) -> str:
    """
    Return the *line* as text without its line feed.

    It needs what `line_renderer` returns, and is for structlog's
    ``PrintLogger``, ``WriteLogger`` and ``ProcessorFormatter``.
    """
    return bytes(line[:-1]).decode()


def as_logging_call(
    _: WrappedLogger, __: str, line: Any
) -> tuple[tuple[str], dict[str, None]]:
    """
    Return the arguments with which a logger of `logging` writes the *line*.

    It needs what `line_renderer` returns, and is for structlog's
    ``LoggerFactory``. ``Logger.exception`` adds no traceback below the line,
    which has it already.
    """
    return (bytes(line[:-1]).decode(),), {"exc_info": None}
