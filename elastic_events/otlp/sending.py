"""
Send lines to a collector, and tell what it did not take.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from opentelemetry import context
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http._log_exporter import (
    OTLPLogExporter,
)
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from requests import Response
from structlog.exceptions import DropEvent
from structlog.typing import EventDict, WrappedLogger

from ..values import error_text
from .answers import NotAccepted, Rejected, RememberingSession, check
from .records import Records


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


@contextmanager
def _sending() -> Iterator[None]:
    """
    Have nothing said about the sending, and no spans made of its requests.
    """
    # There is no public name for what the SDK's own processors do.
    silent = context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True)  # noqa: SLF001
    token = context.attach(silent)
    _here.is_sending = True
    try:
        yield
    finally:
        _here.is_sending = False
        context.detach(token)


class Loss(NamedTuple):
    """
    How many lines were lost, and what took them.
    """

    lines: int
    error: BaseException | None


class Sender:
    """
    Make records of lines and send them.

    Args:
        endpoint: The URL that log records are sent to.

        timeout: The most seconds that a batch may take, with all attempts.

    Raises:
        ValueError: If a variable of the environment cannot be.
    """

    def __init__(self, endpoint: str, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._records = Records()
        self._exporter: OTLPLogExporter | None = None
        self.disconnect()
        # What is wrong with the environment shows itself now.
        try:
            self._exporter = self._connected()
        except Exception as error:
            raise ValueError(
                f"OpenTelemetry's exporter cannot be had: {error_text(error)}"
            ) from error

    def disconnect(self) -> None:
        """
        Be a new process's: connect when there is something to send.
        """
        self.is_accepting = True
        self._session = RememberingSession()
        self._exporter = None

    def send(self, lines: Sequence[LogRecord]) -> Loss:
        """
        Send *lines*, as `noted`, in one request; never raises.

        Afterwards `is_accepting` tells whether the collector took them all.
        """
        loss = Loss(0, None)
        try:
            with _sending():
                self._deliver([self._records.made_of(each) for each in lines])
        except Rejected as error:
            loss = Loss(min(error.count, len(lines)), error)
        except BaseException as error:
            loss = Loss(len(lines), error)
        self.is_accepting = not loss.lines
        return loss

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

    def _connected(self) -> OTLPLogExporter:
        has_own = any(os.environ.get(each) for each in _CREDENTIALS)
        return OTLPLogExporter(
            endpoint=self._endpoint,
            timeout=self._timeout,
            session=None if has_own else self._session,
        )
