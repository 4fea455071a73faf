"""
Send batches of lines, and tell what became of each line.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http._log_exporter import (
    OTLPLogExporter,
)
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    LogRecordExporter,
    LogRecordExportResult,
)
from requests import Response
from structlog.exceptions import DropEvent
from structlog.typing import EventDict, WrappedLogger

from .answers import NotAccepted, Rejected, RememberingSession, check
from .records import Records


Settle: TypeAlias = "Callable[[int, int, BaseException | None], None]"

# Most collectors refuse requests above 20 MiB, some above 4 MiB.
_MOST_BYTES: Final = 3 << 20

_CREDENTIALS: Final = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_LOGS_CREDENTIAL_PROVIDER",
)


class _Here(threading.local):
    """
    Whether this thread sends records at the moment.
    """

    is_sending = False


_here: Final = _Here()


def pass_others(_: WrappedLogger, __: str, event_dict: EventDict) -> EventDict:
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


class Sender(LogRecordExporter):
    """
    Make records of lines, send them, and tell what became of them.

    Args:
        endpoint: The URL that log records are sent to.

        timeout:
            The most seconds that a batch may take, with all attempts.
            (default: ``OTEL_EXPORTER_OTLP_TIMEOUT``, or 10)
    """

    settle: Settle

    def __init__(self, endpoint: str, timeout: float | None) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._records = Records()
        self._exporter: OTLPLogExporter | None = None
        self.disconnect()
        # What is wrong with the environment shows itself now.
        self._exporter = self._connected()

    def disconnect(self) -> None:
        """
        Be a new process's: connect when there is something to send.
        """
        self.is_accepting = True
        self._session = RememberingSession()
        self._exporter = None

    def look_around(self) -> None:
        """
        Learn where this process runs, unless that is known.
        """
        self._records.look_around()

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
            self._deliver([self._records.made_of(each) for each in lines])
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
            check(answer)
        if result is not LogRecordExportResult.SUCCESS:
            if isinstance(answer, Exception):
                raise answer
            raise NotAccepted("the exporter refused it")


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
