"""
What type checkers refuse: each comment is an error of its own if it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import elastic_events as ee
from elastic_events.formats import Format
from elastic_events.processors import Guarded, line_renderer
from elastic_events.testing import capture_events


event = ee.Event("n", ee.EventSource.WORKER)


def takes_text(line: str) -> None:
    print(line)


def returns_text(line: Mapping[str, Any]) -> str:
    return str(line)


ee.Event("n", "WORKER")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.Event("n")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ee.Event("n", ee.EventSource.WORKER, metadata={"a": [1]})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
ee.Event("n", ee.EventSource.NOBODY)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
event.timestamp = "now"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
ee.Event.deserialize(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.RdzvEvent.deserialize(event)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

ee.record("n")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.record(event, 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.record_rdzv_event(event)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.construct_and_record_rdzv_event("run", "m", "FAILED")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
text: str = ee.get_logging_handler()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

ee.get_logger("console", "info")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ee.get_logger(level=1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.get_logger(processors=[1])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
ee.get_logger().record("n")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.get_logger().log("info")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ee.configure(processors=takes_text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.EventHandler(processors=[takes_text])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
ee.EventFormatter(["%(message)s"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]

ee.register_destination("name", 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.register_destination("name", takes_text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.redact(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ee.flush("5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dropped: int = ee.health()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


@ee.record_failures  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def without_parentheses() -> None: ...


Format("short", to=returns_text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Guarded()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
line_renderer("1 MiB")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

with capture_events() as captured:
    captured.named(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    captured.one(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
