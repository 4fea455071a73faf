"""
The outlet to a collector, and the sink in which its lines wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry._logs import LogRecord

from ..backlog import Backlog, QueueFull, fitted
from ..outlets import Outlet
from . import settings
from .records import noted
from .sending import Sender, pass_others


# Most collectors refuse requests above 20 MiB, some above 4 MiB.
_MOST_BYTES: Final = 3 << 20


class Disabled(Exception):  # noqa: N818
    """
    The environment switches OpenTelemetry off.
    """


class TooLate(Exception):  # noqa: N818
    """
    The process ends, and the collector did not take what it was sent last.
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
        self.queued = sink.open(self)

    def _report_drops(self) -> None:
        # It would be dropped, and reported, in turn.
        if self._otlp.is_accepting():
            super()._report_drops()


class OtlpSink:
    """
    Have lines sent in batches, by a thread.

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
        self._size = size or settings.whole_number(
            "OTEL_BLRP_MAX_QUEUE_SIZE", 2048
        )
        self._batch = min(
            settings.whole_number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512),
            self._size,
        )
        self._delay = (
            settings.whole_number("OTEL_BLRP_SCHEDULE_DELAY", 1000) / 1000
        )
        self._is_switched_off = settings.is_switched_off()
        self._sender = Sender(endpoint, timeout or settings.timeout())

    def open(self, outlet: Outlet) -> Callable[[], int]:
        """
        Have *outlet* told what became of the lines.

        Returns:
            What tells how many wait, or are being sent.
        """
        self._outlet = outlet
        self._backlog = Backlog(
            lambda: outlet.name,
            self._send_some,
            self._delay,
            # Who records never waits for a collector.
            stands_in=False,
        )
        return self._backlog.queued

    def after_fork(self) -> None:
        """
        Connect anew, when there is something to send.
        """
        self._sender.disconnect()

    def is_accepting(self) -> bool:
        """
        Tell whether the collector took what it was sent last.
        """
        return self._sender.is_accepting

    def write(self, line: bytes, /) -> None:
        """
        Have *line* sent.

        Raises:
            QueueFull: If too many wait already.

            Disabled: If the environment says that nothing is to be sent.
        """
        if self._is_switched_off:
            raise Disabled("OTEL_SDK_DISABLED is true")
        backlog = self._backlog
        waiting = backlog.queued()
        if waiting >= self._size:
            raise QueueFull(f"{self._size} lines wait")
        if backlog.is_running():
            backlog.put(noted(fitted(line)))
            if waiting + 1 >= self._batch:
                backlog.hurry()
        elif not backlog.put_at_end(noted(line)):
            self._send_at_once(noted(line))

    def _send_some(self, waiting: deque[LogRecord]) -> None:
        """
        Send the first that are *waiting*, and have them wait no longer.
        """
        lines = _of_one_request(waiting, self._batch)
        loss = self._sender.send(lines)

        def done() -> None:
            for _ in lines:
                waiting.popleft()

        self._outlet.settle(done, loss.error, loss.lines)

    def _send_at_once(self, record: LogRecord) -> None:
        """
        Send *record* at the end of the process, when there are no threads.

        Raises:
            TooLate: If the wait for a collector that is not there was had.
        """
        if not self.is_accepting():
            raise TooLate("the collector did not take the line before")
        loss = self._sender.send([record])
        if loss.error is not None:
            raise loss.error


def _of_one_request(
    waiting: Sequence[LogRecord], most: int
) -> list[LogRecord]:
    """
    Return the first of the lines that wait, no more than a request may hold.
    """
    lines: list[LogRecord] = []
    room = _MOST_BYTES
    # Not by an iterator: meanwhile others append.
    for at in range(min(len(waiting), most)):
        room -= len(waiting[at].body)  # type: ignore[arg-type]
        if lines and room < 0:
            break
        lines.append(waiting[at])
    return lines
