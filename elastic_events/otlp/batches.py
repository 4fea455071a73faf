"""
What waits to be sent to a collector, in batches.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from opentelemetry._logs import LogRecord

from ..backlog import Backlog
from ..complaints import complain
from ..values import error_text
from .processor import Processor
from .settings import Batching


Send: TypeAlias = (
    "Callable[[Sequence[LogRecord], Callable[[int], object]], object]"
)
"""
Sends records in their order, and tells of the next how many it is known what
became of them.
"""


class OutOfStep(Exception):  # noqa: N818
    """
    The SDK's processor did not send what it was handed, or not in order.
    """


class Batches(Backlog[LogRecord]):
    """
    Noted lines that wait until they are sent.

    Who records calls nothing of the SDK: its processor takes a lock that a
    signal handler would wait for in vain. So the backlog's thread hands the
    lines over, in their order. They wait here until the batch that they are in
    was sent: if the processor fails, they are sent without it.

    Args:
        name: Returns what waits, in words.

        send: How the records of a batch are sent.

        batching: When a batch is made.
    """

    def __init__(
        self, name: Callable[[], str], send: Send, batching: Batching
    ) -> None:
        self._send = send
        self._batching = batching
        self._processor: Processor | None = None
        self._can_have_processor = True
        # Who records never waits for a collector.
        super().__init__(name, self._send_first, stands_in=False)

    def after_fork(self) -> None:
        """
        Begin with nothing, as the SDK does with what it was handed.
        """
        # Of what waits the first so many are on their way.
        self._handed = 0
        # For a signal handler that comes at the end of the process, too.
        self._counting = threading.RLock()
        self._hurries: deque[None] = deque()
        if self._processor is not None:
            self._processor.after_fork()
        super().after_fork()

    def hurry(self) -> None:
        """
        Have what waits sent without waiting for a batch to be full.
        """
        if not self._hurries:
            self._hurries.append(None)
        super().hurry()

    def write_all(self, waiting: deque[LogRecord]) -> None:
        """
        Hand over all that is *waiting*; send it if that is not to be had.
        """
        # Before anything else: what was put in before a hurry is hurried.
        is_hurried = self._take_hurries()
        processor = self._usable_processor()
        if processor is None:
            super().write_all(waiting)
            return
        try:
            while (record := self._next(waiting)) is not None:
                processor.hand_over(record)
            if is_hurried:
                processor.flush()
                self._check_all_sent()
        except Exception as error:
            processor.give_up(error)
            self._handed = 0
            super().write_all(waiting)

    def _take_hurries(self) -> bool:
        """
        Tell whether there was a hurry since the last call.
        """
        hurries = len(self._hurries)
        for _ in range(hurries):
            self._hurries.popleft()
        return hurries > 0

    def _usable_processor(self) -> Processor | None:
        """
        Return the processor, if records can be handed to it.
        """
        if self._processor is None and self._can_have_processor:
            try:
                self._processor = Processor(self._send_batch, self._batching)
            except RuntimeError:
                # There is no thread for it, perhaps for the moment only.
                return None
            except Exception as error:
                self._can_have_processor = False
                complain(
                    "OpenTelemetry's batch processor cannot be had:"
                    f" {error_text(error)}: lines are sent without it"
                )
        if self._processor is None or not self._processor.is_usable():
            return None
        return self._processor

    def _next(self, waiting: deque[LogRecord]) -> LogRecord | None:
        """
        Return the first that is not on its way, and count it as such.
        """
        with self._counting:
            if self._handed >= len(waiting):
                return None
            self._handed += 1
            return waiting[self._handed - 1]

    def _check_all_sent(self) -> None:
        if self._handed:
            raise OutOfStep(f"{self._handed} lines were not sent")

    def _send_batch(self, batch: Sequence[LogRecord]) -> None:
        """
        Send *batch*, for the processor: the first that are on their way.

        Raises:
            OutOfStep: If they are not.
        """
        waiting = self._waiting
        # The record is a copy.
        if batch[0].body is not waiting[0].body:
            raise OutOfStep("the lines before were not sent")
        self._send(batch, partial(self._forget, waiting))

    def _send_first(self, waiting: deque[LogRecord]) -> None:
        """
        Send the first of those *waiting*, without the processor.
        """
        # Not by an iterator: meanwhile others append.
        count = min(len(waiting), self._batching.batch_size)
        batch = [waiting[at] for at in range(count)]
        self._handed = count
        self._send(batch, partial(self._forget, waiting))

    def _forget(self, waiting: deque[LogRecord], count: int) -> None:
        """
        Have the first of those *waiting* wait no longer.
        """
        with self._counting:
            for _ in range(count):
                waiting.popleft()
            # In a process that is forked while sending, it is the parent's.
            if waiting is self._waiting:
                self._handed -= count
