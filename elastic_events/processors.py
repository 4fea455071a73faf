"""
The steps from a draft to a line, as structlog processors.

Each is called with ``(logger, method_name, event_dict)`` and returns the
event dict, the last one the line. None of them writes.

Loggers, handlers and formatters of the package run them by themselves. Who
keeps a structlog chain of their own puts them at its end, in this order:
`draft_line`, `redact`, `add_time`, `sequence_adder`, `line_renderer`, and
`as_bytes` or `as_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from time import time_ns
from typing import Any, Final

from structlog.exceptions import DropEvent
from structlog.typing import EventDict, Processor, WrappedLogger

from .complaints import complain as complain_to_people
from .context import merged_context, with_context
from .counting import Count
from .drafts import can_draft, draft, draft_log, draft_unreadable
from .encoding import line_renderer
from .levels import LEVELS
from .messages import add_field, error_trace
from .redaction import redact
from .schema import JOB_KEYS, KEYS, LATEST, is_right
from .values import error_text, reraise_interrupt, text_of


__all__ = [
    "Guarded",
    "add_time",
    "as_bytes",
    "as_text",
    "draft_line",
    "line_renderer",
    "redact",
    "sequence_adder",
]

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
    ``PrintLogger`` and ``WriteLogger``, and for the loggers of `logging`.
    """
    return bytes(line[:-1]).decode()


def callables(processors: Sequence[Any]) -> tuple[Processor, ...]:
    """
    Return the *processors*, also those that a logging configuration names.

    Raises:
        TypeError: If one of them cannot be called.
    """
    if isinstance(processors, (str, bytes)) or callable(processors):
        raise TypeError(
            f"processors must be a list, not {processors!r}: give it"
            f" [{processors!r}]"
        )
    # Whatever the list is, one by one: dictConfig's gives what a text such as
    # "ext://package.name" stands for only when it is asked for an item.
    if isinstance(processors, list):
        processors = [processors[at] for at in range(len(processors))]
    return tuple(map(_callable, processors))


def _callable(processor: Any) -> Processor:
    if isinstance(processor, Mapping) and "()" in processor:
        configurator = getattr(processor, "configurator", None)
        if configurator is not None:
            processor = configurator.configure_custom(processor)
    if not callable(processor):
        raise TypeError(
            f"a processor must be callable, not {processor!r}: in a logging"
            " configuration write 'ext://package.name', or {'()':"
            " 'package.maker'} with the maker's arguments"
        )
    return processor  # type: ignore[no-any-return]


class Guarded:
    """
    Run the user's *processors* so that they can neither lose nor forge.

    It needs a line, as `draft_line` gives it.

    A processor may change values, add keys, remove optional ones, and raise
    `DropEvent`. If it raises anything else, *complain* is told, and the line
    is written without it; or, if its attribute ``fails_closed`` is true,
    without all that it may have been to take away.

    When, from whom and of what kind a line is stays; what else its kind must
    have is written empty if it was taken away. A value that a key cannot have,
    and a key that is not the processor's to add, is written under another
    name, as bound ones are.

    Args:
        processors: The user's processors.

        complain:
            Takes one line of text for people. (default: standard error, once
            a minute at most)
    """

    def __init__(
        self,
        processors: Sequence[Processor],
        complain: Callable[[str], None] = complain_to_people,
    ) -> None:
        self._processors = tuple(processors)
        self._complain = complain

    def __call__(
        self, logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> EventDict:
        """
        Run the processors and restore what they must not change.
        """
        # The values are the caller's: what a processor changes is a copy.
        line = _copied(event_dict, {})
        for processor in self._processors:
            try:
                copy = _copied(line, {})
                changed: Any = processor(logger, method_name, copy)
                line = dict(changed)
            except DropEvent:
                raise
            except BaseException as error:
                reraise_interrupt(error)
                culprit = text_of(processor)
                self._complain(f"{culprit} raised {error_text(error)}")
                if getattr(processor, "fails_closed", False):
                    line = {key: line[key] for key in line if key in _HARMLESS}
        try:
            return self._restored(event_dict, line)
        except Exception as error:
            # Nothing of what they may have meant to take away.
            self._complain(f"processors left what {error_text(error)}")
            return self._restored(event_dict, {})

    def _restored(self, before: EventDict, after: dict[str, Any]) -> EventDict:
        """
        Return the line *after* the processors, with the right keys in order.
        """
        kind = before["kind"]
        line: dict[str, Any] = {}
        for key in KEYS:
            if key not in before and key not in _ADDABLE:
                continue
            given = after.pop(key, None)
            value = _settled(key, given, before.get(key), kind)
            if value is not None:
                line[key] = value
            if given is not None and not _is_same(given, value):
                after[key] = given
        if line["level"] not in LEVELS:
            line["level"] = before["level"]
        return with_context(line, after)


_FIXED: Final = frozenset(
    ("timestamp", "time", "kind", "source", "seq", "worker")
)
_HARMLESS: Final = frozenset(KEYS) - {
    "message",
    "error_trace",
    "worker",
    "metadata",
}
_ADDABLE: Final = frozenset((*JOB_KEYS, "error_trace"))


def _settled(key: str, given: Any, before: Any, kind: str) -> Any:
    """
    Return what a line of *kind* says under *key*, `None` for nothing.

    Never what a processor took away: it may have been a secret.
    """
    wanted, required = KEYS[key]
    is_required = kind in required
    if key == "worker" and isinstance(given, dict):
        return _fitting(before or {}, given)
    if key in _FIXED:
        return before if is_required or given is not None else None
    if is_right(key, given, kind):
        return given
    return wanted() if is_required else None


def _fitting(
    before: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any] | None:
    """
    Return those values of *given* that are of the type that they had *before*.
    """
    fitting = {}
    for key, value in before.items():
        new = given.get(key)
        if isinstance(value, dict) and isinstance(new, dict):
            new = _fitting(value, new)
        if type(new) is type(value):
            fitting[key] = new
    return fitting or None


def _is_same(given: Any, value: Any) -> bool:
    # A class of its own may say anything when it is asked.
    return given is value or (type(given) in (str, dict) and given == value)


def _copied(value: Any, copies: dict[int, Any], depth: int = 0) -> Any:
    """
    Return a copy of the dicts and lists that *value* is made of.

    Args:
        value: Anything, and it may hold itself.

        copies: Of what was copied already, by identity.

        depth: How deep it stands in a line.
    """
    if not isinstance(value, (dict, list)) or depth > _DEEPEST_COPY:
        return value
    if id(value) in copies:
        return copies[id(value)]
    copy: Any
    # Taken all at once: another thread may be changing it.
    if isinstance(value, list):
        copies[id(value)] = copy = []
        for each in list.copy(value):
            copy.append(_copied(each, copies, depth + 1))
    else:
        copies[id(value)] = copy = {}
        for key, each in dict.copy(value).items():
            copy[key] = _copied(each, copies, depth + 1)
    return copy


_DEEPEST_COPY: Final = 100
