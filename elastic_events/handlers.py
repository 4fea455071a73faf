"""
The door for plain `logging`: a handler that writes the package's lines.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from structlog.exceptions import DropEvent
from structlog.typing import Processor

from .complaints import complain
from .destinations import ByName, nowhere, resolve
from .drafts import can_draft
from .entrances import Destination
from .guarding import callables
from .levels import LevelMethods, level_number
from .logger import Request, make_logger
from .pipeline import EventFormatter
from .values import error_text


class EventHandler(LevelMethods, logging.Handler):
    """
    Write each `logging.LogRecord` as one line to a destination.

    It has the methods of a logger too, so that ``handler.info(event)``
    records an event. It takes no lock and never raises from a record.

    Args:
        destination: The name or URI of a destination.

        level:
            What is logged below it is not written, as with any handler. The
            handler's own methods record events at any level; they do not
            pass its filters.

        processors:
            structlog processors that are run on each line before it is
            encoded. They may raise `structlog.DropEvent`.

    Raises:
        UnknownDestination: If there is no such destination.

        ValueError: If there is no such level.

        TypeError: If *processors* is no list of callables.
    """

    formatter: EventFormatter

    def __init__(
        self,
        destination: str = "null",
        level: int | str = logging.NOTSET,
        processors: Sequence[Processor] = (),
    ) -> None:
        super().__init__(level_number(level))
        self.destination = destination
        self._processors = callables(processors)
        self._write_to(resolve(destination), self._processors)

    def _write_to(
        self, found: Destination | None, processors: Sequence[Processor]
    ) -> None:
        if found is not None:
            found = found.with_processors(processors)
        self._found = found
        request = Request(self.destination, logging.NOTSET, self._processors)
        self._logger = make_logger(found, "elastic_events", request)
        self.formatter = EventFormatter(chain=found.chain if found else None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.destination!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Nothing that is open goes to another process.
        return _make_anew, (
            type(self),
            (self.destination, self.level, self._processors),
            {"name": self.name, "filters": self.filters},
        )

    def setFormatter(  # noqa: N802
        self, fmt: logging.Formatter | None
    ) -> None:
        """
        Refuse any formatter but an `EventFormatter`; `None` changes nothing.

        The formatter's processors join those that the handler has. The
        handler goes on numbering its lines with its destination.

        Raises:
            TypeError: If *fmt* would write something else than lines.
        """
        if isinstance(fmt, EventFormatter):
            self._processors += fmt.further_processors
            self._write_to(self._found, fmt.further_processors)
        elif fmt is not None:
            raise TypeError(
                f"{self!r} writes lines of JSON and takes no"
                f" {type(fmt).__name__}: give it an EventFormatter, or give"
                " yours to another handler"
            )

    def handle(self, record: logging.LogRecord) -> bool:
        """
        Write *record* if the filters let it pass, without taking a lock.
        """
        passed: Any = record
        if self.filters:
            try:
                passed = self.filter(record)
            except Exception as error:
                complain(f"{self!r}: a filter raised {error_text(error)}")
        # Since Python 3.12 a filter may give another record.
        if passed:
            is_record = isinstance(passed, logging.LogRecord)
            self.emit(passed if is_record else record)
        return bool(passed)

    def emit(self, record: logging.LogRecord) -> None:
        """
        Write *record*. What fails is counted, see `health`.
        """
        if self._found is None:
            if nowhere:
                self._diverted().emit(record)
            return
        try:
            line = self.formatter.format_line(record)
        except DropEvent:
            return
        except BaseException as error:
            self._found.write_unreadable(getattr(record, "msg", None), error)
            return
        self._found.outlet.write(line)

    def _diverted(self) -> EventHandler:
        return EventHandler(self.destination, processors=self._processors)

    def _log(
        self,
        level: int,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> None:
        if level >= self.level or can_draft(message):
            self._logger.log(level, message, *args, **fields)


class NullEventHandler(EventHandler, logging.NullHandler):
    """
    An `EventHandler` to nowhere.

    It is a `logging.NullHandler` because that is how torch knows that
    rendezvous events are not wanted.
    """

    def handle(self, record: logging.LogRecord) -> bool:
        """
        Do nothing, unless what goes nowhere is diverted.
        """
        return bool(nowhere) and super().handle(record)


def get_logging_handler(destination: str = "null") -> EventHandler:
    """
    Return the handler that writes to *destination*, the same one each time.

    Unlike torch's it has the methods of a logger, so that
    ``get_logging_handler("console").info(event)`` works.

    Args:
        destination: The name or URI of a destination.

    Raises:
        UnknownDestination: If there is none; a `KeyError`, as in torch.
    """
    return _handlers[destination]


def _make_anew(
    kind: type[EventHandler], arguments: tuple[Any, ...], more: dict[str, Any]
) -> EventHandler:
    handler = kind(*arguments)
    handler.name = more["name"]
    handler.filters = more["filters"]
    return handler


def _make_handler(destination: str) -> EventHandler:
    if resolve(destination) is None:
        return NullEventHandler(destination)
    return EventHandler(destination)


_handlers: ByName[EventHandler] = ByName(_make_handler)
