"""
A line as a request of OTLP, the protocol of OpenTelemetry, in JSON.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from json.encoder import encode_basestring as _quoted
from typing import Any, Final, NamedTuple

from .api import EventSource, NodeState
from .encoding import json_text, number_texts
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
    resource = [
        _attribute("service.name", SERVICE),
        _attribute("host.name", line["hostname"]),
        _attribute("process.pid", line["pid"]),
    ]
    record = {
        **_moments(line["timestamp"]),
        "severityNumber": _SEVERITY_NUMBERS[line["level"]],
        "severityText": SEVERITIES[line["level"]],
        **({"eventName": line["name"]} if "name" in line else {}),
        "body": {"stringValue": line["message"]},
        "attributes": list(_attributes(line)),
    }
    scope_logs = {"scope": {"name": SERVICE}, "logRecords": [record]}
    return {
        "resourceLogs": [
            {"resource": {"attributes": resource}, "scopeLogs": [scope_logs]}
        ]
    }


def _moments(timestamp: int) -> Form:
    if not 0 < timestamp <= _LATEST:
        return {}
    moment = f"{timestamp}000000"
    return {"timeUnixNano": moment, "observedTimeUnixNano": moment}


def _attributes(line: Line) -> Iterator[Form]:
    context: Form = {}
    for key, value in line.items():
        if key in _NAMES:
            yield _attribute(_NAMES[key], value)
        elif key not in _NO_ATTRIBUTES:
            context[key] = value
    if context:
        yield _attribute(_CONTEXT_NAME, context)
    for name, said in error_of(line).items():
        yield _attribute(f"exception.{name}", said)
    if not 0 < line["timestamp"] <= _LATEST:
        yield _attribute(_TIMESTAMP, line["timestamp"])


def _attribute(name: str, value: Any) -> Form:
    return {"key": name, "value": _any_value(value, 0)}


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
    except (KeyError, TypeError, AttributeError) as error:
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


def _any_value(value: Any, depth: int) -> Form:
    """
    Return *value* as OTLP writes what may be of any type.

    Raises:
        TypeError: If it is of none that JSON has.
    """
    kind = type(value)
    if kind is str:
        return {"stringValue": value}
    if kind is bool:
        return {"boolValue": value}
    if kind is int:
        fits = _SMALLEST_INT <= value <= LARGEST_INT
        return {"intValue" if fits else "stringValue": str(value)}
    if kind is float:
        return {"doubleValue": value}
    if value is None:
        return {}
    if kind is not list and kind is not dict:
        raise TypeError(kind)
    if depth >= _DEEPEST:
        return {"stringValue": json_text(value)}
    if kind is list:
        items = [_any_value(item, depth + 1) for item in value]
        return {"arrayValue": {"values": items}}
    pairs = [
        {"key": key, "value": _any_value(item, depth + 1)}
        for key, item in value.items()
    ]
    return {"kvlistValue": {"values": pairs}}


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


# Recording in this form takes three times as long if its three dozen objects
# are made first. So a line of the usual kind is made text at once.


def otel_text(line: Line) -> str:
    """
    Return the JSON of `to_otel`.

    Raises:
        Exception: If the line holds something that is rare.
    """
    timestamp = line["timestamp"]
    if not 0 < timestamp <= _LATEST:
        raise ValueError(timestamp)
    moment = f'"{timestamp}000000"'
    begin, attributes = _beginning(
        line["hostname"], line["pid"], line["kind"], line["source"]
    )
    name, message = line.get("name"), line["message"]
    said = _quoted(message)
    if name is message and len(line) == len(_USUAL):
        # An event with nothing beside the usual, as most are: all at once.
        return (
            f'{begin}"timeUnixNano":{moment},"observedTimeUnixNano":{moment},'
            f'{_SEVERITY_TEXTS[line["level"]]}"eventName":{said},'
            f'"body":{{"stringValue":{said}}},"attributes":[{attributes},'
            f'{{"key":"torchelastic.seq","value":{{"intValue":"{line["seq"]}"'
            '}},{"key":"torchelastic.metadata","value":'
            f"{_value_text(line['metadata'], 0)}}}]}}]}}]}}]}}\n"
        )
    named = "" if name is None else f'"eventName":{_quoted(name)},'
    metadata = ""
    if "metadata" in line:
        value = _value_text(line["metadata"], 0)
        metadata = f',{{"key":"torchelastic.metadata","value":{value}}}'
    further = _further_text(line)
    return (
        f'{begin}"timeUnixNano":{moment},"observedTimeUnixNano":{moment},'
        f'{_SEVERITY_TEXTS[line["level"]]}{named}"body":{{"stringValue":{said}}},'
        f'"attributes":[{attributes},{{"key":"torchelastic.seq",'
        f'"value":{{"intValue":"{line["seq"]}"}}}}{further}{metadata}'
        "]}]}]}]}\n"
    )


_USUAL: Final = _NO_ATTRIBUTES | {"kind", "source", "seq", "metadata"}
_SEVERITY_TEXTS: Final = {
    level: f'"severityNumber":{number},"severityText":"{SEVERITIES[level]}",'
    for level, number in _SEVERITY_NUMBERS.items()
}
_KINDS_OF_TEXT: Final = frozenset((str, EventSource, NodeState))


@functools.lru_cache(maxsize=64)
def _beginning(
    hostname: str, pid: int, kind: str, source: str
) -> tuple[str, str]:
    """
    Return what nearly all records of a process share.
    """
    _check_length(hostname)
    resource = ",".join(
        (
            _attribute_text("service.name", SERVICE),
            _attribute_text("host.name", hostname),
            _attribute_text("process.pid", pid),
        )
    )
    attributes = ",".join(
        (
            _attribute_text("torchelastic.kind", kind),
            _attribute_text("torchelastic.source", source),
        )
    )
    beginning = (
        f'{{"resourceLogs":[{{"resource":{{"attributes":[{resource}]}},'
        f'"scopeLogs":[{{"scope":{{"name":"{SERVICE}"}},"logRecords":[{{'
    )
    return beginning, attributes


def _further_text(line: Line) -> str:
    """
    Return the attributes that say what *line* says beside the usual.
    """
    context: Form = {}
    texts = []
    for key, value in line.items():
        if key in _USUAL:
            continue
        if key in _NAMES:
            texts.append(_attribute_text(_NAMES[key], value))
        else:
            context[key] = value
    if context:
        texts.append(_attribute_text(_CONTEXT_NAME, context))
    for name, said in error_of(line).items():
        texts.append(_attribute_text(f"exception.{name}", said))
    return "".join(f",{text}" for text in texts)


def _attribute_text(name: str, value: Any) -> str:
    if type(value) in _KINDS_OF_TEXT:
        return f'{{"key":"{name}","value":{{"stringValue":{_quoted(value)}}}}}'
    return f'{{"key":"{name}","value":{_value_text(value, 0)}}}'


def _check_length(text: str) -> None:
    """
    Raise `ValueError` if *text* is too long to be kept.
    """
    if len(text) > _LONGEST_KEPT:
        raise ValueError(text)


_LONGEST_KEPT: Final = 300


@functools.lru_cache(maxsize=1024)
def _text_of_key(key: str) -> str:
    _check_length(key)
    return f'{{"key":{_quoted(key)},"value":'


class _Template(NamedTuple):
    """
    The pairs of mappings with the same keys, of values of these types.

    Each second of the *parts* is for the text of a value.
    """

    types: list[type]
    parts: list[str]


_templates: dict[tuple[str, ...], _Template] = {}
_MOST_TEMPLATES: Final = 256
_MOST_KEYS: Final = 200
_NO_TEMPLATE: Final = _Template([], [])
_NUMBERS: Final = {
    int: ('{"intValue":"', '"}}'),
    float: ('{"doubleValue":', "}}"),
}


def _numbers_text(mapping: Form) -> str:
    """
    Return the pairs of a *mapping* to nothing but numbers, as most are.

    It is empty for any other.
    """
    keys, numbers = tuple(mapping), tuple(mapping.values())
    types = list(map(type, numbers))
    types_before, parts = _templates.get(keys, _NO_TEMPLATE)
    if types_before != types:
        # What is kept is to stay small.
        if not _NUMBERS.keys() >= set(types) or len(types) > _MOST_KEYS:
            return ""
        parts = _parts_of(keys, types)
        if len(_templates) >= _MOST_TEMPLATES:
            _templates.clear()
        _templates[keys] = _Template(types, parts)
    # It is filled in: another thread may be at the same.
    parts = parts.copy()
    try:
        parts[1::2] = number_texts(numbers)
    except (TypeError, ValueError):
        return ""
    return "".join(parts)


def _parts_of(keys: tuple[str, ...], types: list[type]) -> list[str]:
    parts = [""]
    for key, kind in zip(keys, types, strict=True):
        before, after = _NUMBERS[kind]
        parts[-1] += f"{',' if parts[1:] else ''}{_text_of_key(key)}{before}"
        parts += ["", after]
    return parts


def _value_text(value: Any, depth: int) -> str:
    """
    Return the JSON of `_any_value`.

    Raises:
        Exception: If it holds something that is rare.
    """
    kind = type(value)
    if kind is dict and depth < _DEEPEST:
        below = depth + 1
        pairs = _numbers_text(value) or ",".join(
            [
                f'{_text_of_key(key)}{{"stringValue":{_quoted(item)}}}}}'
                if type(item) is str
                else f"{_text_of_key(key)}{_value_text(item, below)}}}"
                for key, item in value.items()
            ]
        )
        return f'{{"kvlistValue":{{"values":[{pairs}]}}}}'
    if kind is str:
        return f'{{"stringValue":{_quoted(value)}}}'
    if kind is bool:
        return '{"boolValue":true}' if value else '{"boolValue":false}'
    if value is None:
        return "{}"
    if kind is int and _SMALLEST_INT <= value <= LARGEST_INT:
        return f'{{"intValue":"{value}"}}'
    if kind is float and value - value == 0:
        return f'{{"doubleValue":{value!r}}}'
    if kind is list and depth < _DEEPEST:
        items = [_value_text(item, depth + 1) for item in value]
        return f'{{"arrayValue":{{"values":[{",".join(items)}]}}}}'
    raise TypeError(kind)
