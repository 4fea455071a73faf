"""
What a line is: its owned keys in their order, and the JSON Schema.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple


class Key(NamedTuple):
    """
    What the value of an owned key is, and which kinds of line have it.
    """

    type: type
    required: tuple[str, ...] = ()


_EVERY: Final = ("event", "rdzv", "log")

KEYS: Final[dict[str, Key]] = {
    "timestamp": Key(int, required=_EVERY),
    "time": Key(str, required=_EVERY),
    "level": Key(str, required=_EVERY),
    "kind": Key(str, required=_EVERY),
    "name": Key(str, required=("event", "rdzv")),
    "message": Key(str, required=_EVERY),
    "source": Key(str, required=_EVERY),
    "hostname": Key(str, required=_EVERY),
    "pid": Key(int, required=_EVERY),
    "seq": Key(int, required=_EVERY),
    "truncated": Key(bool),
    "run_id": Key(str),
    "rank": Key(int),
    "local_rank": Key(int),
    "restart": Key(int),
    "node_state": Key(str),
    "local_id": Key(int),
    "master_endpoint": Key(str),
    "logger": Key(str, required=("log",)),
    "error_trace": Key(str),
    "worker": Key(dict),
    "metadata": Key(dict, required=("event",)),
}
"""The keys that the package alone writes, in the order of a line."""

JOB_KEYS: Final[dict[str, type]] = {
    key: KEYS[key].type for key in ("run_id", "rank", "local_rank", "restart")
}
"""The owned keys that place a line in a job, and the type of each."""

SHORTEST_HEAD: Final = 120
"""So many bytes of a line are always of owned texts and integers."""

LARGEST_INT: Final = 2**63 - 1

EARLIEST: Final = -62_135_596_800_000
LATEST: Final = 253_402_300_799_999
"""The first and last ``timestamp``: years 1 to 9999, in ms since the epoch."""


def fits(value: object, kind: type) -> bool:
    """
    Tell whether *value* is a *kind* that a line can hold, and says something.
    """
    if type(value) is int:
        return kind is int and -LARGEST_INT <= value <= LARGEST_INT
    return kind is not int and isinstance(value, kind) and bool(value)


def is_right(key: str, value: object, kind: str) -> bool:
    """
    Tell whether the owned *key* may have *value* on a line of *kind*.
    """
    wanted, required = KEYS[key]
    return fits(value, wanted) or (kind in required and value == wanted())


def line_schema() -> dict[str, Any]:
    """
    Return the JSON Schema (draft 2020-12) that every line validates against.
    """
    from importlib import resources  # noqa: PLC0415

    package = resources.files(__package__ or "elastic_events")
    text = package.joinpath("line.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
