"""
What the forms of a line have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeAlias

from .schema import KEYS


Line: TypeAlias = "Mapping[str, Any]"
Form: TypeAlias = "dict[str, Any]"

OWN: Final = "torchelastic"
"""Where a form has what it has no name for."""

CONTEXT: Final = "context"
"""Where a form has what was bound."""

SERVICE: Final = "elastic_events"
"""The service of which a form says that it comes from it."""

SEVERITIES: Final = {
    "debug": "DEBUG",
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "critical": "CRITICAL",
}
"""What others call a level."""

# What several of them have in common.

_LAST_FRAME: Final = '\n  File "'
_EXCEPTION: Final = re.compile(
    r"(?P<type>[^\W\d][\w.]*)(?:: (?P<message>.*))?", re.MULTILINE
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND: Final = timedelta(milliseconds=1)


def error_of(line: Line) -> Form:
    """
    Return type and message of the error of which *line* tells, if known.
    """
    error = line.get("worker", {}).get("error")
    if error:
        return {key: error[key] for key in ("type", "message") if key in error}
    trace = line.get("error_trace", "")
    if not trace:
        return {}
    for text in _unindented(trace):
        match = _EXCEPTION.fullmatch(text)
        if match is not None:
            return {k: said for k, said in match.groupdict().items() if said}
    return {}


def _unindented(trace: str) -> Iterator[str]:
    """
    Yield the lines after the last frame of *trace* that are not indented.
    """
    rest = trace[trace.rfind(_LAST_FRAME) + 1 :]
    for text in rest.split("\n"):
        if text[:1].strip():
            yield text


def finished(said: Form) -> Form:
    """
    Return the line that says so: with its time in both forms, in order.

    Raises:
        ValueError: If it lacks what every line has.
    """
    if "time" in said:
        said["timestamp"] = _milliseconds(said["time"])
    elif type(said.get("timestamp")) is int:
        said["time"] = time_of(said["timestamp"])
    missing = [
        key
        for key, (_, kinds) in KEYS.items()
        if said.get("kind", "log") in kinds and key not in said
    ]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    own = {key: said[key] for key in KEYS if key in said}
    return {**own, **{key: said[key] for key in said if key not in KEYS}}


def _milliseconds(time: Any) -> int:
    if not isinstance(time, str) or not time.endswith("Z"):
        raise ValueError(f"{time!r} is no time in UTC")
    moment = datetime.fromisoformat(f"{time[:-1]}+00:00")
    return (moment - _EPOCH) // _MILLISECOND


def time_of(milliseconds: int) -> str:
    """
    Return the ``time`` that stands beside a ``timestamp``.

    Raises:
        ValueError: If it is not within the years 1 to 9999.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise ValueError(f"no time: {milliseconds}") from error
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z"


def level_of(said: Any, levels: Mapping[Any, str]) -> str:
    """
    Return the level that is *said* in the words of a form.

    Raises:
        ValueError: If it is none of those that are known.
    """
    if not isinstance(said, (str, int)) or said not in levels:
        raise ValueError(f"{said!r} is no severity of ours")
    return levels[said]


def part(form: Line, name: str) -> Form:
    """
    Return the object *name* of *form*, itself where there is no name.

    Raises:
        ValueError: If it is no object.
    """
    found = form.get(name, {}) if name else form
    if not isinstance(found, dict):
        raise ValueError(f"{name!r} is no object")  # noqa: TRY004
    return found


def unowned(context: Line) -> Line:
    """
    Return *context* if it can have been bound.

    Raises:
        ValueError: If it holds a key that the package owns.
    """
    for key in context:
        if key in KEYS:
            raise ValueError(f"{key!r} cannot have been bound")
    return context
