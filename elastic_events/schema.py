"""
What a line is: its owned keys in their order, and the JSON Schema.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Final


OWNED_KEYS: Final = (
    "timestamp",
    "time",
    "level",
    "kind",
    "name",
    "message",
    "source",
    "hostname",
    "pid",
    "seq",
    "truncated",
    "run_id",
    "rank",
    "local_rank",
    "restart",
    "node_state",
    "local_id",
    "master_endpoint",
    "logger",
    "error_trace",
    "worker",
    "metadata",
)
"""The keys that the package alone writes, in the order of a line."""

JOB_KEYS: Final[dict[str, type]] = {
    "run_id": str,
    "rank": int,
    "local_rank": int,
    "restart": int,
}
"""The owned keys that place a line in a job, and the type of each."""

EARLIEST: Final = -62_135_596_800_000
LATEST: Final = 253_402_300_799_999
"""The first and last ``timestamp``: years 1 to 9999, in ms since the epoch."""


def line_schema() -> dict[str, Any]:
    """
    Return the JSON Schema (draft 2020-12) that every line validates against.
    """
    package = resources.files(__package__ or "elastic_events")
    text = package.joinpath("line.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
