"""
A file that grows, by whatever name it has meanwhile.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from .lines import CHUNK, LineReader, records_of, tell_nobody
from .records import Record, Report
from .sources import GZIP, chunks_of_file, unpacked


# As long as that, writers may still have a file that was rotated away.
_LINGER: Final = 5.0
# So many bytes before where reading stopped tell whether it is that file.
_ANCHOR: Final = 64

Identity: TypeAlias = "tuple[int, int]"
"""Device and inode, which no two files have at one time."""


def identity_of(found: os.stat_result) -> Identity:
    """
    Return what tells a file from all others.
    """
    return found.st_dev, found.st_ino


class GrowingFile:
    """
    A file that was opened, and how far it was read.

    What is no plain file, or is gzip, does not grow: it is read once.

    Args:
        path: The name that it has now.

        report: Who is told of what is no record.

        found: What the system says of it.

        max_line: The most bytes of a line.

    Raises:
        OSError: If it cannot be opened.
    """

    def __init__(
        self, path: str, report: Report, found: os.stat_result, max_line: int
    ) -> None:
        self._path = path
        self._report = report
        self._max_line = max_line
        self._descriptor: int | None = None
        self._is_read_once = not stat.S_ISREG(found.st_mode)
        if not self._is_read_once:
            self._descriptor = os.open(path, os.O_RDONLY)
            found = os.fstat(self._descriptor)
        self.identity = identity_of(found)
        self._is_read = False
        self._leave_at = float("inf")
        self._last_trouble = ""
        self._start(0, 0)

    @property
    def is_left(self) -> bool:
        """
        Whether it lost its name so long ago that nobody writes to it.
        """
        return time.monotonic() >= self._leave_at

    def leave_soon(self, *, is_current: bool) -> None:
        """
        Leave the file after a while, unless it has a name still or again.
        """
        if is_current:
            self._leave_at = float("inf")
        elif self._leave_at == float("inf"):
            self._leave_at = time.monotonic() + _LINGER

    def news(self) -> Iterator[Record]:
        """
        Yield what was written since.
        """
        if self._is_cut():
            yield from self._reader.finish()
            self._start(0, 0)
        if self._is_for_once():
            yield from self._once()
            return
        for chunk in self._chunks():
            yield from self._reader.feed(chunk)

    def tail(self, last: int) -> Iterator[Record]:
        """
        Yield the *last* records of what is there.
        """
        if not self._is_for_once():
            start = self._beginning_of(last)
            self._start(start, self._lines_before(start))
        yield from deque(self.news(), maxlen=last)

    def rest(self) -> Iterator[Record]:
        """
        Yield what is on a last line that will not get its line feed.
        """
        return self._reader.finish()

    def close(self) -> None:
        """
        Close the file.
        """
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _start(self, offset: int, number: int) -> None:
        self._offset = offset
        length = min(offset, _ANCHOR)
        self._anchor = self._bytes_at(offset - length, length)
        self._reader = LineReader(
            self._path, self._report, max_line=self._max_line, number=number
        )

    def _is_for_once(self) -> bool:
        # A file of gzip may be empty at first.
        if not self._is_read_once and not self._offset:
            self._is_read_once = self._bytes_at(0, len(GZIP)) == GZIP
        return self._is_read_once

    def _once(self) -> Iterator[Record]:
        if self._is_read:
            return
        self._is_read = True
        if self._descriptor is None:
            chunks = chunks_of_file(self._path)
        else:
            # The name may be another file's by now.
            chunks = unpacked(self._chunks(), self._path)
        yield from records_of(chunks, self._reader)

    def _is_cut(self) -> bool:
        """
        Tell whether it is shorter than what was read, or another text.
        """
        length = len(self._anchor)
        anchor = self._bytes_at(self._offset - length, length)
        return anchor != self._anchor and not self._last_trouble

    def _chunks(self) -> Iterator[bytes]:
        while chunk := self._bytes_at(self._offset, CHUNK):
            self._offset += len(chunk)
            self._anchor = (self._anchor + chunk[-_ANCHOR:])[-_ANCHOR:]
            if self._leave_at != float("inf"):
                self._leave_at = time.monotonic() + _LINGER
            yield chunk

    def _bytes_at(self, offset: int, length: int) -> bytes:
        """
        Return bytes of the file; none, and tell of it, if that fails.
        """
        if self._descriptor is None:
            return b""
        try:
            found = os.pread(self._descriptor, length, offset)
        except OSError as error:
            trouble = error.strerror or str(error)
            if trouble != self._last_trouble:
                self._reader.tell(trouble, is_unreadable=True)
            self._last_trouble = trouble
            return b""
        self._last_trouble = ""
        return found

    def _beginning_of(self, last: int) -> int:
        """
        Return where lines begin that hold the *last* records, or more.
        """
        lines = last
        start = self._beginning_of_lines(lines)
        # There may be lines among them that hold no record.
        while start and self._records_from(start) < last:
            lines = 4 * lines + 16
            start = self._beginning_of_lines(lines)
        return start

    def _beginning_of_lines(self, lines: int) -> int:
        """
        Return where the last so many whole lines begin.
        """
        # The line feed before them is looked for.
        wanted = lines + 1
        end = self._size()
        while end > 0:
            start = max(0, end - CHUNK)
            block = self._bytes_at(start, end - start)
            found = block.count(b"\n")
            if found >= wanted:
                place = len(block)
                for _ in range(wanted):
                    place = block.rfind(b"\n", 0, place)
                return start + place + 1
            wanted -= found
            end = start
        return 0

    def _records_from(self, start: int) -> int:
        reader = LineReader(
            self._path, tell_nobody, max_line=self._max_line, number=1
        )
        blocks = self._blocks(start, self._size())
        return sum(1 for block in blocks for _ in reader.feed(block))

    def _lines_before(self, end: int) -> int:
        return sum(block.count(b"\n") for block in self._blocks(0, end))

    def _blocks(self, start: int, end: int) -> Iterator[bytes]:
        while block := self._bytes_at(start, min(CHUNK, end - start)):
            yield block
            start += len(block)

    def _size(self) -> int:
        if self._descriptor is None:
            return 0
        return os.fstat(self._descriptor).st_size
