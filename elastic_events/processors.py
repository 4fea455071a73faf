"""
The steps from a draft to a line, as structlog processors.

Each is called with ``(logger, method_name, event_dict)`` and returns the
event dict, the last one the line. None of them writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from time import time_ns
from typing import Any, Final

from structlog.exceptions import DropEvent
from structlog.typing import EventDict, Processor, WrappedLogger

from . import process
from .encoding import encode
from .schema import OWNED_KEYS


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ENDINGS: Final = tuple(f".{ms:03}Z" for ms in range(1000))
_last_second: tuple[int, str] = (-1, "")


def add_time(_: WrappedLogger, __: str, event_dict: EventDict) -> EventDict:
    """
    Fill in ``timestamp`` and ``time``.

    A timestamp, in milliseconds since the epoch, that is missing or zero
    becomes the current time. The other is the same instant as RFC 3339 text
    in UTC.
    """
    global _last_second  # noqa: PLW0603
    milliseconds = event_dict.get("timestamp") or time_ns() // 1_000_000
    second, rest = divmod(milliseconds, 1000)
    # Read once: another thread may replace it in between.
    last_second = _last_second
    if last_second[0] != second:
        moment = _EPOCH + timedelta(seconds=second)
        text = moment.replace(tzinfo=None).isoformat()
        _last_second = last_second = (second, text)
    event_dict["timestamp"] = milliseconds
    event_dict["time"] = last_second[1] + _ENDINGS[rest]
    return event_dict


def add_process(_: WrappedLogger, __: str, event_dict: EventDict) -> EventDict:
    """
    Fill in ``hostname`` and ``pid`` where the draft does not say them.
    """
    who = process.current()
    event_dict["hostname"] = event_dict.get("hostname") or who.hostname
    event_dict["pid"] = event_dict.get("pid") or who.pid
    return event_dict


class SequenceAdder:
    """
    Number the lines: ``seq`` is 0, 1, 2 … in the order of the calls.

    Args:
        next_number: Returns the next number.
    """

    def __init__(self, next_number: Callable[[], int]) -> None:
        self._next_number = next_number

    def __call__(
        self, _: WrappedLogger, __: str, event_dict: EventDict
    ) -> EventDict:
        """
        Fill in ``seq``.
        """
        event_dict["seq"] = self._next_number()
        return event_dict


class Guarded:
    """
    Run the user's *processors* so that they can neither lose nor forge.

    A processor may change values, add keys, and raise `DropEvent`. If it
    raises anything else, the line is written as it stands and *complain* is
    told. The keys of every line are put back if they went missing, and the
    order is restored.

    Args:
        processors: The user's processors.

        complain: Takes one line of text for people.
    """

    def __init__(
        self,
        processors: Sequence[Processor],
        complain: Callable[[str], None],
    ) -> None:
        self._processors = tuple(processors)
        self._complain = complain

    def __call__(
        self, logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> EventDict:
        """
        Run the processors and restore what they must not change.
        """
        before = {key: event_dict[key] for key in _ALWAYS}
        for processor in self._processors:
            try:
                changed: Any = processor(logger, method_name, event_dict)
                event_dict = dict(changed)
            except DropEvent:
                raise
            except Exception as error:
                self._complain(f"processor {processor!r} raised {error!r}")
        for key, value in before.items():
            if type(event_dict.get(key)) is not type(value):
                event_dict[key] = value
        owned = {
            key: event_dict.pop(key) for key in OWNED_KEYS if key in event_dict
        }
        return {**owned, **event_dict}


_ALWAYS: Final = (
    "timestamp",
    "time",
    "level",
    "kind",
    "message",
    "source",
    "hostname",
    "pid",
)


def render_line(_: WrappedLogger, __: str, event_dict: EventDict) -> bytes:
    r"""
    Return the finished line: JSON in UTF-8, ending in one ``\n``.
    """
    return encode(event_dict)
