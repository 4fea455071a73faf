"""
The outlet to a collector, and the sink that hands its lines to the SDK.

The SDK queues and sends them in a thread of its own; the outlet is told what
became of each.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LogRecordLimits, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

from ..complaints import complain
from ..counting import Count
from ..outlets import Outlet
from ..queued_outlet import QueueFull, wait_for
from ..values import reraise_interrupt
from .records import noted
from .sending import Sender, Settle, pass_others
from .settings import is_switched_off, whole_number


# Several threads may find the last place free at the same time. In the queue
# of the SDK, which says nothing of what it drops, there is one for all.
_SPARE_PLACES: Final = 1000

_PAUSE: Final = 0.001


class Disabled(Exception):  # noqa: N818
    """
    The environment switches OpenTelemetry off.
    """


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
        self.admit = pass_others
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
        self._size = size or whole_number("OTEL_BLRP_MAX_QUEUE_SIZE", 2048)
        self._batch = min(
            whole_number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512), self._size
        )
        self._delay = whole_number("OTEL_BLRP_SCHEDULE_DELAY", 1000)
        self._is_switched_off = is_switched_off()
        self._limits = LogRecordLimits()
        self._sender = Sender(endpoint, timeout)
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
        if self._is_switched_off:
            raise Disabled("OTEL_SDK_DISABLED is true")
        if self.queued() >= self._size:
            raise QueueFull(f"{self._size} lines wait")
        self._ready.append(noted(line))
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
            ReadWriteLogRecord(record, limits=self._limits)
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
