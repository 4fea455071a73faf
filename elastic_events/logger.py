"""
The bound logger: structlog's interface, and `record` for events.
"""

from __future__ import annotations

import functools
import logging
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import structlog
from structlog.exceptions import DropEvent
from structlog.typing import Processor

from .context import merged_context
from .destinations import resolve
from .drafts import can_draft, draft, draft_log
from .levels import LEVELS, LevelMethods, level_name, level_number
from .messages import error_trace, filled_in
from .outlets import Destination, Outlet


if TYPE_CHECKING:
    from typing_extensions import Self

    from .api import Event, RdzvEvent


_ALIASES: Final = {
    "warn": "warning",
    "exception": "error",
    "fatal": "critical",
}


class Writer:
    """
    What the bound loggers wrap: an outlet, and the name of the logger.
    """

    __slots__ = ("drop", "name", "write")

    def __init__(self, outlet: Outlet, name: str) -> None:
        self.name = name
        self.write = outlet.write
        self.drop = outlet.drop


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
        self._record(event, self._context)

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

    def _record(self, event: Any, context: Mapping[str, Any]) -> None:
        try:
            self._send("info", draft(event, merged_context(context)))
        except Exception as error:
            self._logger.drop(error)

    def _log(
        self,
        level: int,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> None:
        if not isinstance(message, str) and can_draft(message):
            self._record(message, {**self._context, **fields})
            return
        if level < self._level:
            return
        try:
            method_name = level_name(level)
            self._send(
                method_name,
                self._draft_log(level, method_name, message, args, fields),
            )
        except Exception as error:
            self._logger.drop(error)

    def _draft_log(
        self,
        level: int,
        method_name: str,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> dict[str, Any]:
        if len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
            # As in logging: "%(key)s" takes its value from one mapping.
            args = args[0]  # type: ignore[assignment]
        trace = error_trace(fields.pop("exc_info", None))
        if fields.pop("stack_info", None):
            fields["stack_info"] = _stack()
        if level != LEVELS[method_name]:
            fields["level_name"] = logging.getLevelName(level)
        return draft_log(
            filled_in(message, args, fields),
            level=method_name,
            logger=self._logger.name,
            metadata=fields,
            error_trace=trace,
            context=merged_context(self._context),
        )

    def _send(self, method_name: str, line: Any) -> None:
        writer = self._logger
        try:
            for processor in self._processors:
                line = processor(writer, method_name, line)
        except DropEvent:
            return
        writer.write(line)


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
    """
    kind = _logger_class(level_number(level))
    found = resolve(destination)
    if found is None:
        return _NullLogger(None, (), {})
    found = found.with_processors(processors)
    writer = Writer(found.outlet, name or _caller())
    return kind(writer, found.chain, {})


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
    """
    kind = _logger_class(level_number(level))
    found = resolve(destination)
    if found is None:
        structlog.configure(
            processors=[],
            wrapper_class=_NullLogger,
            context_class=dict,
            logger_factory=lambda *_: None,
        )
        return
    structlog.configure(
        processors=found.with_processors(processors).chain,
        wrapper_class=kind,
        context_class=dict,
        logger_factory=functools.partial(_make_writer, found),
    )


class _NullLogger(EventLogger):
    """
    An `EventLogger` that does nothing, at once.
    """

    _level = sys.maxsize

    def record(self, event: Event | RdzvEvent, /) -> None:
        """
        Do nothing.
        """

    def _log(self, *_: Any) -> None:
        """
        Do nothing.
        """


def _make_writer(destination: Destination, *names: str) -> Writer:
    return Writer(destination.outlet, names[0] if names else _caller())


def _only_events(
    self: EventLogger, message: object, /, *_: Any, **fields: Any
) -> None:
    """
    Record *message* if it is an event: logs are below the logger's level.
    """
    if not isinstance(message, str) and can_draft(message):
        self._record(message, {**self._context, **fields})


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


def _caller() -> str:
    """
    Return the module that asked for a logger, ours and structlog's apart.
    """
    frame = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in ("elastic_events", "structlog"):
            return module
        frame = frame.f_back  # type: ignore[assignment]
    return "elastic_events"


def _stack() -> str:
    """
    Return the stack of the call that is being logged.
    """
    frame = sys._getframe(4)  # noqa: SLF001
    lines = traceback.format_stack(frame)
    return "Stack (most recent call last):\n" + "".join(lines).rstrip("\n")
