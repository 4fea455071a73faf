"""
Lines as OpenTelemetry's log records, sent to a collector by OTLP over HTTP.

The SDK queues and sends them in a thread of its own; the outlet is told what
became of each. This is the only importer of opentelemetry.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import (
    OTLPLogExporter,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceResponse,
)
from opentelemetry.sdk._logs import (
    LogRecordLimits,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from requests import HTTPError, Response, Session
from structlog.exceptions import DropEvent
from structlog.typing import EventDict, WrappedLogger

from .complaints import complain
from .counting import Count
from .encoding import decode
from .forming import SERVICE
from .otel_form import plain_of, to_otel
from .outlets import Outlet
from .queued_outlet import QueueFull, wait_for
from .values import reraise_interrupt


Settle: TypeAlias = "Callable[[int, int, BaseException | None], None]"

_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_LOGS_PATH: Final = "/v1/logs"

# Several threads may find the last place free at the same time. In the queue
# of the SDK, which says nothing of what it drops, there is one for all.
_SPARE_PLACES: Final = 1000

# Most collectors refuse requests above 20 MiB, some above 4 MiB.
_MOST_BYTES: Final = 3 << 20

_PAUSE: Final = 0.001
_SCOPE: Final = InstrumentationScope(SERVICE)
_NOTHING_YET: Final = Resource.get_empty()
_CREDENTIALS: Final = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_LOGS_CREDENTIAL_PROVIDER",
)
_LIMITS: Final = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT",
)


class NotAccepted(Exception):  # noqa: N818
    """
    The collector did not take a batch.
    """


class Rejected(Exception):  # noqa: N818
    """
    The collector took a batch, but not *count* of its records.
    """

    def __init__(self, count: int, text: str) -> None:
        super().__init__(f"the collector rejected {count} records: {text}")
        self.count = count


class Disabled(Exception):  # noqa: N818
    """
    The environment switches OpenTelemetry off.
    """


def endpoint_of(address: str) -> str:
    """
    Return the URL that log records are sent to.

    Args:
        address:
            A collector's, as ``http://HOST:4318``. Empty, it is what
            OpenTelemetry's environment variables say.

    Raises:
        ValueError: If it is no URL of HTTP.
    """
    if not address:
        exact = os.environ.get("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
        if exact:
            return _checked(exact)
        address = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or (
            _DEFAULT_ENDPOINT
        )
    url = _checked(address).rstrip("/")
    return url if url.endswith(_LOGS_PATH) else url + _LOGS_PATH


def _checked(url: str) -> str:
    """
    Return *url* if records can be sent there.

    Raises:
        ValueError: If they cannot.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(
            f"{url!r} is no collector: expected otlp:http://HOST:4318, or"
            " otlp: alone for what OTEL_EXPORTER_OTLP_ENDPOINT says"
        )
    if parts.username is not None or parts.fragment:
        # The text is not shown: it may hold a secret.
        raise ValueError(
            "the URL of a collector holds a user or a fragment: credentials"
            " belong into OTEL_EXPORTER_OTLP_HEADERS"
        )
    _ = parts.port
    return url


class OtlpOutlet(Outlet):
    """
    An outlet whose lines are written when a collector has taken them.

    Args:
        name: As for every outlet.

        sink: Where the lines wait.

        others: As for every outlet.
    """

    def __init__(
        self, name: Callable[[], str], sink: OtlpSink, **others: Any
    ) -> None:
        super().__init__(name, sink, **others)
        self._otlp = sink
        self.admit = _pass_others
        self.queued = sink.queued
        sink.open(name(), self.settle)

    def settle(
        self, count: int, lost: int, error: BaseException | None
    ) -> None:
        """
        Count that *count* lines wait no longer; *error* took *lost* of them.
        """
        # At once, for whoever asks for the health meanwhile.
        with self._counting:
            if error is not None:
                for _ in range(lost):
                    self.drop(error)
            self._otlp.settled += count

    def _report_drops(self) -> None:
        # It would be dropped, and reported, in turn.
        if self._otlp.is_accepting():
            super()._report_drops()


