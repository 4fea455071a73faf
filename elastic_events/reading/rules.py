"""
What the values of a line's keys must be, as the JSON Schema has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ..levels import LEVELS
from ..schema import EARLIEST, KEYS, LATEST
from .filters import KINDS, SOURCES


_TIME: Final = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z"
)
_LONGEST_VALUE: Final = 60


class Rule(NamedTuple):
    """
    What the value of a key must be, and how that is said.
    """

    holds: Callable[[Any], bool]
    expected: str


def _is_integer(value: Any) -> bool:
    # To JSON Schema 1.0 is one.
    return type(value) is int or (
        isinstance(value, float) and value.is_integer()
    )


_INTEGER: Final = Rule(_is_integer, "an integer")
_TEXT: Final = Rule(lambda value: isinstance(value, str), "a text")
_OBJECT: Final = Rule(lambda value: isinstance(value, dict), "an object")
_NOT_EMPTY: Final = {
    int: _INTEGER,
    str: Rule(
        lambda value: isinstance(value, str) and value != "",
        "a text that is not empty",
    ),
    dict: Rule(
        lambda value: isinstance(value, dict) and bool(value),
        "an object that is not empty",
    ),
    bool: Rule(lambda value: value is True, "true"),
}
_MAY_BE_EMPTY: Final = {int: _INTEGER, str: _TEXT, dict: _OBJECT}


def _one_of(*texts: str) -> Rule:
    return Rule(
        lambda value: isinstance(value, str) and value in texts,
        f"one of {', '.join(texts)}",
    )


_RULES: Final[dict[str, Rule]] = {
    **{
        key: (_MAY_BE_EMPTY if required else _NOT_EMPTY)[kind]
        for key, (kind, required) in KEYS.items()
    },
    "timestamp": Rule(
        lambda value: _is_integer(value) and EARLIEST <= value <= LATEST,
        "milliseconds within the years 1 to 9999",
    ),
    "time": Rule(
        lambda value: (
            isinstance(value, str) and _TIME.fullmatch(value) is not None
        ),
        "a text like 2024-02-29T12:34:56.789Z",
    ),
    "level": _one_of(*LEVELS),
    "kind": _one_of(*KINDS),
    "source": _one_of(*SOURCES),
    "seq": Rule(
        lambda value: _is_integer(value) and value >= 0,
        "an integer from 0 on",
    ),
}
_WORKER_RULES: Final = {
    **dict.fromkeys(
        (
            "local_rank",
            "role_rank",
            "role_world_size",
            "group_world_size",
            "exit_code",
            "pid",
        ),
        _INTEGER,
    ),
    "entry_point": _TEXT,
    "error": _NOT_EMPTY[dict],
}
_ERROR_RULES: Final = {
    "type": _TEXT,
    "message": _TEXT,
    "timestamp": _INTEGER,
}
_REQUIRED: Final = {
    kind: frozenset(key for key in KEYS if kind in KEYS[key].required)
    for kind in KINDS
}
_ALWAYS_REQUIRED: Final = frozenset.intersection(*_REQUIRED.values())
_OF_NODES: Final = frozenset(("node_state", "local_id", "master_endpoint"))
_FORBIDDEN: Final = {
    "event": _OF_NODES | {"logger"},
    "rdzv": frozenset(("metadata", "logger")),
    "log": _OF_NODES | {"name"},
}


def problems(said: dict[str, Any], *, is_whole: bool = True) -> list[str]:
    """
    Return what the JSON Schema of a line would not accept in what is *said*.

    Args:
        said: What the line says.

        is_whole: Whether it must have all keys that are required.
    """
    found = list(_broken(said, _RULES))
    kind = said.get("kind")
    required, forbidden = _ALWAYS_REQUIRED, frozenset[str]()
    if isinstance(kind, str) and kind in _REQUIRED:
        required, forbidden = _REQUIRED[kind], _FORBIDDEN[kind]
    if is_whole and not said.keys() >= required:
        found += [f"no {key}" for key in KEYS if key in required - set(said)]
    if not said.keys().isdisjoint(forbidden):
        found += [
            f"{key} on a line of kind {kind}"
            for key in said
            if key in forbidden
        ]
    worker = said.get("worker")
    if isinstance(worker, dict):
        found += _broken(worker, _WORKER_RULES, "worker.")
        error = worker.get("error")
        if isinstance(error, dict):
            found += _broken(error, _ERROR_RULES, "worker.error.")
    return found


def _broken(
    said: dict[str, Any], rules: dict[str, Rule], where: str = ""
) -> Iterator[str]:
    """
    Yield what values in *said* are not as *rules* want them.
    """
    for key, value in said.items():
        rule = rules.get(key)
        if rule is None:
            # Only at the root are keys that we do not know.
            if where:
                yield f"unknown key {where}{shown(key)}"
        elif not rule.holds(value):
            yield f"{where}{key} is {shown(value)}, expected {rule.expected}"


def shown(value: Any) -> str:
    """
    Return *value* as JSON, in a few words.
    """
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    if len(text) > _LONGEST_VALUE:
        return text[: _LONGEST_VALUE - 1] + "…"
    return text
