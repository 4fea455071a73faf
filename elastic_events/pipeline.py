"""
The order of the steps, once, for every door.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from .api import event_from_json
from .context import merged_context
from .drafts import can_draft, draft, draft_log
from .encoding import text_of
from .levels import level_name
from .messages import error_trace, filled_in
from .processors import (
    Guarded,
    add_process,
    add_time,
    render_line,
    sequence_adder,
)


Chain: TypeAlias = "tuple[Processor, ...]"

_STANDARD_LEVELS: Final = frozenset((10, 20, 30, 40, 50))
_RECORD_ATTRIBUTES: Final = frozenset(
    (*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName")
)
_TORCH_STYLE_LOGGERS: Final = ("torchelastic-events-", "elastic_events.")


def build_chain(
    next_number: Callable[[], int],
    processors: Sequence[Processor] = (),
    complain: Callable[[str], None] = lambda _: None,
) -> Chain:
    """
    Return the steps from a draft to the bytes of a line.

    Args:
        next_number: Returns the next ``seq``.

        processors: The user's own, run on the line before it is numbered.

        complain: Told when one of them raises.
    """
    guarded = (Guarded(processors, complain),) if processors else ()
    return (
        add_time,
        add_process,
        *guarded,
        # After what may drop the event: a gap in the numbers proves a loss.
        sequence_adder(next_number),
        render_line,
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

        chain:
            The steps of a destination, so that several doors number their
            lines together. (default: steps of its own)
    """

    def __init__(
        self,
        processors: Sequence[Processor] = (),
        *,
        chain: Chain | None = None,
    ) -> None:
        if chain is None:
            numbers = itertools.count()
            chain = build_chain(numbers.__next__, processors)
        super().__init__(processors=chain)

    def format(self, record: logging.LogRecord) -> str:
        """
        Return the line of *record*, without the line feed at its end.
        """
        return self.format_line(record)[:-1].decode()

    def format_line(self, record: logging.LogRecord) -> bytes:
        """
        Return the line of *record*, as the bytes that a sink takes.
        """
        # One that was made by hand may lack the level.
        level = level_name(record.levelno or logging.INFO)
        line: Any = self._draft(record, level)
        for processor in self.processors:
            line = processor(self.logger, level, line)
        return line  # type: ignore[no-any-return]

    def _draft(self, record: logging.LogRecord, level: str) -> dict[str, Any]:
        # In whole microseconds first: a float's third decimal may be short.
        created = round(record.created * 1_000_000) // 1000
        fields = {
            key: value
            for key, value in record.__dict__.items()
            if key not in _RECORD_ATTRIBUTES
        }
        if isinstance(record.msg, Mapping) and "_logger" in fields:
            return _draft_structlog(record, level, created)
        event = _event_in(record)
        if event is not None:
            return draft(event, merged_context(fields), created)
        if record.levelno not in _STANDARD_LEVELS:
            fields["level_name"] = record.levelname
        if record.stack_info:
            fields["stack_info"] = record.stack_info
        return draft_log(
            filled_in(record.msg, record.args, fields),
            level=level,
            logger=record.name or "root",
            metadata=fields,
            error_trace=error_trace(record.exc_info),
            context=merged_context({}),
            created=created,
        )


def _event_in(record: logging.LogRecord) -> Any:
    """
    Return the event that *record* hands over, `None` if it is a message.
    """
    message = record.msg
    if not isinstance(message, str):
        return message if can_draft(message) else None
    if message.startswith("{") and record.name.startswith(
        _TORCH_STYLE_LOGGERS
    ):
        with contextlib.suppress(ValueError):
            return event_from_json(message)
    return None


def _draft_structlog(
    record: logging.LogRecord, level: str, created: int
) -> dict[str, Any]:
    """
    Return the draft of what `ProcessorFormatter.wrap_for_formatter` wrapped.
    """
    bound: dict[str, Any] = dict(record.msg)  # type: ignore[arg-type]
    message = bound.pop("event", "")
    trace = error_trace(bound.pop("exc_info", None))
    # What structlog's own processors add, and the line says anyway.
    for key, said in ("level", level), ("logger", record.name):
        if bound.get(key) == said:
            del bound[key]
    if can_draft(message):
        return draft(message, bound, created)
    return draft_log(
        text_of(message),
        level=level,
        logger=record.name,
        error_trace=trace,
        context=bound,
        created=created,
    )
