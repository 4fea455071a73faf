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
from .context import fits, with_context
from .encoding import encode
from .levels import LEVELS
from .schema import JOB_KEYS, OWNED_KEYS


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


def sequence_adder(next_number: Callable[[], int]) -> Processor:
    """
    Return the step that fills in ``seq``, in the order of the calls.

    Args:
        next_number: Returns the next number.
    """

    def add_sequence(
        _: WrappedLogger, __: str, event_dict: EventDict
    ) -> EventDict:
        event_dict["seq"] = next_number()
        return event_dict

    return add_sequence


class Guarded:
    """
    Run the user's *processors* so that they can neither lose nor forge.

    A processor may change values, add keys, remove optional ones, and raise
    `DropEvent`. If it raises anything else, the line is written without it
    and *complain* is told. What every line of its kind has is put back if it
    went missing or changed its type; keys that are not the processor's to
    add are renamed as bound ones are.

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
        before = dict(event_dict)
        for processor in self._processors:
            try:
                changed: Any = processor(logger, method_name, event_dict)
                event_dict = dict(changed)
            except DropEvent:
                raise
            except Exception as error:
                self._complain(f"processor {processor!r} raised {error!r}")
        return _restored(before, dict(event_dict))


_FIXED: Final = frozenset(("timestamp", "time", "kind", "seq"))
_REMOVABLE: Final = frozenset((*JOB_KEYS, "error_trace", "worker"))


def _restored(before: EventDict, after: dict[str, Any]) -> EventDict:
    """
    Return the line *after* the processors, with the right keys in order.
    """
    line: dict[str, Any] = {}
    for key in OWNED_KEYS:
        value = after.get(key)
        if key in before:
            is_same_type = type(value) is type(before[key])
            if key in after or key not in _REMOVABLE:
                line[key] = value if is_same_type else before[key]
            after.pop(key, None)
        elif key in JOB_KEYS and fits(value, JOB_KEYS[key]):
            line[key] = after.pop(key)
    line |= {key: before[key] for key in _FIXED}
    if line["level"] not in LEVELS:
        line["level"] = before["level"]
    return with_context(line, after.items())


def render_line(_: WrappedLogger, __: str, event_dict: EventDict) -> bytes:
    r"""
    Return the finished line: JSON in UTF-8, ending in one ``\n``.
    """
    return encode(event_dict)
