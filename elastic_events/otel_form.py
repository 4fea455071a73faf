"""
A line as a request of OTLP, the protocol of OpenTelemetry, in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .encoding import json_text
from .forming import (
    CONTEXT,
    OWN,
    SERVICE,
    SEVERITIES,
    Form,
    Line,
    error_of,
    finished,
    level_of,
    part,
    unowned,
)
from .schema import KEYS, LARGEST_INT


_SEVERITY_NUMBERS: Final = {
    "debug": 5,
    "info": 9,
    "warning": 13,
    "error": 17,
    "critical": 21,
}
_LEVELS_BY_NUMBER: Final = {
    number: level for level, number in _SEVERITY_NUMBERS.items()
}
_NO_ATTRIBUTES: Final = frozenset(
    ("timestamp", "time", "level", "name", "message", "hostname", "pid")
)
_NAMES: Final = {
    **{key: f"{OWN}.{key}" for key in KEYS if key not in _NO_ATTRIBUTES},
    "error_trace": "exception.stacktrace",
}
# What is in neither is bound.
_PLACES: Final = {**dict.fromkeys(_NO_ATTRIBUTES, ""), **_NAMES}
_AS_THEY_ARE: Final[dict[type, str]] = {
    str: "stringValue",
    float: "doubleValue",
    bool: "boolValue",
}
_CONTEXT_NAME: Final = f"{OWN}.{CONTEXT}"
_SMALLEST_INT: Final = -(2**63)
_TIMESTAMP: Final = f"{OWN}.timestamp"
# In 64 bits of nanoseconds.
_LATEST: Final = 2**64 // 1_000_000 - 1
# protobuf takes a hundred levels, and each of ours is three of them.
_DEEPEST: Final = 20


def to_otel(line: Line) -> Form:
    """
    Return *line* as one request of OTLP, in its JSON.

    An integer of 2**63 and more is written as its digits, what stands more
    than 20 levels deep as JSON text: OTLP has nothing else for them.
    """
    resource = {
        "service.name": SERVICE,
        "host.name": line["hostname"],
        "process.pid": line["pid"],
    }
    level = line["level"]
    record = _moments(line["timestamp"])
    record["severityNumber"] = _SEVERITY_NUMBERS[level]
    record["severityText"] = SEVERITIES[level]
    if "name" in line:
        record["eventName"] = line["name"]
    record["body"] = {"stringValue": line["message"]}
    record["attributes"] = _pairs(_named(line), 0)
    scope_logs = {"scope": {"name": SERVICE}, "logRecords": [record]}
    about = {"attributes": _pairs(resource, 0)}
    return {"resourceLogs": [{"resource": about, "scopeLogs": [scope_logs]}]}


def _moments(timestamp: int) -> Form:
    if not 0 < timestamp <= _LATEST:
        return {}
    moment = f"{timestamp}000000"
    return {"timeUnixNano": moment, "observedTimeUnixNano": moment}


def _named(line: Line) -> Form:
    """
    Return what becomes an attribute of *line*, by its name there.
    """
    named: Form = {}
    context: Form = {}
    for key, value in line.items():
        name = _PLACES.get(key)
        if name:
            named[name] = value
        elif name is None:
            context[key] = value
    if context:
        named[_CONTEXT_NAME] = context
    if "worker" in line or "error_trace" in line:
        for name, said in error_of(line).items():
            named[f"exception.{name}"] = said
    if not 0 < line["timestamp"] <= _LATEST:
        named[_TIMESTAMP] = line["timestamp"]
    return named


DECISIVE: Final = frozenset(("level", "error_trace"))
"""The keys whose values decide the request: one is few, one is read."""


def records_of(form: Line) -> Iterator[Form]:
    """
    Yield a request for each log record of *form*, a request of OTLP in JSON.

    Raises:
        ValueError: If it is none.
    """
    try:
        for resource_logs in form["resourceLogs"]:
            # What is empty is left out.
            for scope_logs in resource_logs.get("scopeLogs", ()):
                for record in scope_logs.get("logRecords", ()):
                    one = {**scope_logs, "logRecords": [record]}
                    yield {
                        "resourceLogs": [{**resource_logs, "scopeLogs": [one]}]
                    }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            "expected log records of OTLP as JSON:"
            f" {type(error).__name__}: {error}"
        ) from error


def from_otel(form: Line) -> Form:
    """
    Return the line of what `to_otel` returned.

    Raises:
        ValueError: If it is none.
    """
    try:
        (resource_logs,) = form["resourceLogs"]
        (scope_logs,) = resource_logs["scopeLogs"]
        (record,) = scope_logs["logRecords"]
        resource = plain_of(resource_logs["resource"]["attributes"])
        attributes = plain_of(record["attributes"])
        said = {
            "level": level_of(record.get("severityNumber"), _LEVELS_BY_NUMBER),
            "message": record["body"]["stringValue"],
            "hostname": resource.get("host.name"),
            "pid": resource.get("process.pid"),
            "name": record.get("eventName", ""),
            "timestamp": int(record.get("timeUnixNano", 0)) // 1_000_000
            or attributes.get(_TIMESTAMP),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            "expected one log record of OTLP as JSON:"
            f" {type(error).__name__}: {error}"
        ) from error
    for key, name in _NAMES.items():
        said[key] = attributes.get(name)
    if said["kind"] not in KEYS["name"].required:
        del said["name"]
    context = part(attributes, _CONTEXT_NAME)
    line = {key: said[key] for key in KEYS if said.get(key) is not None}
    return finished({**line, **unowned(context)})


def _pairs(held: Line, depth: int) -> list[Form]:
    """
    Return OTLP's list of key and value of what is *held*.
    """
    pairs: list[Form] = []
    add = pairs.append
    for key, value in held.items():
        kind = type(value)
        # Most by far are these: without a call for each.
        if kind is str:
            add({"key": key, "value": {"stringValue": value}})
        elif kind is float:
            add({"key": key, "value": {"doubleValue": value}})
        elif kind is int and _SMALLEST_INT <= value <= LARGEST_INT:
            add({"key": key, "value": {"intValue": str(value)}})
        else:
            add({"key": key, "value": _any_value(value, depth)})
    return pairs


def _any_value(value: Any, depth: int) -> Form:
    """
    Return *value* as OTLP writes what may be of any type.

    Raises:
        TypeError: If it is of none that JSON has.
    """
    kind = type(value)
    name = _AS_THEY_ARE.get(kind)
    if name is not None:
        return {name: value}
    if kind is int:
        fits = _SMALLEST_INT <= value <= LARGEST_INT
        return {"intValue" if fits else "stringValue": str(value)}
    if value is None:
        return {}
    if kind is not list and kind is not dict:
        raise TypeError(kind)
    if depth >= _DEEPEST:
        return {"stringValue": json_text(value)}
    if kind is dict:
        return {"kvlistValue": {"values": _pairs(value, depth + 1)}}
    items = [_any_value(item, depth + 1) for item in value]
    return {"arrayValue": {"values": items}}


def plain_of(pairs: list[Form]) -> Form:
    """
    Return the mapping that OTLP's list of key and value stands for.
    """
    # Who reads it with protobuf and writes it again leaves out what is empty.
    return {
        pair.get("key", ""): _plain(pair.get("value", {})) for pair in pairs
    }


def _plain(value: Form) -> Any:
    """
    Return what `_any_value` was given.
    """
    if not value:
        return None
    ((name, held),) = value.items()
    if name == "intValue":
        return int(held)
    if name == "doubleValue":
        return float(held)
    if name == "kvlistValue":
        return plain_of(held.get("values", []))
    if name == "arrayValue":
        return [_plain(each) for each in held.get("values", [])]
    if name in {"stringValue", "boolValue"}:
        return held
    raise ValueError(f"unknown type of value: {name!r}")
