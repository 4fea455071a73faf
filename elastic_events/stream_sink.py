"""
A standard stream: written to without waiting for whoever reads it.
"""

from __future__ import annotations

import atexit
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
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Final, NamedTuple


_LONGEST_WAIT: Final = 1.0
# How much of the time may be spent on waiting for a reader that is slow.
_SHARE_OF_TIME: Final = 0.05
# Between two looks whether another thread is done.
_PAUSE: Final = 0.0005
_MOST_PUT_OFF: Final = 100
# What a text stream keeps before it hands it to its buffer.
_TEXT_BUFFER: Final = 8192


class _Channel(NamedTuple):
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
        channel = _channel_of(stream)
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

    def _write_all(self, channel: _Channel, turn: _Turn, line: bytes) -> None:
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

    def _wait(self, channel: _Channel) -> None:
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


def _channel_of(stream: Any) -> _Channel | None:
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
    return _Channel(descriptor, mode, _opened_again(descriptor, mode))


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


def _flush(stream: io.TextIOWrapper, channel: _Channel) -> None:
    """
    Have what was printed before come before, where that cannot wait.
    """
    # The size of the object is that of its buffer, and a little more.
    if channel.has_room_for(sys.getsizeof(stream.buffer) + _TEXT_BUFFER):
        # A signal handler may have interrupted that very flushing.
        with contextlib.suppress(RuntimeError):
            stream.flush()


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


def _write_text(stream: Any, line: bytes) -> None:
    stream.write(line.decode())
    stream.flush()