class OtlpSink:
    """
    Hand lines to the SDK's processor, which sends them in batches.

    The line is turned into a record where it is sent. Until then nothing but
    the span is needed of the thread that recorded it.

    Args:
        endpoint: The URL that log records are sent to.

        size:
            How many lines may wait. (default: ``OTEL_BLRP_MAX_QUEUE_SIZE``, or
            2048)

        timeout:
            The most seconds that a batch may take, with all attempts.
            (default: ``OTEL_EXPORTER_OTLP_TIMEOUT``, or 10)

    Raises:
        ValueError: If a variable of the environment cannot be.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        size: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self._size = size or _number("OTEL_BLRP_MAX_QUEUE_SIZE", 2048)
        self._batch = min(
            _number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512), self._size
        )
        self._delay = _number("OTEL_BLRP_SCHEDULE_DELAY", 1000)
        self._is_disabled = (
            os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        )
        self._limits = LogRecordLimits()
        self._sender = _Sender(endpoint, timeout)
        self._processor: BatchLogRecordProcessor | None = None
        self._begin()

    def open(self, name: str, settle: Settle) -> None:
        """
        Have *settle* told what became of the lines.
        """
        self._name = name
        self._settle = self._sender.settle = settle

    def _begin(self) -> None:
        self.settled = 0
        self._handed = Count()
        self._ready: deque[LogRecord] = deque()
        self._handing: dict[str, object] = {}
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_started = False
        self._ends_at: float | None = None

    def after_fork(self) -> None:
        """
        Begin with an empty queue: what waits is the parent's to send.
        """
        # The SDK itself empties its queue and starts its thread.
        self._begin()
        self._sender.disconnect()

    def is_accepting(self) -> bool:
        """
        Tell whether the collector took what it was sent last.
        """
        return self._sender.is_accepting

    def queued(self) -> int:
        """
        Return how many lines wait, or are being sent.
        """
        return max(0, self._handed.taken() - self.settled)

    def write(self, line: bytes, /) -> None:
        """
        Have *line* sent.

        Raises:
            QueueFull: If too many wait already.

            Disabled: If the environment says that nothing is to be sent.
        """
        if self._is_disabled:
            raise Disabled("OTEL_SDK_DISABLED is true")
        if self.queued() >= self._size:
            raise QueueFull(f"{self._size} lines wait")
        # It notes the span of this thread.
        record = LogRecord(observed_timestamp=time.time_ns(), body=line)
        self._ready.append(record)
        self._handed.take()
        self._hand_over()
        if self._ends_at is not None:
            self.flush(self._ends_at)

    def _hand_over(self) -> None:
        # Whoever comes second, be it a signal handler that interrupts the
        # first, leaves it to the first, who looks again.
        while self._ready and self._is_handed_over():
            pass

    def _is_handed_over(self) -> bool:
        """
        Hand over what is ready, unless somebody else does.
        """
        me = object()
        try:
            # Unlike a lock, it tells who came first also when interrupted.
            if self._handing.setdefault("first", me) is not me:
                return False
            while self._ready:
                self._emit(self._ready.popleft())
        except BaseException as error:
            # At the end of the process no thread can be started.
            self._settle(1, 1, error)
            reraise_interrupt(error)
        finally:
            if self._handing.get("first") is me:
                del self._handing["first"]
        return True

    def _emit(self, record: LogRecord) -> None:
        self._started().on_emit(
            ReadWriteLogRecord(
                record, _NOTHING_YET, _SCOPE, limits=self._limits
            )
        )

    def _started(self) -> BatchLogRecordProcessor:
        """
        Return the processor, with all that a process needs for it.
        """
        if self._processor is None:
            self._processor = BatchLogRecordProcessor(
                self._sender,
                schedule_delay_millis=self._delay,
                max_export_batch_size=self._batch,
                max_queue_size=self._size + _SPARE_PLACES,
            )
        if not self._is_started:
            self._sender.look_around()
            threading.Thread(
                target=self._flush_when_called,
                args=(self._processor,),
                name=f"flush:{self._name}",
                daemon=True,
            ).start()
            wait_for(self)
            self._is_started = True
        return self._processor

    def _flush_when_called(self, processor: BatchLogRecordProcessor) -> None:
        # Flushing takes as long as it takes: so it is done here, and whoever
        # wants it waits as long as they want to.
        calls = self._calls
        while calls is self._calls:
            calls.get()
            with contextlib.suppress(Exception):
                processor.force_flush()

    def flush(self, deadline: float) -> bool:
        """
        Wait until nothing is queued; tell whether that came to pass.

        Args:
            deadline: When to give up, by `time.monotonic`.
        """
        if self.queued():
            self._hand_over()
            self._calls.put(None)
        while self.queued():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def close(self, deadline: float) -> None:
        """
        Flush, and have lines that come later flushed by then as well.
        """
        if not self.flush(deadline):
            complain(f"{self._name}: {self.queued()} lines were not sent")
        self._ends_at = deadline


class _Here(threading.local):
    """
    Whether this thread sends records at the moment.
    """

    is_sending = False


_here: Final = _Here()


def _pass_others(
    _: WrappedLogger, __: str, event_dict: EventDict
) -> EventDict:
    """
    Leave out what is said while sending: it would be sent, and said, in turn.
    """
    if _here.is_sending:
        raise DropEvent
    return event_dict


def _is_said_elsewhere(_: logging.LogRecord) -> bool:
    return not _here.is_sending


# What the exporter would log about a failure is in `health` and a complaint.
logging.getLogger(OTLPLogExporter.__module__).addFilter(_is_said_elsewhere)


class _Sender(LogRecordExporter):
    """
    Make records of lines, send them, and tell what became of them.
    """

    settle: Settle

    def __init__(self, endpoint: str, timeout: float | None) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._has_limits = any(os.environ.get(each) for each in _LIMITS)
        self._exporter: OTLPLogExporter | None = None
        self._process = Resource.get_empty()
        self.disconnect()
        self.look_around()
        # What is wrong with the environment shows itself now.
        self._exporter = self._connected()

    def disconnect(self) -> None:
        """
        Be a new process's: connect when there is something to send.
        """
        self.is_accepting = True
        self._session = _Session()
        self._exporter = None
        self._pid = 0

    def look_around(self) -> None:
        """
        Learn where this process runs, unless that is known.
        """
        if self._pid != os.getpid():
            self._process = _process_resource() or self._process
            self._resource = functools.lru_cache(maxsize=64)(self._merged)
            self._pid = os.getpid()

    def _connected(self) -> OTLPLogExporter:
        has_own = any(os.environ.get(each) for each in _CREDENTIALS)
        return OTLPLogExporter(
            endpoint=self._endpoint,
            timeout=self._timeout,  # type: ignore[arg-type, unused-ignore]
            session=None if has_own else self._session,
        )

    def export(
        self, batch: Sequence[ReadableLogRecord]
    ) -> LogRecordExportResult:
        """
        Send *batch*; never raises.
        """
        _here.is_sending = True
        try:
            for lines in _requests(batch):
                self._send(lines)
        finally:
            _here.is_sending = False
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        """
        Do nothing: it lives as long as the process.
        """

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        """
        Tell that nothing waits here.
        """
        return True

    def _send(self, lines: list[LogRecord]) -> None:
        lost = 0
        failure: BaseException | None = None
        try:
            self._deliver([self._record(each) for each in lines])
        except Rejected as error:
            lost, failure = min(error.count, len(lines)), error
        except BaseException as error:
            lost, failure = len(lines), error
        self.is_accepting = not lost
        self.settle(len(lines), lost, failure)

    def _deliver(self, records: list[ReadableLogRecord]) -> None:
        """
        Send *records*, with the attempts that the SDK makes.

        Raises:
            Exception: If the collector did not take all of them.
        """
        if self._exporter is None:
            self._exporter = self._connected()
        self._session.answer = None
        result = self._exporter.export(records)
        answer = self._session.answer
        if isinstance(answer, Response):
            _check(answer)
        if result is not LogRecordExportResult.SUCCESS:
            if isinstance(answer, Exception):
                raise answer
            raise NotAccepted("the exporter refused it")

    def _merged(self, *of_line: tuple[str, str | int]) -> Resource:
        return self._process.merge(Resource(dict(of_line)))

    def _record(self, record: LogRecord) -> ReadableLogRecord:
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
        if self._has_limits:
            ReadWriteLogRecord(record, _NOTHING_YET)


class _Session(Session):
    """
    Connections that remember how the last request ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer: Response | Exception | None = None

    def request(self, *args: Any, **options: Any) -> Response:
        """
        Do as every session; a redirection would lose what was sent.
        """
        options["allow_redirects"] = False
        try:
            self.answer = super().request(*args, **options)
        except Exception as error:
            self.answer = error
            raise
        return self.answer


