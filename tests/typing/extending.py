"""
How others provide formats, destinations and processors: checked by type
checkers, never run.
"""

from __future__ import annotations

import logging.config
from collections.abc import Mapping
from typing import Any

import pytest
from structlog.typing import EventDict, Processor, WrappedLogger

import elastic_events as ee
from elastic_events.formats import Format, UnknownFormat, find, known
from elastic_events.testing import CapturedEvents


# An entry point of the group elastic_events.formats is one of these two.


def short(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"at": line["time"], "text": line["message"]}


def long(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": form["at"], "message": form["text"]}


whole = Format(
    "short",
    to=short,
    back=long,
    kinds=("event", "rdzv"),
    is_mover=True,
    decisive=("kind",),
)
names: list[str] = known()
try:
    ecs: Format = find("ecs")
except UnknownFormat as error:
    reason: ValueError = error


# An entry point of the group elastic_events.destinations is one of these.


def printed(line: bytes) -> None:
    print(line)


class Sent(logging.Handler):
    pass


class Kept:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def __call__(self, line: bytes, /) -> int:
        self.lines.append(line)
        return len(line)


ee.register_destination("printed", printed)
ee.register_destination("sent", Sent())
ee.register_destination("kept", Kept())


# A processor is a function, or whatever else can be called.


class Stamped:
    fails_closed = True

    def __call__(
        self, logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> EventDict:
        return {**event_dict, "cluster": "a"}


stamped: Processor = Stamped()
ee.configure(processors=[stamped, ee.redact()])


logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {
            "line": {
                "()": ee.EventFormatter,
                "processors": [ee.redact()],
            }
        },
        "handlers": {
            "events": {
                "class": "elastic_events.EventHandler",
                "destination": "file:events.jsonl",
                "level": "INFO",
                "processors": ["ext://extending.stamped"],
            }
        },
        "root": {"handlers": ["events"]},
    }
)


# The fixture of the pytest plug-in.


def test_recording(captured_events: CapturedEvents) -> None:
    ee.record(ee.Event("n", ee.EventSource.WORKER))

    assert ["n"] == [each["name"] for each in captured_events]
    with pytest.raises(AssertionError):
        captured_events.one("other")
