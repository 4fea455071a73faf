"""
One event, by whatever door it comes, is one and the same line.
"""

import io
import logging
import sys

import pytest
import structlog
from hypothesis import given
from strategies import EVENTS, RDZV_EVENTS
from test_api import rdzv_event

import elastic_events as ee
from elastic_events import destinations


EVENT = ee.Event(
    "n", ee.EventSource.WORKER, metadata={"a": 1, "é": None, "x": [1.5, {}]}
)
FAILED = ee.Event(
    "torchelastic.worker.status.FAILED",
    ee.EventSource.WORKER,
    metadata={"run_id": "r", "state": "FAILED", "global_rank": 1},
)


def by_record(event):
    ee.record(event, "door")


def by_logger(event):
    ee.get_logger("door").record(event)


def by_configured_logger(event):
    ee.configure("door")
    structlog.get_logger().record(event)


def by_handler_method(event):
    ee.get_logging_handler("door").info(event)


def by_stdlib_logger(event):
    logger = logging.getLogger("any")
    logger.handlers = [ee.get_logging_handler("door")]
    logger.setLevel(1)
    logger.error(event)


def by_torch_style_logger(event):
    ee._get_or_create_logger("door").info(event.serialize())


DOORS = (
    by_record,
    by_logger,
    by_configured_logger,
    by_handler_method,
    by_stdlib_logger,
    by_torch_style_logger,
)


def lines_of(event, doors=DOORS):
    lines = []
    for door in doors:
        # A new outlet each time, so that each line is number 0.
        ee.register_destination("door", lines.append)
        door(event)
    return lines


@pytest.mark.parametrize("event", [EVENT, FAILED, rdzv_event()], ids=str)
@pytest.mark.usefixtures("as_worker")
def test_same_bytes(validate, frozen, event):
    """Every door gives the same bytes, context variables included."""
    structlog.contextvars.bind_contextvars(team="x", level="evil")
    lines = lines_of(event)
    said = validate(lines[0])

    assert len(DOORS) * [lines[0]] == lines
    assert ("x", "evil") == (said["team"], said["level_"])


@given(EVENTS | RDZV_EVENTS)
def test_same_bytes_of_any_event(frozen, event):
    """Whatever the event, the doors agree."""
    lines = lines_of(event)

    assert len(DOORS) * [lines[0]] == lines


def test_same_outlet(sink):
    """All doors to a destination share one outlet."""
    outlet = destinations.resolve("sink").outlet

    assert outlet is ee.get_logging_handler("sink")._found.outlet
    assert outlet.write == ee.get_logger("sink")._logger.write


def test_usage_example_verbatim(capsys, validate):
    """The example runs to the letter: a set of an Ellipsis is kept beside."""
    events = ee
    # fmt: off
    event = events.Event(
        name="test_event", source=events.EventSource.WORKER, metadata={...}
    )
    events.get_logging_handler(destination="console").info(event)
    # fmt: on

    said = validate(capsys.readouterr().err.encode())
    assert ("test_event", "WORKER", {}, ["Ellipsis"]) == (
        said["name"],
        said["source"],
        said["metadata"],
        said["metadata_"],
    )


def test_usage_example(capsys, validate):
    """The example of torch's documentation runs with metadata of one's own."""
    events = ee

    event = events.Event(
        name="test_event",
        source=events.EventSource.WORKER,
        metadata={"key": "value"},
    )
    events.get_logging_handler(destination="console").info(event)

    said = validate(capsys.readouterr().err.encode())
    assert ("test_event", {"key": "value"}) == (said["name"], said["metadata"])
    assert "" == sys.stdout.getvalue()


def test_same_text_everywhere(tmp_path, capfdbinary, sink, frozen):
    """A record is the same text in a file, a stream, a handler's and ours."""
    file, stream = tmp_path / "log.jsonl", io.StringIO()
    other = logging.StreamHandler(stream)
    other.setFormatter(ee.EventFormatter())
    record = logging.makeLogRecord(
        {"name": "é", "msg": "m %s", "args": ("}}\n",), "created": 1.5e9}
    )
    for handler in (
        other,
        ee.EventHandler("sink"),
        ee.EventHandler("console"),
        ee.EventHandler(f"file:{file}"),
    ):
        handler.handle(record)
    written = [
        stream.getvalue().encode(),
        capfdbinary.readouterr().err,
        file.read_bytes(),
    ]

    assert "m }}\n" == sink.one["message"]
    assert [sink[0]] * 3 == written