def _requests(
    batch: Sequence[ReadableLogRecord],
) -> Iterator[list[LogRecord]]:
    """
    Yield the lines of *batch*, as many at a time as one request may hold.
    """
    lines: list[LogRecord] = []
    room = _MOST_BYTES
    for each in batch:
        size = len(each.log_record.body)  # type: ignore[arg-type]
        if lines and size > room:
            yield lines
            lines, room = [], _MOST_BYTES
        lines.append(each.log_record)
        room -= size
    if lines:
        yield lines


def _check(answer: Response) -> None:
    """
    Raise what the collector said against the records.

    Raises:
        HTTPError: If it took none of them.

        Rejected: If it did not take all.
    """
    if not 200 <= answer.status_code < 300:
        raise HTTPError(f"HTTP {answer.status_code} {answer.reason}")
    if "protobuf" not in answer.headers.get("Content-Type", ""):
        return
    try:
        said = ExportLogsServiceResponse.FromString(answer.content)
    except Exception:
        # It was taken, whatever else was said.
        return
    partial = said.partial_success
    if partial.rejected_log_records > 0:
        raise Rejected(partial.rejected_log_records, partial.error_message)


def _process_resource() -> Resource | None:
    """
    Return what the SDK and the environment say of this process.

    It takes threads, which cannot be had at the end of the process: then it is
    `None`.
    """
    try:
        found = Resource.create()
    except RuntimeError:
        return None
    if not _is_named(found):
        found = found.merge(Resource({SERVICE_NAME: SERVICE}))
    return found


def _is_named(resource: Resource) -> bool:
    name = str(resource.attributes.get(SERVICE_NAME))
    return not name.startswith("unknown_service")


def _number(name: str, default: int) -> int:
    """
    Return what the environment says, a whole number above zero.

    Raises:
        ValueError: If it says something else.
    """
    said = os.environ.get(name) or str(default)
    if not said.strip().isdecimal() or not int(said):
        raise ValueError(
            f"the environment has {name}={said!r}: expected a whole number"
            " above zero"
        )
    return int(said)
