"""
What a line looks like as a log record of OpenTelemetry.
"""

from __future__ import annotations

import functools
import os
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import (
    LogRecordLimits,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk.resources import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ..encoding import decode
from ..forming import SERVICE
from ..otel_form import plain_of, to_otel


_SCOPE: Final = InstrumentationScope(SERVICE)
_LIMITS: Final = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT",
)


def noted(line: bytes) -> LogRecord:
    """
    Return a record of *line* as it is, with the span of this thread.

    It is what takes little time. `Records` make the rest.
    """
    return LogRecord(observed_timestamp=time.time_ns(), body=line)


class Records:
    """
    Make of a noted line the record that is sent, about this process.

    Raises:
        ValueError: If the environment's limits cannot be.
    """

    def __init__(self) -> None:
        # What is wrong with them shows itself now.
        limits = LogRecordLimits()
        has_limits = any(os.environ.get(each) for each in _LIMITS)
        self._limits = limits if has_limits else None
        self._process = Resource.get_empty()
        self._pid = 0
        self._look_around()

    def _look_around(self) -> None:
        """
        Learn where this process runs, unless that is known.
        """
        if self._pid == os.getpid():
            return
        if self._pid:
            self._process = _forked(self._process)
        else:
            self._process = _process_resource()
        self._resource = functools.lru_cache(maxsize=64)(self._merged)
        self._pid = os.getpid()

    def made_of(self, record: LogRecord) -> ReadableLogRecord:
        """
        Return what *record*, whose body is a line, is sent as.
        """
        self._look_around()
        line: Any = record.body
        try:
            said = to_otel(decode(line))
        except Exception:
            # It lacks what a line has, as one does that nothing could repair.
            record.body = line[:-1].decode()
            return ReadableLogRecord(record, self._resource(), _SCOPE)
        (logs,) = said["resourceLogs"]
        self._fill(record, logs["scopeLogs"][0]["logRecords"][0])
        about = plain_of(logs["resource"]["attributes"])
        # The environment may call the service something else.
        del about["service.name"]
        resource = self._resource(*about.items())
        return ReadableLogRecord(record, resource, _SCOPE)

    def _fill(self, record: LogRecord, said: Mapping[str, Any]) -> None:
        if "timeUnixNano" in said:
            record.timestamp = int(said["timeUnixNano"])
        record.severity_number = SeverityNumber(said["severityNumber"])
        record.severity_text = said["severityText"]
        record.event_name = said.get("eventName")
        record.body = said["body"]["stringValue"]
        # The SDK would leave out empty keys: so it sees them only where it has
        # to shorten them.
        record.attributes = plain_of(said["attributes"])
        if self._limits is not None:
            ReadWriteLogRecord(record, limits=self._limits)

    def _merged(self, *of_line: tuple[str, str | int]) -> Resource:
        return self._process.merge(Resource(dict(of_line)))


def _process_resource() -> Resource:
    """
    Return what the SDK and the environment say of this process.
    """
    try:
        found = Resource.create()
    except RuntimeError:
        # It takes threads, which cannot be had at the end of the process.
        found = OTELResourceDetector().detect()
    if not _is_named(found):
        found = found.merge(Resource({SERVICE_NAME: SERVICE}))
    return found


def _forked(resource: Resource) -> Resource:
    """
    Return what *resource*, that of a parent, is in a forked process.

    The SDK is not asked again: it takes a lock that a fork may find held.
    """
    if SERVICE_INSTANCE_ID not in resource.attributes:
        return resource
    of_process = Resource({SERVICE_INSTANCE_ID: str(uuid.uuid4())})
    # The environment may have given it one.
    return resource.merge(of_process.merge(OTELResourceDetector().detect()))


def _is_named(resource: Resource) -> bool:
    name = str(resource.attributes.get(SERVICE_NAME, "unknown_service"))
    return not name.startswith("unknown_service")
