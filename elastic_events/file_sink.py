"""
The end of a file: one whole line, one write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import stat
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final, NamedTuple, TypeAlias

from .encoding import UrgentLine


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


Identity: TypeAlias = "tuple[int, int, int]"
"""Device, inode, and type, which may be a FIFO."""

_UNKNOWN: Final = (0, 0, 0)


class _File(NamedTuple):
    """
    An open file: its descriptor, identity, and path.
    """

    descriptor: int
    identity: Identity
    path: str

    def is_current(self) -> bool:
        """
        Tell whether descriptor and path are still one file.
        """
        return (
            _identity_of(self.descriptor)
            == self.identity
            == _identity_of(self.path)
        )

    def is_ours(self) -> bool:
        """
        Tell whether the descriptor is still this file's, and nobody else's.
        """
        try:
            status = os.fstat(self.descriptor)
        except OSError as error:
            # A network's file that went stale is ours; nothing is nobody's.
            return error.errno != errno.EBADF
        return _identity(status) == self.identity

    def is_linked(self) -> bool:
        """
        Tell whether what is written to the descriptor can be found.
        """
        try:
            return self.is_ours() and os.fstat(self.descriptor).st_nlink > 0
        except OSError:
            return False


def _identity_of(file: int | str) -> Identity:
    """
    Return the identity of a descriptor or path, if it can be told.
    """
    try:
        return _identity(os.stat(file))
    except OSError:
        return _UNKNOWN


def _identity(status: os.stat_result) -> Identity:
    return (status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode))


_NO_FILE: Final = _File(-1, (-1, -1, 0), "")


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
        self._use(_NO_FILE)
        self._opening = threading.Lock()
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
        torn = self._torn
        if torn:
            line = _on_its_own(line)
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            if error.errno != errno.EBADF:
                self._torn = True
                raise
            written = self._write_without_descriptor(line)
        if torn or written != len(line):
            self._tell_torn(len(line), written)
        if type(line) is UrgentLine:
            _sync(self._descriptor)

    def _use(self, file: _File) -> None:
        self._file = file
        self._descriptor = file.descriptor

    def _tell_torn(self, length: int, written: int) -> None:
        """
        Remember whether the line of this *length* was written whole.

        Raises:
            OSError: If it was not.
        """
        self._torn = written < length
        # Where only the line feed is missing, the next line brings it.
        if written < length - 1:
            raise OSError(errno.EIO, f"{written} of {length} bytes written")

    def after_fork(self) -> None:
        """
        Open the child's own file, if its path is another.
        """
        self._opening = threading.Lock()
        file = self._file
        if file is not _NO_FILE and self._path() != file.path:
            self._use(_NO_FILE)
            self._next_check = 0.0
            self._torn = False
            if file.is_ours():
                _close(file.descriptor)

    def _look(self) -> None:
        """
        Open the file anew unless path and descriptor are still one file.
        """
        file = self._file
        self._next_check = monotonic() + self._check
        if not file.is_current():
            try:
                self._open_anew()
            except OSError:
                # As long as lines reach the old file, they are not lost.
                if not file.is_linked():
                    self._next_check = 0.0
                    raise
        if stat.S_ISFIFO(self._file.identity[2]):
            # Its reader may leave at any time.
            self._next_check = 0.0
            _refuse_unread(self._file.descriptor)

    def _write_without_descriptor(self, whole: bytes) -> int:
        """
        Write a line after someone closed the file, or while it is opened.
        """
        if self._open_anew():
            return os.write(self._file.descriptor, whole)
        # Another thread is at it. Nobody waits: this line goes its own way.
        descriptor = self._open()[0]
        try:
            return os.write(descriptor, whole)
        finally:
            _close(descriptor)

    def _open_anew(self) -> bool:
        """
        Open the file, unless another thread is doing so; tell whether.
        """
        if not self._opening.acquire(blocking=False):
            return False
        try:
            descriptor, path = self._open()
            identity = _identity_of(descriptor)
            if identity == _UNKNOWN:
                _close(descriptor)
                raise OSError(errno.EBADF, "it was closed at once", path)
            old = self._file
            # Asked before the number can be given to the new file.
            was_ours = old.is_ours()
            if was_ours and _replace(old.descriptor, descriptor):
                descriptor, was_ours = old.descriptor, False
            else:
                descriptor = _moved_up(descriptor)
            self._use(_File(descriptor, identity, path))
            self._torn = _ends_within_a_line(path)
            if was_ours:
                _close(old.descriptor)
        finally:
            self._opening.release()
        return True

    def _open(self) -> tuple[int, str]:
        path = self._path()
        try:
            return os.open(path, _OPEN_FLAGS, self._mode), path
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, _OPEN_FLAGS, self._mode), path


def _on_its_own(line: bytes) -> bytes:
    r"""
    Return *line* with a ``\n`` before it.
    """
    return type(line)(b"\n" + line)


def _ends_within_a_line(path: str) -> bool:
    """
    Tell whether the file was left by a writer that was killed in a write.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            # A writer that is alive will soon have ended its line; where it
            # has not, an empty line comes in between, and does no harm.
            for _ in range(5):
                file.seek(-1, os.SEEK_END)
                if file.read(1) == b"\n":
                    return False
                sleep(0.002)
    except OSError:
        # Empty, or not ours to read.
        return False
    return True


def _refuse_unread(fifo: int) -> None:
    """
    Raise an error if nobody reads *fifo* any more.

    To find out by writing to it kills where SIGPIPE does.
    """
    poll = select.poll()
    poll.register(fifo, select.POLLOUT)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, "nobody reads it")


def _sync(descriptor: int) -> None:
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        # A FIFO or a device has nothing to be synced.
        if error.errno != errno.EINVAL:
            raise


def _replace(old: int, new: int) -> bool:
    """
    Let the number *old* stand for the file of *new*, at once.

    Another thread may be about to write to that number: it must never stand
    for nothing, or for somebody else's file.
    """
    try:
        os.dup2(new, old, inheritable=False)
    except OSError:
        # A limit that was lowered since forbids the number.
        return False
    _close(new)
    return True


def _close(descriptor: int) -> None:
    # Whatever it says, the number is free, and no line depends on it.
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _moved_up(descriptor: int) -> int:
    """
    Move *descriptor* to a number that careless code is unlikely to close.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = limit - 16 if limit > 0 else _HIGH_DESCRIPTOR
    try:
        moved: int = fcntl.fcntl(
            descriptor,
            fcntl.F_DUPFD_CLOEXEC,
            max(0, min(_HIGH_DESCRIPTOR, highest)),
        )
    except OSError:
        return descriptor
    _close(descriptor)
    return moved
