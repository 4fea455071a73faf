"""
A standard stream: written to without waiting for whoever reads it.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Final

from .channels import Channel, channel_of


_LONGEST_WAIT: Final = 1.0
# How much of the time may be spent on waiting for a reader that is slow.
_SHARE_OF_TIME: Final = 0.05
# Between two looks whether another thread is done.
_PAUSE: Final = 0.0005
_MOST_PUT_OFF: Final = 100
# What a text stream keeps before it hands it to its buffer.
_TEXT_BUFFER: Final = 8192


class _Turn:
    """
    Whose turn it is to write to a stream, so that no line tears another.
    """

    def __init__(self) -> None:
        # Reentrant, to tell at once its own thread from all others.
        self.claim = threading.RLock()
        self.is_writing = False
        self.is_torn = False
        self._put_off: deque[bytes] = deque()
        self._room = _MOST_PUT_OFF

    def put_off(self, line: bytes) -> None:
        """
        Leave *line* to whoever is writing, who writes it next.

        Raises:
            BlockingIOError: If that one fails, or has enough to do.
        """
        if not self._room:
            raise BlockingIOError(errno.EAGAIN, "too many lines at once")
        self._room -= 1
        self._put_off.append(line)

    def has_put_off(self) -> bool:
        """
        Tell whether lines were left that are not written yet.
        """
        return bool(self._put_off)

    def write_lines(
        self, line: bytes, write_line: Callable[[bytes], None]
    ) -> None:
        """
        Write *line*, before it what is still put off, after it what is now.
        """
        self.is_writing = True
        try:
            self._write_put_off(write_line)
            write_line(line)
            # This line is written, whatever becomes of the others.
            with contextlib.suppress(Exception):
                self._write_put_off(write_line)
                self._room = _MOST_PUT_OFF
        except Exception:
            self._room = 0
            raise
        finally:
            self.is_writing = False

    def _write_put_off(self, write_line: Callable[[bytes], None]) -> None:
        while self._put_off:
            # A stream that cannot encode a line never will.
            with contextlib.suppress(UnicodeError):
                write_line(self._put_off[0])
            # Not before: should that fail, it is still there.
            self._put_off.popleft()


_turns: Final = {"stderr": _Turn(), "stdout": _Turn()}


def _renew_turns() -> None:
    # Threads that were writing are the parent's, and so are their lines.
    for name in _turns:
        _turns[name] = _Turn()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turns)


class StreamSink:
    """
    Write each line to a standard stream, as it is at that moment.

    A reader that stalls costs one wait of at most a second, after which lines
    are lost until it reads again. The flags of the stream's descriptor, which
    other processes share, are left as they are.

    Args:
        name: ``"stderr"`` or ``"stdout"``.

        patience:
            The most seconds to wait; with none, a line that finds another
            thread writing is left to that one.
    """

    def __init__(self, name: str, *, patience: float = _LONGEST_WAIT) -> None:
        self._name = name
        self._longest_wait = patience
        self._patience = patience
        self._last_wait = 0.0
        self._is_stalled = False

    def write(self, line: bytes, /) -> None:
        """
        Write *line*.

        A line of a signal handler that interrupts the writing of another is
        written right after that one.

        Raises:
            OSError: If there is no such stream, it cannot be written, or its
                reader does not keep up.

            ValueError: If it was closed.
        """
        turn = _turns[self._name]
        try:
            claimed = turn.claim.acquire(blocking=False)
            if not (claimed or self._waits_for(turn)) or turn.is_writing:
                turn.put_off(line)
            else:
                self._write_to_stream(turn, line)
        finally:
            # Without a call before: an exception of a signal handler must
            # not come in between.
            try:  # noqa: SIM105
                turn.claim.release()
            except RuntimeError:
                # It was waited for in vain.
                pass

    def after_fork(self) -> None:
        """
        Do nothing: the stream is looked up at every line.
        """

    def _waits_for(self, turn: _Turn) -> bool:
        """
        Wait until other threads are done; tell whether it was waited for.

        Raises:
            BlockingIOError: If it takes too long.
        """
        deadline = monotonic() + self._longest_wait
        while monotonic() < deadline and not self._is_stalled:
            sleep(_PAUSE)
            if turn.claim.acquire(blocking=False):
                return True
        if not self._longest_wait:
            return False
        self._is_stalled = True
        raise BlockingIOError(errno.EAGAIN, "another thread is stuck in it")

    def _write_to_stream(self, turn: _Turn, line: bytes) -> None:
        stream = getattr(sys, self._name)
        if stream is None:
            raise OSError(errno.EBADF, f"sys.{self._name} is None")
        channel = channel_of(stream)
        if channel is None:
            turn.write_lines(line, lambda each: _write_text(stream, each))
        else:
            try:
                if not channel.is_ready(0):
                    self._wait(channel)
                _flush(stream, channel)
                turn.write_lines(
                    line, lambda each: self._write_all(channel, turn, each)
                )
            finally:
                channel.close()
        self._is_stalled = False

    def _write_all(self, channel: Channel, turn: _Turn, line: bytes) -> None:
        was_torn = turn.is_torn
        whole = b"\n" + line if was_torn else line
        rest = memoryview(whole)
        while rest:
            turn.is_torn = True
            try:
                written = channel.write(rest)
            except OSError as error:
                turn.is_torn = was_torn or len(rest) < len(whole)
                if not isinstance(error, BlockingIOError):
                    raise
                self._wait(channel)
                continue
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            rest = rest[written:]
        turn.is_torn = False

    def _wait(self, channel: Channel) -> None:
        """
        Wait for the reader, as long as there is patience left.

        Raises:
            BlockingIOError: If it did not come.
        """
        begin = monotonic()
        regained = (begin - self._last_wait) * _SHARE_OF_TIME
        patience = min(self._patience + regained, self._longest_wait)
        if not self._is_stalled and channel.is_ready(patience):
            self._is_stalled = False
        else:
            self._is_stalled = True
        self._last_wait = monotonic()
        self._patience = max(0.0, patience - (self._last_wait - begin))
        if self._is_stalled:
            raise BlockingIOError(errno.EAGAIN, "its reader does not read")


def _write_what_is_left() -> None:
    for name, turn in _turns.items():
        if turn.has_put_off():
            # Nobody is left to be told, should it fail.
            with contextlib.suppress(Exception):
                StreamSink(name).write(b"")


atexit.register(_write_what_is_left)


def _flush(stream: io.TextIOWrapper, channel: Channel) -> None:
    """
    Have what was printed before come before, where that cannot wait.
    """
    # The size of the object is that of its buffer, and a little more.
    if channel.has_room_for(sys.getsizeof(stream.buffer) + _TEXT_BUFFER):
        # A signal handler may have interrupted that very flushing.
        with contextlib.suppress(RuntimeError):
            stream.flush()


def _write_text(stream: Any, line: bytes) -> None:
    stream.write(line.decode())
    stream.flush()
