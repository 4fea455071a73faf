"""
What was read: records, and what is wrong with the rest.

A raw line of torch is a record too, and says what it says in our keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, TypeVar

from ..schema import EARLIEST, LATEST, fits
from ..torchelastic import EVENT_PREFIX, account_of_event


_Time = TypeVar("_Time", int, float)

_SOURCES: Final = ("AGENT", "WORKER")
_EVENT_KEYS: Final = {"name", "source", "timestamp", "metadata"}
_RDZV_KEYS: Final = {
    "name",
    "run_id",
    "message",
    "hostname",
    "pid",
    "node_state",
    "master_endpoint",
    "rank",
    "local_id",
    "error_trace",
}
# What may be empty there, and is left out of a line then.
_RDZV_PLACE: Final[tuple[tuple[str, type], ...]] = (
    ("hostname", str),
    ("pid", int),
    ("run_id", str),
    ("rank", int),
    ("node_state", str),
    ("local_id", int),
    ("master_endpoint", str),
    ("error_trace", str),
)


class Record(NamedTuple):
    """
    One record, and where it stands.

    Args:
        file: The file's name, as it was given or found.

        number: The line's number in the file, from 1.

        raw: Its bytes, without the line feed.

        said: What it says, in the keys of our lines.
    """

    file: str
    number: int
    raw: bytes
    said: dict[str, Any]

    @property
    def place(self) -> str:
        """
        File and number, as in ``FILE:7``.
        """
        return f"{self.file}:{self.number}"


class Finding(NamedTuple):
    """
    Something that is wrong with what was read.

    Args:
        file: The file's name.

        number: The line's number, zero for the file as a whole.

        what: What is wrong.

        is_unreadable: Whether the file, or the rest of it, was not read.
    """

    file: str
    number: int
    what: str
    is_unreadable: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.number}" if self.number else self.file
        return f"{place}: {self.what}"


Report: TypeAlias = Callable[[Finding], None]
"""Whoever is told of findings."""


def said_by(value: dict[str, Any]) -> dict[str, Any]:
    """
    Return what a JSON object says, in the keys of our lines.

    One of our lines is returned as it is, and so is any other object that is
    not an event as torch writes it.
    """
    if "kind" in value:
        return value
    if value.keys() == _EVENT_KEYS and value["source"] in _SOURCES:
        return _said_by_event(value)
    if value.keys() == _RDZV_KEYS:
        return _said_by_rdzv_event(value)
    return value


def time_of(said: dict[str, Any]) -> int | float | None:
    """
    Return the ``timestamp`` of what was *said*, `None` if it is no number.
    """
    timestamp = said.get("timestamp")
    if type(timestamp) is int:
        return timestamp
    if type(timestamp) is float and math.isfinite(timestamp):
        return timestamp
    return None


def is_time(time: _Time | None) -> TypeGuard[_Time]:
    """
    Tell whether *time* is within the years 1 to 9999, in ms.
    """
    return time is not None and EARLIEST <= time <= LATEST


def _said_by_event(event: dict[str, Any]) -> dict[str, Any]:
    name, source, metadata = event["name"], event["source"], event["metadata"]
    failed, trace = False, ""
    job: dict[str, Any] = {}
    worker: dict[str, Any] = {}
    is_of_torch = isinstance(name, str) and name.startswith(EVENT_PREFIX)
    if is_of_torch and isinstance(metadata, dict):
        failed, job, worker, trace = account_of_event(metadata)
    said = {
        "timestamp": event["timestamp"],
        "level": "error" if failed or trace else "info",
        "kind": "event",
        "name": name,
        "message": name,
        "source": source,
        **job,
        "error_trace": trace,
        "worker": worker if source == "WORKER" else {},
        "metadata": metadata,
    }
    # torch's agents leave the time at zero.
    for key in ("timestamp", "error_trace", "worker"):
        if not said[key]:
            del said[key]
    return said


def _said_by_rdzv_event(event: dict[str, Any]) -> dict[str, Any]:
    # A zero says something, and so does what is of another type.
    known = {
        key: event[key]
        for key, kind in _RDZV_PLACE
        if event[key] or fits(event[key], kind)
    }
    failed = "error_trace" in known or known.get("node_state") == "FAILED"
    return {
        "level": "error" if failed else "info",
        "kind": "rdzv",
        "name": event["name"],
        "message": event["message"],
        "source": "AGENT",
        **known,
    }
