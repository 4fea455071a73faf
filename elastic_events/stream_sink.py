"""
A standard stream: written to without waiting for whoever reads it.
"""

from __future__ import annotations

import errno
import io
import os
import select
import socket
import stat
import sys
from time import monotonic
from typing import Any, Final, NamedTuple


_LONGEST_WAIT: Final = 1.0
# How much of the time may be spent on waiting for a reader that is slow.
_SHARE_OF_TIME: Final = 0.05


class _Channel(NamedTuple):
    """
    How to write to a descriptor without waiting.

    Args:
        descriptor: Of the stream.

        identity: Device, inode and kind, to know when it is another's.

        own: A descriptor for the same pipe or terminal that never waits.
    """

    descriptor: int
    identity: tuple[int, int, int]
    own: int

    def write(self, data: memoryview) -> int:
        """
        Write what can be written at once.

        Raises:
            BlockingIOError: If nothing can.
        """
        if stat.S_ISSOCK(self.identity[2]):
            return _send(self.descriptor, data)
        if self.own >= 0:
            return os.write(self.own, data)
        if stat.S_ISREG(self.identity[2]):
            return os.write(self.descriptor, data)
        # A write of this size does not wait where there is room at all.
        return os.write(self.descriptor, data[: select.PIPE_BUF])

    def is_ready(self, seconds: float) -> bool:
        """
        Wait until something can be written, at most for so long.

        Raises:
            BrokenPipeError: If nobody will read it.
        """
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        # Seen before writing, it does no harm where SIGPIPE kills.
        ready = poll.poll(seconds * 1000)
        if ready and ready[0][1] & (select.POLLERR | select.POLLNVAL):
            raise BrokenPipeError(errno.EPIPE, "nobody reads it")
        return bool(ready)


_NO_CHANNEL: Final = _Channel(-1, (-1, -1, -1), -1)


class StreamSink:
    """
    Write each line to a standard stream, as it is at that moment.

    A reader that stalls costs one wait of at most a second, after which lines
    are lost until it reads again. The flags of the stream's descriptor, which
    other processes share, are left as they are.

    Args:
        name: ``"stderr"`` or ``"stdout"``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._channel = _NO_CHANNEL
        self._patience = _LONGEST_WAIT
        self._last_wait = 0.0
        self._is_stalled = False
        self._torn = False

    def write(self, line: bytes, /) -> None:
        """
        Write *line*.

        Raises:
            OSError: If there is no such stream, it cannot be written, or its
                reader does not keep up.

            ValueError: If it was closed.
        """
        stream = getattr(sys, self._name)
        if stream is None:
            raise OSError(errno.EBADF, f"sys.{self._name} is None")
        channel = self._channel_of(stream)
        if channel is None:
            _write_text(stream, line)
            return
        if not channel.is_ready(0):
            self._wait(channel)
        # What was printed before comes before.
        stream.flush()
        self._write_all(channel, line)

    def after_fork(self) -> None:
        """
        Do nothing: the stream is looked up at every line.
        """

    def _write_all(self, channel: _Channel, line: bytes) -> None:
        rest = memoryview(b"\n" + line if self._torn else line)
        self._torn = True
        while rest:
            try:
                written = channel.write(rest)
            except BlockingIOError:
                self._wait(channel)
                continue
            if not written:
                raise OSError(errno.EIO, "nothing was written")
            rest = rest[written:]
        self._torn = self._is_stalled = False

    def _wait(self, channel: _Channel) -> None:
        """
        Wait for the reader, as long as there is patience left.

        Raises:
            BlockingIOError: If it did not come.
        """
        begin = monotonic()
        regained = (begin - self._last_wait) * _SHARE_OF_TIME
        patience = min(self._patience + regained, _LONGEST_WAIT)
        if not self._is_stalled and channel.is_ready(patience):
            self._is_stalled = False
        else:
            self._is_stalled = True
        self._last_wait = monotonic()
        self._patience = max(0.0, patience - (self._last_wait - begin))
        if self._is_stalled:
            raise BlockingIOError(errno.EAGAIN, "its reader does not read")

    def _channel_of(self, stream: Any) -> _Channel | None:
        """
        Return how to write to *stream*, `None` for by its own methods.
        """
        # Anything else may do more than write, e.g. keep a progress bar.
        if not isinstance(stream, io.TextIOWrapper):
            return None
        try:
            descriptor = stream.fileno()
        except OSError:
            return None
        status = os.fstat(descriptor)
        identity = (status.st_dev, status.st_ino, status.st_mode)
        channel = self._channel
        if (channel.descriptor, channel.identity) != (descriptor, identity):
            self._channel = _Channel(
                descriptor, identity, _opened_again(descriptor, identity[2])
            )
            if channel.own >= 0:
                os.close(channel.own)
        return self._channel


def _opened_again(descriptor: int, mode: int) -> int:
    """
    Return a descriptor of our own for the same pipe or terminal, or -1.

    Not for a file: it would begin at the file's start.
    """
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        return -1
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        return os.open(f"/proc/self/fd/{descriptor}", flags)
    except OSError:
        return -1


def _send(descriptor: int, data: memoryview) -> int:
    borrowed = socket.socket(fileno=os.dup(descriptor))
    with borrowed:
        return borrowed.send(data, socket.MSG_DONTWAIT)


def _write_text(stream: Any, line: bytes) -> None:
    stream.write(line.decode())
    stream.flush()
