"""
The bound logger: structlog's interface, and `record` for events.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from structlog.exceptions import DropEvent
from structlog.typing import Processor

from .callers import calling_module, stack_text
from .context import VARIABLES, merged_context
from .destinations import nowhere, resolve
from .drafts import can_draft, draft, draft_log
from .entrances import Destination
from .guarding import callables
from .levels import LEVELS, LevelMethods, level_name, level_number
from .messages import add_field, error_trace, filled_in
from .values import text_of


if TYPE_CHECKING:
    from typing_extensions import Self

    from .api import Event, RdzvEvent


_ALIASES: Final = {
    "warn": "warning",
    "exception": "error",
    "fatal": "critical",
}


class Request(NamedTuple):
    """
    What a logger was asked for, to ask again in a spawned process.
    """

    destination: str
    level: int | str
    processors: Sequence[Processor]


class Writer:
    """
    What the bound loggers wrap: an outlet, and the name of the logger.
    """

    __slots__ = ("name", "request", "write", "write_unreadable")

    def __init__(
        self, found: Destination | None, name: object, request: Request
    ) -> None:
        self.name = text_of(name)
        self.request = request
        if found is not None:
            self.write = found.outlet.write
            self.write_unreadable = found.write_unreadable


class EventLogger(LevelMethods, structlog.BoundLoggerBase):
    """
    A structlog bound logger that records events too.

    What is bound goes to the root of the line, the fields of a call to its
    ``metadata``. Get one with `get_logger`, or from `structlog.get_logger`
    after `configure`.
    """

    _logger: Writer
    _processors: Sequence[Processor]
    _level = logging.NOTSET

    def record(self, event: Event | RdzvEvent, /) -> None:
        """
        Record *event*, with what was bound. Never raises an `Exception`.

        Args:
            event:
                An `Event` or `RdzvEvent`, ours or torch's. Anything else is
                recorded as a warning that holds it.
        """
        writer = self._logger
        try:
            context: Mapping[str, Any] = self._context
            if VARIABLES:
                context = merged_context(context)
            line: Any = draft(event, context)
            for processor in self._processors:
                line = processor(writer, "info", line)
        except DropEvent:
            return
        except BaseException as error:
            writer.write_unreadable(event, error)
            return
        writer.write(line)

    def bind(self, /, **new_values: Any) -> Self:
        """
        Return a logger with *new_values* bound beside what is bound already.
        """
        return self.__class__(
            self._logger, self._processors, {**self._context, **new_values}
        )

    def new(self, /, **new_values: Any) -> Self:
        """
        Return a logger with *new_values* bound and nothing else.
        """
        return self.__class__(self._logger, self._processors, new_values)

    def is_enabled_for(self, level: int) -> bool:
        """
        Tell whether a log at *level* is written.
        """
        return level >= self._level

    def get_effective_level(self) -> int:
        """
        Return the level below which logs are not written.
        """
        return self._level

    def __reduce__(self) -> tuple[Any, ...]:
        # Nothing that is open goes to another process.
        writer = self._logger
        return _ask_again, (writer.request, writer.name, self._context)

    def __deepcopy__(self, _: Any) -> Self:
        # Nothing of it is ever changed, and its outlet is shared.
        return self

    def _log(
        self,
        level: int,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> None:
        writer = self._logger
        try:
            if type(message) is not str and can_draft(message):
                log = self.bind(**_bindable(fields))
                log.record(message)  # type: ignore[arg-type]
                return
            if level < self._level:
                return
            method_name = level_name(level)
            line = self._draft_log(level, method_name, message, args, fields)
            for processor in self._processors:
                line = processor(writer, method_name, line)
        except DropEvent:
            return
        except BaseException as error:
            writer.write_unreadable(message, error)
            return
        writer.write(line)

    def _draft_log(
        self,
        level: int,
        method_name: str,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> Any:
        if len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
            # As in logging: "%(key)s" takes its value from one mapping.
            args = args[0]  # type: ignore[assignment]
        trace = error_trace(fields.pop("exc_info", None))
        if fields.pop("stack_info", None):
            add_field(fields, "stack_info", stack_text())
        if level != LEVELS[method_name]:
            add_field(fields, "level_name", logging.getLevelName(level))
        return draft_log(
            filled_in(message, args, fields),
            level=method_name,
            logger=self._logger.name,
            metadata=fields,
            error_trace=trace,
            context=merged_context(self._context),
        )


def get_logger(
    destination: str = "null",
    *,
    level: int | str = logging.NOTSET,
    processors: Sequence[Processor] = (),
    name: str | None = None,
) -> EventLogger:
    """
    Return a bound logger that writes to *destination*.

    Args:
        destination: The name or URI of a destination.

        level:
            Logs below it cost next to nothing. Events are always recorded.

        processors:
            structlog processors that are run on each line before it is
            encoded. They may raise `structlog.DropEvent`.

        name: The ``logger`` of its logs. (default: the caller's module)

    Raises:
        UnknownDestination: If there is no such destination.

        ValueError: If there is no such level.

        TypeError: If *processors* is no list of callables.
    """
    own = callables(processors)
    found = resolve(destination)
    if found is not None:
        found = found.with_processors(own)
    request = Request(destination, level, own)
    return make_logger(found, name or calling_module(), request)


def make_logger(
    found: Destination | None, name: str, request: Request
) -> EventLogger:
    """
    Return a bound logger to a destination that was *found*.

    Raises:
        ValueError: If there is no such level.
    """
    kind = _logger_class(level_number(request.level))
    if found is None:
        return _NullLogger(Writer(None, name, request), (), {})
    return kind(Writer(found, name, request), found.chain, {})


def _ask_again(
    request: Request, name: str, context: dict[str, Any]
) -> EventLogger:
    destination, level, processors = request
    logger = get_logger(
        destination, level=level, processors=processors, name=name
    )
    return logger.bind(**context)


def configure(
    destination: str = "null",
    *,
    level: int | str = logging.NOTSET,
    processors: Sequence[Processor] = (),
) -> None:
    """
    Make `structlog.get_logger` give bound loggers that write to *destination*.

    This replaces structlog's configuration, for the whole program.

    Args:
        destination: The name or URI of a destination.

        level:
            Logs below it cost next to nothing. Events are always recorded.

        processors:
            structlog processors that are run on each line before it is
            encoded. They may raise `structlog.DropEvent`.

    Raises:
        UnknownDestination: If there is no such destination.

        ValueError: If there is no such level.

        TypeError: If *processors* is no list of callables.
    """
    kind = _logger_class(level_number(level))
    own = callables(processors)
    found = resolve(destination)
    request = Request(destination, level, own)
    if found is None:
        structlog.configure(
            processors=[],
            wrapper_class=_NullLogger,
            context_class=dict,
            logger_factory=functools.partial(_make_writer, None, request),
        )
        return
    found = found.with_processors(own)
    structlog.configure(
        # A list, for structlog.testing.capture_logs exchanges its items.
        processors=list(found.chain),
        wrapper_class=kind,
        context_class=dict,
        logger_factory=functools.partial(_make_writer, found, request),
    )


class _NullLogger(EventLogger):
    """
    An `EventLogger` that does nothing, at once.
    """

    _level = sys.maxsize

    def record(self, event: Event | RdzvEvent, /) -> None:
        """
        Do nothing, unless what goes nowhere is diverted.
        """
        if nowhere:
            self._diverted().record(event)

    def _log(
        self,
        level: int,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> None:
        """
        Do nothing, unless what goes nowhere is diverted.
        """
        if nowhere:
            self._diverted().log(level, message, *args, **fields)

    def _diverted(self) -> EventLogger:
        writer = self._logger
        return _ask_again(writer.request, writer.name, self._context)


def _make_writer(
    found: Destination | None, request: Request, *names: object
) -> Writer:
    return Writer(found, (names and names[0]) or calling_module(), request)


def _bindable(fields: dict[str, Any]) -> dict[str, Any]:
    """
    Return the *fields* of a call with an event, the traceback made text.
    """
    trace = error_trace(fields.pop("exc_info", None))
    if fields.pop("stack_info", None):
        add_field(fields, "stack_info", stack_text())
    if trace:
        add_field(fields, "exception", trace)
    return fields


def _only_events(
    self: EventLogger, message: object, /, *_: Any, **fields: Any
) -> None:
    """
    Record *message* if it is an event: logs are below the logger's level.
    """
    if type(message) is not str:
        self._log(logging.NOTSET, message, (), fields)


@functools.cache
def _logger_class(level: int) -> type[EventLogger]:
    """
    Return the bound logger whose methods below *level* do nothing.
    """
    if level <= logging.NOTSET:
        return EventLogger
    methods: dict[str, Any] = {"_level": level}
    for name, number in LEVELS.items():
        if number < level:
            methods[name] = _only_events
    for alias, name in _ALIASES.items():
        if name in methods:
            methods[alias] = _only_events
    return type("EventLogger", (EventLogger,), methods)
