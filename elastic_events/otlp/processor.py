"""
The SDK's batch processor, and what to do when it fails.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from opentelemetry._logs import LogRecord
from opentelemetry.metrics import NoOpMeterProvider
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
from opentelemetry.sdk.resources import Resource

from ..complaints import complain
from ..values import error_text
from .settings import Batching


SendBatch: TypeAlias = "Callable[[Sequence[LogRecord]], object]"


class Processor:
    """
    Make batches of records, and have them sent by a thread of the SDK.

    It is for one thread to call, and it can fail at any call: then it is to be
    given up. What it was handed and did not send it does not send any more.

    Args:
        send: Called with each batch.

        batching: When a batch is made.

    Raises:
        RuntimeError: If there is no thread to be had for the moment.

        Exception: If the environment asks for metrics that cannot be had.
    """

    def __init__(self, send: SendBatch, batching: Batching) -> None:
        self._send = send
        # Else they are read from the environment for each record.
        self._limits = LogRecordLimits()
        self._is_given_up = False
        self.after_fork()
        self._processor = BatchLogRecordProcessor(
            _Exporter(self._send_unless_given_up),
            schedule_delay_millis=batching.delay,
            max_export_batch_size=batching.batch_size,
            export_timeout_millis=batching.timeout,
            # It would leave out what finds no room, and count it nowhere: so
            # who hands over sees to it that there is room.
            max_queue_size=sys.maxsize,
            meter_provider=None
            if batching.is_metered
            else NoOpMeterProvider(),
        )
        self._begin()
        if hasattr(os, "register_at_fork"):
            # After the SDK's own, which forgets what it was handed.
            os.register_at_fork(after_in_child=self._begin)

    def after_fork(self) -> None:
        """
        Be usable when the SDK has begun anew, too.
        """
        self._has_begun = False
        self._sending = threading.Lock()

    def _begin(self) -> None:
        self._has_begun = True

    def is_usable(self) -> bool:
        """
        Tell whether records can be handed over.
        """
        return self._has_begun and not self._is_given_up

    def hand_over(self, record: LogRecord) -> None:
        """
        Have *record* sent in one of the next batches.
        """
        self._processor.on_emit(
            ReadWriteLogRecord(
                record, Resource.get_empty(), limits=self._limits
            )
        )

    def flush(self) -> None:
        """
        Have all sent that was handed over, however long it takes.
        """
        self._processor.force_flush()

    def give_up(self, error: BaseException) -> None:
        """
        Send nothing any more, because of *error*.
        """
        # What is being sent is sent to its end.
        with self._sending:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._is_given_up = True
        complain(
            f"OpenTelemetry's batch processor failed: {error_text(error)}:"
            " lines are sent without it"
        )

    def _send_unless_given_up(self, batch: Sequence[LogRecord]) -> None:
        with self._sending:
            if not self._is_given_up:
                try:
                    self._send(batch)
                except Exception as error:
                    self._fail(error)


class _Exporter(LogRecordExporter):
    """
    What the SDK's processor sends by.

    Args:
        send: Called with each batch.
    """

    def __init__(self, send: SendBatch) -> None:
        self._send = send

    def export(
        self, batch: Sequence[ReadableLogRecord]
    ) -> LogRecordExportResult:
        """
        Send *batch*. What became of it is counted elsewhere.
        """
        self._send([each.log_record for each in batch])
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
