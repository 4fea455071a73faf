"""
The order of the steps, once, for every door.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from .api import event_from_json
from .context import merged_context
from .counting import Count, Given
from .drafts import can_draft, draft, draft_log
from .encoding import line_renderer
from .guarding import Guarded, callables
from .levels import LEVELS, level_name
from .messages import add_field, error_trace, filled_in
from .processors import add_time, draft_event_dict, sequence_adder
from .schema import EARLIEST, LATEST, SHORTEST_HEAD
from .values import text_of


Chain: TypeAlias = "tuple[Processor, ...]"

DEFAULT_MAX_LINE: Final = 1 << 20
"""The most bytes of a line, unless its destination says otherwise."""

_STANDARD_NAMES: Final = {number: name for name, number in LEVELS.items()}
_NOTHING: Final[Mapping[str, Any]] = {}
_RECORD_ATTRIBUTES: Final = frozenset(
    (*logging.makeLogRecord({}).__dict__, "message", "asctime")
)
_PLACEHOLDERS: Final = frozenset("%{$")
_WRAPPED: Final = frozenset(("_logger", "_name"))
_TORCH_STYLE_LOGGERS: Final = ("torchelastic-events-", "elastic_events.")


def build_chain(
    numbers: Count,
    processors: Sequence[Processor] = (),
    complain: Callable[[str], None] = lambda _: None,
    render: Processor | None = None,
    admit: Processor | None = None,
) -> Chain:
    """
    Return the steps from a draft to the bytes of a line.

    Args:
        numbers: What counts the lines: the next ``seq`` is taken from it.

        processors: The user's own, run on the line before it is numbered.

        complain: Told when one of them raises.

        render:
            The last step, a `line_renderer`. (default: one for lines of
            `DEFAULT_MAX_LINE`)

        admit: Raises `DropEvent` for lines that are not to be numbered.
    """
    guarded = (Guarded(processors, complain),) if processors else ()
    return (
        add_time,
        *guarded,
        *((admit,) if admit else ()),
        # After what may drop the event: a gap in the numbers proves a loss.
        sequence_adder(numbers),
        render or line_renderer(DEFAULT_MAX_LINE, head=SHORTEST_HEAD),
    )


class EventFormatter(ProcessorFormatter):
    """
    Format a `logging.LogRecord` as a line of the package.

    A message that is an event gives the line that `record` gives. The JSON of
    an event is unpacked on the loggers by which torch, and code written for
    it, hand events over. Any other message gives a line of kind ``log``, its
    ``extra=`` in ``metadata``. The record is left as it was found.

    Args:
        processors:
            Further structlog processors. They are given the line and may
            raise `structlog.DropEvent`, which only `EventHandler` catches.

        datefmt, style, validate, defaults, fmt, format:
            What `logging.config` gives to each formatter, the format itself
            as the first argument. They have no effect: the keys of a line
            are fixed.

        chain:
            The steps of a destination, so that several doors number their
            lines together. (default: steps of its own)

    Raises:
        TypeError: If *processors* is no list of callables.

        ValueError: If the format is the name of one of our `formats`.
    """

    def __init__(
        self,
        processors: Sequence[Processor] | str | None = (),
        datefmt: str | None = None,  # noqa: ARG002
        style: str = "%",  # noqa: ARG002
        validate: bool = True,  # noqa: ARG002
        *,
        defaults: Mapping[str, Any] | None = None,  # noqa: ARG002
        fmt: str | None = None,
        format: str | None = None,
        chain: Chain | None = None,
    ) -> None:
        """
        See the class.
        """
        for given in (processors, fmt, format):
            if isinstance(given, str):
                _refuse_format(given)
        if processors is None or isinstance(processors, str):
            # By position it is the format.
            processors = ()
        self.further_processors = callables(processors)
        self._given = None
        if chain is None:
            count = Count()
            self._given = Given(count)
            chain = build_chain(count, self.further_processors)
        super().__init__(processors=chain)

    def __reduce__(self) -> tuple[Any, ...]:
        # A spawned process numbers its own lines.
        return type(self), (self.further_processors,)

    def format(self, record: logging.LogRecord) -> str:
        """
        Return the line of *record*, without the line feed at its end.

        The same record, formatted again, has the same number: a
        ``RotatingFileHandler`` formats each one twice.
        """
        given = self._given
        if given is None:
            return self.format_line(record)[:-1].decode()
        steps = self.processors
        number = given.to(record)
        if number is not None:
            steps = build_chain(Count(number), self.further_processors)
        level_number = _level_of(record)
        level = level_name(level_number)
        line: Any = self._draft(record, level_number, level)
        *first, render = steps
        for step in first:
            line = step(self.logger, level, line)
        if number is None:
            given.note(record, line["seq"])
        line = render(self.logger, level, line)
        return bytes(line[:-1]).decode()

    def format_line(self, record: logging.LogRecord) -> bytes:
        """
        Return the line of *record*, as the bytes that a sink takes.
        """
        number = _level_of(record)
        level = _STANDARD_NAMES.get(number) or level_name(number)
        line: Any = self._draft(record, number, level)
        for processor in self.processors:
            line = processor(self.logger, level, line)
        return line  # type: ignore[no-any-return]

    def _draft(
        self, record: logging.LogRecord, number: int, level: str
    ) -> dict[str, Any]:
        message = record.msg
        created = _milliseconds(record.created)
        fields: dict[str, Any] = {}
        if not _RECORD_ATTRIBUTES.issuperset(record.__dict__):
            fields = _extra_of(record)
        # What begins otherwise is neither an event nor the JSON of one.
        if type(message) is not str or message[:1] == "{":
            if isinstance(message, Mapping) and fields.keys() >= _WRAPPED:
                return _draft_wrapped(record, level, fields, created)
            event = _event_in(record)
            if event is not None:
                return draft(event, merged_context(fields), created)
        if number not in _STANDARD_NAMES:
            add_field(fields, "level_name", record.levelname)
        if record.stack_info:
            add_field(fields, "stack_info", record.stack_info)
        return draft_log(
            filled_in(message, record.args, fields),
            level=level,
            logger=_name_of(record),
            metadata=fields,
            error_trace=_trace_of(record),
            context=merged_context(_NOTHING),
            created=created,
        )


def _refuse_format(given: str) -> None:
    """
    Raise `ValueError` if *given* names a format of lines: it has no effect.
    """
    if not given or not _PLACEHOLDERS.isdisjoint(given):
        return
    from .formats import known  # noqa: PLC0415

    if given in known():
        raise ValueError(
            f"an EventFormatter writes our own lines, and takes no format"
            f" {given!r}: name it in the destination of a handler, such as"
            f" EventHandler('file:log.jsonl?format={given}')"
        )


def _extra_of(record: logging.LogRecord) -> dict[str, Any]:
    return {
        key: value
        for key, value in record.__dict__.items()
        if key not in _RECORD_ATTRIBUTES
    }


# A record that was made by hand, or came from another process, may hold
# anything.


def _level_of(record: logging.LogRecord) -> int:
    level = record.levelno
    return level if isinstance(level, int) else logging.INFO


def _name_of(record: logging.LogRecord) -> str:
    name = record.name
    return name if type(name) is str and name else text_of(name or "root")


def _milliseconds(created: object) -> int:
    """
    Return the time of a record in ms, zero if it has none that is possible.
    """
    if type(created) is not float and not isinstance(created, (int, float)):
        return 0
    try:
        # In whole microseconds first: a float's third decimal may be short.
        milliseconds = round(created * 1_000_000) // 1000
    except (ValueError, OverflowError):
        return 0
    return milliseconds if EARLIEST <= milliseconds <= LATEST else 0


def _trace_of(record: logging.LogRecord) -> str:
    if not record.exc_info and not record.exc_text:
        return ""
    # What was sent over a socket has the text only.
    return error_trace(record.exc_info) or text_of(record.exc_text or "")


def _event_in(record: logging.LogRecord) -> Any:
    """
    Return the event that *record* hands over, `None` if it is a message.
    """
    message = record.msg
    if not isinstance(message, str):
        return message if can_draft(message) else None
    if message.startswith("{") and _name_of(record).startswith(
        _TORCH_STYLE_LOGGERS
    ):
        with contextlib.suppress(ValueError):
            return event_from_json(message)
    return None


def _draft_wrapped(
    record: logging.LogRecord,
    level: str,
    fields: dict[str, Any],
    created: int,
) -> dict[str, Any]:
    """
    Return the draft of what `ProcessorFormatter.wrap_for_formatter` wrapped.
    """
    metadata = {
        key: value for key, value in fields.items() if key not in _WRAPPED
    }
    if record.stack_info:
        add_field(metadata, "stack_info", record.stack_info)
    return draft_event_dict(
        record.msg,  # type: ignore[arg-type]
        level=level,
        logger=_name_of(record),
        metadata=metadata,
        trace=_trace_of(record),
        created=created,
    )
