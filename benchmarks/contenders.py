"""
Who records: this package, the least that Python can do, and others.

Each contender writes the same fields, each in the form that is its own.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

import orjson
import structlog
from workloads import Events, Log, Mixed

import elastic_events as ee
from elastic_events.formats import FORMATS


Run = Callable[[Events], object]


class Contender(NamedTuple):
    """
    A way to record.

    Args:
        name: What the table calls it.

        prepare: Returns what records events to a file.

        needs: The module without which it is left out.
    """

    name: str
    prepare: Callable[[Path], Run]
    needs: str = "orjson"

    def is_there(self) -> bool:
        """
        Tell whether what it needs is installed.
        """
        return importlib.util.find_spec(self.needs.split(".")[0]) is not None


_HOSTNAME, _PID = os.uname().nodename, os.getpid()


def _fields(event: ee.Event) -> dict[str, Any]:
    """
    Return what the others are told of an event, time and level apart.
    """
    return {
        "kind": "event",
        "source": event.source,
        "hostname": _HOSTNAME,
        "pid": _PID,
        "metadata": event.metadata,
    }


def _descriptor(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def floor(file: Path) -> Run:
    """
    Return what encodes and writes lines that are finished already.
    """
    return _writer_of_finished(file, lambda line: line)


def floor_formatted(name: str) -> Callable[[Path], Run]:
    """
    Return what prepares the same of finished forms of that format.
    """
    return lambda file: _writer_of_finished(file, FORMATS[name].to)


def _writer_of_finished(
    file: Path, form: Callable[[dict[str, Any]], dict[str, Any]]
) -> Run:
    descriptor = _descriptor(file)
    finished: dict[int, Any] = {}

    def lines_of(events: Events) -> list[Any]:
        written: list[bytes] = []
        ee.register_destination("finished", written.append)
        for event in events:
            ee.record(event, "finished")
        return [form(orjson.loads(line)) for line in written]

    def run(events: Events) -> None:
        lines = finished.get(id(events))
        if lines is None:
            lines = finished[id(events)] = lines_of(events)
        for line in lines:
            os.write(
                descriptor,
                orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE),
            )

    return run


def straight_line(file: Path) -> Run:
    """
    Return one function that makes the same line, without any framework.
    """
    descriptor = _descriptor(file)
    number = itertools.count().__next__
    second, text = -1, ""

    def record(event: ee.Event) -> None:
        nonlocal second, text
        now = time_ns() // 1_000_000
        if now // 1000 != second:
            second = now // 1000
            moment = datetime.fromtimestamp(second, timezone.utc)
            text = moment.strftime("%Y-%m-%dT%H:%M:%S")
        line = {
            "timestamp": now,
            "time": f"{text}.{now % 1000:03}Z",
            "level": "info",
            "kind": "event",
            "name": event.name,
            "message": event.name,
            "source": event.source,
            "hostname": _HOSTNAME,
            "pid": _PID,
            "seq": number(),
            "metadata": event.metadata,
        }
        os.write(
            descriptor, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        )

    def run(events: Events) -> None:
        for event in events:
            record(event)

    return run


def agent_straight_line(file: Path) -> Run:
    """
    Return the same for an agent's events. It believes whatever they say.
    """
    descriptor = _descriptor(file)
    number = itertools.count().__next__
    second, text = -1, ""

    def record(event: ee.Event) -> None:
        nonlocal second, text
        now = time_ns() // 1_000_000
        if now // 1000 != second:
            second = now // 1000
            moment = datetime.fromtimestamp(second, timezone.utc)
            text = moment.strftime("%Y-%m-%dT%H:%M:%S")
        told = event.metadata
        worker = orjson.loads(told["metadata"])
        (local_rank,) = worker["local_rank"]
        line = {
            "timestamp": now,
            "time": f"{text}.{now % 1000:03}Z",
            "level": "error" if told["state"] == "FAILED" else "info",
            "kind": "event",
            "name": event.name,
            "message": event.name,
            "source": event.source,
            "hostname": _HOSTNAME,
            "pid": _PID,
            "seq": number(),
            "run_id": told["run_id"],
            "rank": told["global_rank"],
            "local_rank": local_rank,
            "restart": told["agent_restarts"],
            "worker": {
                "local_rank": local_rank,
                "role_rank": worker["role_rank"][0],
                "role_world_size": worker["role_world_size"][0],
                "group_world_size": worker["group_world_size"],
                "exit_code": worker["exit_code"][0],
                "pid": worker["worker_pid"][0],
                "entry_point": worker["entry_point"],
            },
            "metadata": told,
        }
        os.write(
            descriptor, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        )

    def run(events: Events) -> None:
        for event in events:
            record(event)

    return run


def ours(file: Path) -> Run:
    """
    Return `record` to a file.
    """
    return _recorder(f"file:{file}")


def ours_formatted(name: str) -> Callable[[Path], Run]:
    """
    Return what prepares `record` to a file in the format of that name.
    """
    return lambda file: _recorder(f"file:{file}?format={name}")


def ours_mixed(query: str) -> Callable[[Path], Run]:
    """
    Return what prepares to record events and logs to a file, with options.
    """

    def prepare(file: Path) -> Run:
        record = ee.record
        destination = f"file:{file}{query}"
        log = ee.get_logger(destination, name="trainer")
        methods = {"info": log.info, "warning": log.warning}

        def run(lines: Mixed) -> None:
            for line in lines:
                if type(line) is Log:
                    methods[line.method](line.message, **line.values)
                else:
                    record(line, destination)

        return run

    return prepare


def _recorder(destination: str) -> Run:
    record = ee.record

    def run(events: Events) -> None:
        for event in events:
            record(event, destination)

    return run


def ours_bound(file: Path) -> Run:
    """
    Return a bound logger's `record`, with four keys bound.
    """
    log = ee.get_logger(f"file:{file}").bind(
        team="vision", cluster="a", attempt=1, dataset="web"
    )

    def run(events: Events) -> None:
        for event in events:
            log.record(event)

    return run


def ours_null(_: Path) -> Run:
    """
    Return `record` to nowhere.
    """
    record = ee.record

    def run(events: Events) -> None:
        for event in events:
            record(event)

    return run


def rendezvous(file: Path | None) -> Run:
    """
    Return `construct_and_record_rdzv_event`, to a file or switched off.
    """
    construct = ee.construct_and_record_rdzv_event
    state = ee.NodeState.RUNNING
    target = f"file:{file}" if file else "null"

    def run(events: Events) -> None:
        ee.register_destination("dynamic_rendezvous", target)
        _deep(
            lambda: [
                construct("job-7", "joined the round", state) for _ in events
            ]
        )

    return run


def _deep(function: Callable[[], object], frames: int = 12) -> None:
    """
    Call *function* some frames deep, as torchrun records its rendezvous.
    """
    if frames:
        _deep(function, frames - 1)
    else:
        function()


def torch_record(file: Path) -> Run:
    """
    Return torch's `record`, through a `logging.FileHandler`.
    """
    from torch.distributed.elastic.events import handlers

    handlers._log_handlers["bench"] = logging.FileHandler(file)
    return _torch_to("bench")


def torch_null(_: Path) -> Run:
    """
    Return torch's `record` to nowhere.
    """
    return _torch_to("null")


def _torch_to(destination: str) -> Run:
    from torch.distributed.elastic.events import record

    def run(events: Events) -> None:
        for event in events:
            record(event, destination)  # type: ignore[arg-type]

    return run


def torch_rendezvous(file: Path) -> Run:
    """
    Return torch's `construct_and_record_rdzv_event`, to a file.
    """
    from torch.distributed.elastic.events import (
        NodeState,
        construct_and_record_rdzv_event,
        handlers,
    )

    handlers._log_handlers["dynamic_rendezvous"] = logging.FileHandler(file)

    def run(events: Events) -> None:
        # Near a millisecond each: fewer are enough.
        for _ in events[:5]:
            _deep(
                lambda: construct_and_record_rdzv_event(
                    "job-7", "joined the round", NodeState.RUNNING
                )
            )

    return run


def structlog_fast(file: Path) -> Run:
    """
    Return structlog as its page on performance advises.
    """
    log = structlog.wrap_logger(
        structlog.BytesLogger(file.open("ab")),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    ).bind()

    def run(events: Events) -> None:
        for event in events:
            log.info(event.name, **_fields(event))

    return run


def _through_logging(
    name: str, file: Path, formatter: logging.Formatter | None
) -> logging.Logger:
    logger = logging.getLogger(f"bench.{name}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(file)
    handler.setFormatter(formatter)
    logger.handlers = [handler]
    return logger


def structlog_formatter(file: Path) -> Run:
    """
    Return structlog over logging, with its `ProcessorFormatter`.
    """
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(
                serializer=lambda line, **_: orjson.dumps(line).decode()
            ),
        ]
    )
    log = structlog.wrap_logger(
        _through_logging("structlog", file, formatter),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    ).bind()

    def run(events: Events) -> None:
        for event in events:
            log.info(event.name, **_fields(event))

    return run


def json_logger(file: Path) -> Run:
    """
    Return python-json-logger with orjson.
    """
    from pythonjsonlogger.orjson import OrjsonFormatter

    formatter = OrjsonFormatter("%(asctime)s %(levelname)s %(message)s")
    logger = _through_logging("pythonjsonlogger", file, formatter)

    def run(events: Events) -> None:
        for event in events:
            logger.info(event.name, extra=_fields(event))

    return run


def loguru_serialize(file: Path) -> Run:
    """
    Return loguru with ``serialize=True``.
    """
    from loguru import logger

    logger.remove()
    logger.add(file, serialize=True)

    def run(events: Events) -> None:
        for event in events:
            logger.bind(**_fields(event)).info(event.name)

    return run


def eliot_messages(file: Path) -> Run:
    """
    Return eliot's messages.
    """
    import eliot

    eliot.to_file(file.open("ab"))

    def run(events: Events) -> None:
        for event in events:
            eliot.log_message(event.name, **_fields(event))

    return run


def otel_console(file: Path) -> Run:
    """
    Return the OpenTelemetry SDK with its console exporter, to a file.
    """
    from opentelemetry._logs import SeverityNumber
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        ConsoleLogRecordExporter,
        SimpleLogRecordProcessor,
    )

    stream = file.open("a")
    provider = LoggerProvider()
    provider.add_log_record_processor(
        SimpleLogRecordProcessor(
            ConsoleLogRecordExporter(
                out=stream,
                formatter=lambda record: record.to_json(indent=None) + "\n",
            )
        )
    )
    logger = provider.get_logger("bench")

    def run(events: Events) -> None:
        for event in events:
            fields = _fields(event)
            logger.emit(
                timestamp=time_ns(),
                severity_number=SeverityNumber.INFO,
                severity_text="INFO",
                body=event.name,
                attributes={
                    **fields,
                    "source": event.source.value,
                    "metadata": json.dumps(event.metadata),
                },
            )

    return run


def plain_text(file: Path) -> Run:
    """
    Return `logging.FileHandler` with one message of plain text.
    """
    logger = _through_logging("plain", file, None)

    def run(events: Events) -> None:
        for number, _ in enumerate(events):
            logger.info("step %s is done", number)

    return run


def plain_ours(file: Path) -> Run:
    """
    Return `logging` with our handler, the message the same.
    """
    logger = logging.getLogger("bench.ours")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [ee.EventHandler(f"file:{file}")]

    def run(events: Events) -> None:
        for number, _ in enumerate(events):
            logger.info("step %s is done", number)

    return run


def plain_json_logger(file: Path) -> Run:
    """
    Return python-json-logger with orjson, message and fields the same.
    """
    from pythonjsonlogger.orjson import OrjsonFormatter

    formatter = OrjsonFormatter(
        "%(asctime)s %(levelname)s %(message)s %(name)s %(process)d"
    )
    logger = _through_logging("plainjson", file, formatter)

    def run(events: Events) -> None:
        for number, _ in enumerate(events):
            logger.info("step %s is done", number)

    return run


OTHERS = (
    Contender("structlog, as its performance page advises", structlog_fast),
    Contender("structlog ProcessorFormatter", structlog_formatter),
    Contender("python-json-logger[orjson]", json_logger, "pythonjsonlogger"),
    Contender("eliot", eliot_messages, "eliot"),
    Contender("loguru serialize", loguru_serialize, "loguru"),
    Contender("OpenTelemetry console", otel_console, "opentelemetry"),
    Contender("torch record, FileHandler", torch_record, "torch"),
    Contender("torch record, null", torch_null, "torch"),
)
