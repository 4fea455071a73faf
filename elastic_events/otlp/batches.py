"""
What waits for the SDK's processor, which makes batches of it and sends them.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from opentelemetry._logs import LogRecord
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

from ..backlog import Backlog
from .settings import Batching


Send: TypeAlias = (
    "Callable[[Sequence[LogRecord], Callable[[int], object]], object]"
)
"""
Sends records in their order, and tells of how many it is known what became of
them; never raises.
"""

_NOTHING: Final = Resource.get_empty()


class Batches(Backlog[LogRecord]):
    """
    Noted lines that wait until they are sent.

    Who records calls nothing of the SDK: its processor takes a lock that a
    signal handler would wait for in vain, and leaves out the oldest where it
    has no room for the newest. So the backlog's thread hands the lines over,
    as many as there is room for.

    Args:
        name: Returns what waits, in words.

        send: How the records of a batch are sent.

        limits: When a batch is made, and how many lines may wait for it.
    """

    def __init__(
        self, name: Callable[[], str], send: Send, limits: Batching
    ) -> None:
        self._send = send
        self._limits = limits
        self._processor: BatchLogRecordProcessor | None = None
        # Else they are read from the environment for each line.
        self._record_limits = LogRecordLimits()
        # Who records never waits for a collector.
        super().__init__(name, self._send_first, stands_in=False)

    def after_fork(self) -> None:
        """
        Begin with nothing, as the SDK does with what it was handed.
        """
        super().after_fork()
        # Of what waits, the first so many are the processor's to send.
        self._handed = 0
        self._counting = threading.Lock()
        self._is_hurried = False

    def hurry(self) -> None:
        """
        Have what waits sent without waiting for a batch to be full.
        """
        self._is_hurried = True
        super().hurry()

    def write_all(self, waiting: deque[LogRecord]) -> None:
        """
        Hand over all that is *waiting*; send it if that is not to be had.
        """
        # Before anything else: what is put in before a hurry is hurried.
        is_hurried, self._is_hurried = self._is_hurried, False
        processor = self._obtain_processor()
        if processor is None:
            super().write_all(waiting)
            return
        while self._handed < len(waiting) and waiting is self._waiting:
            if self._handed >= self._limits.queue_size:
                processor.force_flush()
            self._hand_over(processor, waiting)
        if is_hurried:
            processor.force_flush()

    def _obtain_processor(self) -> BatchLogRecordProcessor | None:
        """
        Return the processor, or `None` while its thread cannot be started.
        """
        if self._processor is None:
            with contextlib.suppress(RuntimeError):
                self._processor = BatchLogRecordProcessor(
                    _Exporter(self._send_batch),
                    schedule_delay_millis=self._limits.delay,
                    max_export_batch_size=self._limits.batch_size,
                    export_timeout_millis=self._limits.timeout,
                    max_queue_size=self._limits.queue_size,
                )
        return self._processor

    def _hand_over(
        self, processor: BatchLogRecordProcessor, waiting: deque[LogRecord]
    ) -> None:
        with self._counting:
            record = waiting[self._handed]
        processor.on_emit(
            ReadWriteLogRecord(record, _NOTHING, limits=self._record_limits)
        )
        with self._counting:
            self._handed += 1

    def _send_batch(self, batch: Sequence[LogRecord]) -> None:
        """
        Send *batch*, for the processor: they are the first that wait.
        """
        self._send(batch, partial(self._forget, self._waiting))

    def _forget(self, waiting: deque[LogRecord], count: int) -> None:
        with self._counting:
            for _ in range(count):
                waiting.popleft()
            # In a process that is forked while sending, it is the parent's.
            if waiting is self._waiting:
                self._handed -= count

    def _send_first(self, waiting: deque[LogRecord]) -> None:
        """
        Send the first of those *waiting*, without the processor.
        """
        count = min(len(waiting), self._limits.batch_size)

        def forget(count: int) -> None:
            for _ in range(count):
                waiting.popleft()

        # Not by an iterator: meanwhile others append.
        self._send([waiting[at] for at in range(count)], forget)


class _Exporter(LogRecordExporter):
    """
    What the SDK's processor sends by.

    Args:
        send: Called with each batch; never raises.
    """

    def __init__(self, send: Callable[[Sequence[LogRecord]], object]) -> None:
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
