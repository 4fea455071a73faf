"""
Where finished bytes go.

A sink takes whole lines and never looks inside. What it cannot write it
raises; `destinations` counts it. No sink holds a lock or a buffer of its own,
so that nothing can deadlock in a forked process or a signal handler, and a
line that was written survives the death of the process.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import resource
import sys
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol


_HIGH_DESCRIPTOR: Final = 512
_OPEN_FLAGS: Final = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | os.O_CLOEXEC
    | os.O_NOCTTY
    # A FIFO that nobody reads is an error instead of a wait.
    | os.O_NONBLOCK
)


class Sink(Protocol):
    """
    What a destination needs of a sink.
    """

    def write(self, line: bytes, /) -> None:
        """
        Write one whole *line*, or raise.
        """

    def after_fork(self) -> None:
        """
        Be a new process's.
        """


class FileSink:
    """
    Append each line to a file with one `os.write`.

    The file is opened at the first line. It is opened anew when it was
    renamed or removed, or when the descriptor is no longer this file's.

    Args:
        path: Returns the file's path in this process.

        mode: The permissions of a new file, before the umask.

        check:
            How often, in seconds, the descriptor and the path are looked at;
            zero for before every line.
    """

    def __init__(
        self, path: Callable[[], str], *, mode: int = 0o666, check: float = 1.0
    ) -> None:
        self._path = path
        self._mode = mode
        self._check = check
        self._descriptor = -1
        self._identity = (0, 0)
        self._opened_path = ""
        self._next_check = 0.0
        self._torn = False

    def write(self, line: bytes, /) -> None:
        """
        Append *line*.

        Raises:
            OSError: If it was not written whole. The next line then begins
                on a line of its own.
        """
        if monotonic() >= self._next_check:
            self._look()
        whole = b"\n" + line if self._torn else line
        try:
            written = self._append(whole)
        except OSError:
            self._torn = True
            raise
        self._torn = written != len(whole)
        if self._torn:
            raise OSError(
                errno.EIO, f"{written} of {len(whole)} bytes written"
            )

    def after_fork(self) -> None:
        """
        Open the child's own file, if its path is another.
        """
        if self._descriptor >= 0 and self._path() != self._opened_path:
            os.close(self._descriptor)
            self._descriptor = -1
            self._next_check = 0.0
            self._torn = False

    def _append(self, whole: bytes) -> int:
        try:
            return os.write(self._descriptor, whole)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
        # Someone closed the descriptor.
        self._open()
        return os.write(self._descriptor, whole)

    def _look(self) -> None:
        """
        Open the file anew unless path and descriptor are still one file.
        """
        if self._descriptor < 0 or not (
            _identity_of(self._descriptor)
            == self._identity
            == _identity_of(self._opened_path)
        ):
            self._open()
        self._next_check = monotonic() + self._check

    def _open(self) -> None:
        path = self._path()
        try:
            descriptor = os.open(path, _OPEN_FLAGS, self._mode)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, _OPEN_FLAGS, self._mode)
        if _identity_of(self._descriptor) == self._identity:
            # Another thread may be about to write to this number: it must
            # never stand for nothing, or for another's file.
            os.dup2(descriptor, self._descriptor, inheritable=False)
            os.close(descriptor)
        else:
            self._descriptor = _moved_up(descriptor)
        self._opened_path = path
        self._identity = _identity_of(self._descriptor)
        self._next_check = monotonic() + self._check


class StreamSink:
    """
    Write each line to a standard stream, as it is at that moment.

    Args:
        name: ``"stderr"`` or ``"stdout"``.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, line: bytes, /) -> None:
        """
        Write *line* and flush.

        Raises:
            OSError: If there is no such stream, or it cannot be written.

            ValueError: If it was closed.
        """
        stream = getattr(sys, self._name)
        if stream is None:
            raise OSError(errno.EBADF, f"sys.{self._name} is None")
        buffer = getattr(stream, "buffer", None)
        if buffer is None:
            stream.write(line.decode())
        else:
            # What was printed before comes before.
            stream.flush()
            buffer.write(line)
        stream.flush()

    def after_fork(self) -> None:
        """
        Do nothing: the stream is looked up at every line.
        """


class CallableSink:
    """
    Hand each line to a function.

    Args:
        function: Takes one whole line, its line feed included.
    """

    def __init__(self, function: Callable[[bytes], object]) -> None:
        self._function = function

    def write(self, line: bytes, /) -> None:
        """
        Call the function with *line*; raise what it raises.
        """
        self._function(line)

    def after_fork(self) -> None:
        """
        Do nothing: the function is the caller's.
        """


class HandlerSink:
    """
    Hand each line to a `logging.Handler`, as the message of a record.
    """

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler

    def write(self, line: bytes, /) -> None:
        """
        Have the handler handle *line*, without its line feed.
        """
        self._handler.handle(
            logging.makeLogRecord(
                {
                    "name": "elastic_events",
                    "levelno": logging.INFO,
                    "levelname": "INFO",
                    "msg": line[:-1].decode(),
                }
            )
        )

    def after_fork(self) -> None:
        """
        Do nothing: `logging` looks after its handlers.
        """


def _identity_of(file: int | str) -> tuple[int, int]:
    """
    Return device and inode of a descriptor or path, zeros if there is none.
    """
    try:
        status = os.stat(file)
    except OSError:
        return (-1, -1)
    return (status.st_dev, status.st_ino)


def _moved_up(descriptor: int) -> int:
    """
    Move *descriptor* to a number that careless code is unlikely to close.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = limit - 16 if limit > 0 else _HIGH_DESCRIPTOR
    try:
        moved = fcntl.fcntl(
            descriptor,
            fcntl.F_DUPFD_CLOEXEC,
            max(0, min(_HIGH_DESCRIPTOR, highest)),
        )
    except OSError:
        return descriptor
    os.close(descriptor)
    return moved
