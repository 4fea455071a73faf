"""
How to write to the descriptor of a standard stream without waiting.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import select
import socket
import stat
import sys
import termios
from typing import Any, NamedTuple


class Channel(NamedTuple):
    """
    How to write to a descriptor without waiting.

    Args:
        descriptor: Of the stream.

        mode: Tells what it is: a pipe, a socket, a file.

        own: A descriptor for the same pipe or terminal that never waits.
    """

    descriptor: int
    mode: int
    own: int

    def write(self, data: memoryview) -> int:
        """
        Write what can be written at once.

        Raises:
            BlockingIOError: If nothing can.
        """
        if self.own >= 0:
            return os.write(self.own, data)
        if stat.S_ISREG(self.mode):
            return os.write(self.descriptor, data)
        if stat.S_ISSOCK(self.mode) and _can_borrow():
            return _send(self.descriptor, data)
        if not self.is_ready(0):
            raise BlockingIOError(errno.EAGAIN, "it has no room")
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
        dead = select.POLLERR | select.POLLHUP | select.POLLNVAL
        ready = poll.poll(seconds * 1000)
        if ready and ready[0][1] & dead:
            raise BrokenPipeError(errno.EPIPE, "nobody reads it")
        return bool(ready)

    def has_room_for(self, count: int) -> bool:
        """
        Tell whether *count* bytes can be written by anyone without waiting.
        """
        try:
            if stat.S_ISFIFO(self.mode):
                size = fcntl.fcntl(self.descriptor, fcntl.F_GETPIPE_SZ)
                unread = _ask(self.descriptor, termios.FIONREAD)
            elif stat.S_ISSOCK(self.mode):
                size = _send_buffer_of(self.descriptor)
                unread = _ask(self.descriptor, termios.TIOCOUTQ)
            else:
                return True
        except OSError:
            return False
        # Small pieces may take up twice the room of their bytes.
        return unread + count <= size // 2

    def close(self) -> None:
        """
        Close what is our own.
        """
        if self.own >= 0:
            # Others may have closed it; the line is written nevertheless.
            with contextlib.suppress(OSError):
                os.close(self.own)


def channel_of(stream: Any) -> Channel | None:
    """
    Return how to write to *stream*, `None` for by its own methods.
    """
    if not _is_plain(stream):
        return None
    try:
        descriptor = stream.fileno()
    except OSError:
        return None
    mode = os.fstat(descriptor).st_mode
    # Nothing is kept for the next line: meanwhile others may close it, give
    # its number to their file, or wait for the pipe's end.
    return Channel(descriptor, mode, _opened_again(descriptor, mode))


def _is_plain(stream: Any) -> bool:
    """
    Tell whether *stream* does nothing but encode and write to a descriptor.
    """
    # Anything else may compress, or keep a progress bar.
    if type(stream) is not io.TextIOWrapper:
        return False
    raw = stream.buffer
    if type(raw) is io.BufferedWriter:
        raw = raw.raw
    return type(raw) is io.FileIO


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


def _ask(descriptor: int, request: int) -> int:
    """
    Return the number that *request* asks of a descriptor.
    """
    answer = fcntl.ioctl(descriptor, request, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


def _can_borrow() -> bool:
    # With a timeout, a socket object changes the flags that others share.
    return socket.getdefaulttimeout() is None


def _borrowed(descriptor: int) -> socket.socket:
    return socket.socket(fileno=os.dup(descriptor))


def _send(descriptor: int, data: memoryview) -> int:
    with _borrowed(descriptor) as borrowed:
        return borrowed.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _send_buffer_of(descriptor: int) -> int:
    """
    Return the size of a socket's buffer, zero if that cannot be told.
    """
    if not _can_borrow():
        return 0
    with _borrowed(descriptor) as borrowed:
        return borrowed.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
