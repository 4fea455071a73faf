"""
The outlet to a collector, and the sink in which its lines wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from opentelemetry._logs import LogRecord

from ..backlog import QueueFull, fitted
from ..outlets import Outlet
from . import settings
from .batches import Batches
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
    Have lines sent in batches, by the SDK's processor.

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
        self._batching = settings.batching(size)
        self._is_switched_off = settings.is_switched_off()
        settings.check_transport()
        self._sender = Sender(endpoint, timeout or settings.timeout())

    def open(self, outlet: Outlet) -> Callable[[], int]:
        """
        Have *outlet* told what became of the lines.

        Returns:
            What tells how many wait, or are being sent.
        """
        self._outlet = outlet
        self._batches = Batches(
            lambda: outlet.name, self._send, self._batching
        )
        return self._batches.queued

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
        batches = self._batches
        size = self._batching.queue_size
        if batches.queued() >= size:
            # Whoever should send them may be gone.
            batches.hurry()
            raise QueueFull(f"{size} lines wait")
        if batches.is_running():
            batches.put(noted(fitted(line)))
        elif not batches.put_at_end(noted(line)):
            self._send_at_once(noted(line))

    def _send(
        self, lines: Sequence[LogRecord], forget: Callable[[int], object]
    ) -> None:
        """
        Send *lines*, and have the outlet count what became of them.

        Args:
            lines: Noted ones, in their order.

            forget: Called when it is known of the next so many.
        """
        for each in _requests(lines):
            loss = self._sender.send(each)
            done = partial(forget, len(each))
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


def _requests(lines: Sequence[LogRecord]) -> Iterator[list[LogRecord]]:
    """
    Yield *lines*, as many at a time as a request may hold.
    """
    some: list[LogRecord] = []
    room = _MOST_BYTES
    for each in lines:
        size = len(each.body)  # type: ignore[arg-type]
        if some and size > room:
            yield some
            some, room = [], _MOST_BYTES
        some.append(each)
        room -= size
    if some:
        yield some
