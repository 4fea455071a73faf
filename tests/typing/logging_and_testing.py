"""
How users configure logging and test: checked by type checkers, never run.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog

import elastic_events as ee
from elastic_events.processors import (
    Guarded,
    add_time,
    as_bytes,
    as_logging_call,
    as_text,
    draft_line,
    line_renderer,
    redact,
    sequence_adder,
)
from elastic_events.testing import (
    VOLATILE_KEYS,
    CapturedEvents,
    capture_events,
)


formatter: logging.Formatter = ee.EventFormatter(
    "%(message)s", "%H:%M", "%", validate=False, defaults={"a": 1}
)
ee.EventFormatter([redact()])
ee.EventFormatter(processors=[redact(["token"])])
ee.EventHandler("console", processors=(redact(),))

structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        draft_line,
        redact(),
        Guarded([structlog.processors.add_log_level]),
        add_time,
        sequence_adder(),
        line_renderer(max_line=1 << 20),
        as_bytes,
    ]
)
last: list[structlog.typing.Processor] = [as_text, as_logging_call]

with capture_events() as captured:
    ee.record(ee.Event("n", ee.EventSource.WORKER))
everything: CapturedEvents = captured
events: list[dict[str, Any]] = captured.events.named("n").stable
line: dict[str, Any] = captured.one("n", metadata={})
captured.assert_has(name="n")
rows: CapturedEvents = captured.logs.matching(level="info")
is_steady: bool = VOLATILE_KEYS.isdisjoint(captured.logs.stable[0])
