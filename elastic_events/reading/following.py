"""
Files that grow: what is there, and what comes.

A path is a name, behind which files change: they are rotated, removed and cut
off while somebody writes. What is held here is open files, and names.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from .lines import CHUNK, LineReader, batches_of, records_of
from .merging import by_time
from .records import Finding, Record, Report
from .sources import GZIP, STDIN, chunks_of_file, expand


# As long as that, writers may still have the file that was rotated away.
_LINGER: Final = 5.0
# So many bytes before where reading stopped tell whether it is that file.
_ANCHOR: Final = 64

Identity: TypeAlias = "tuple[int, int]"
"""Device and inode, which no two files have at one time."""


def follow(
    paths: Iterable[str],
    report: Report,
    *,
    last: int | None = None,
    poll: float = 0.25,
) -> Iterator[Record | None]:
    """
    Yield the records of *paths*, and those that come, without an end.

    What is there comes first, by time. Then the files are looked at again and
    again, and patterns are matched again; a path need not exist yet. `None`
    is yielded whenever there is no more for now. A line is not read before
    its line feed is there.

    Standard input is read up to its end, as a part of what is there. Where
    there is nothing else, that is the end.

    Args:
        paths: Names of files, patterns, ``-`` for standard input.

        report: Who is told of what is no record.

        last: So many records of what is there, the latest. (default: all)

        poll: The seconds between two looks.
    """
    paths = list(paths)
    followed = _Followed(report)
    try:
        followed.look(paths)
        sources = followed.beginnings(last)
        if STDIN in paths:
            reader = LineReader(STDIN, report)
            chunks = chunks_of_file(STDIN)
            if last is None and not sources:
                for batch in batches_of(chunks, reader):
                    yield from batch
                    yield None
            sources.append(records_of(chunks, reader))
        there = by_time(sources)
        yield from there if last is None else deque(there, maxlen=last)
        yield None
        while any(path != STDIN for path in paths):
            time.sleep(poll)
            followed.look(paths)
            yield from followed.news()
            yield None
    finally:
        followed.close()


class _Followed:
    """
    All that is followed.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._names: dict[str, _Name] = {}

    def look(self, paths: Iterable[str]) -> None:
        """
        See which files there are by now.
        """
        for path in expand(paths):
            if path != STDIN and path not in self._names:
                self._names[path] = _Name(path, self._report)
        for name in self._names.values():
            name.look(self._open)

    def beginnings(self, last: int | None) -> list[Iterator[Record]]:
        """
        Return what is in each file, or the *last* records of each.
        """
        return [
            file.news() if last is None else file.tail(last)
            for name in self._names.values()
            for file in name.files
        ]

    def news(self) -> Iterator[Record]:
        """
        Yield what has come since, file after file.
        """
        for name in self._names.values():
            for file in name.files:
                yield from file.news()
            yield from name.leave()

    def close(self) -> None:
        """
        Close all files.
        """
        for name in self._names.values():
            for file in name.files:
                file.close()

    @property
    def _open(self) -> set[Identity]:
        return {
            file.identity
            for name in self._names.values()
            for file in name.files
        }


class _Name:
    """
    A path, the file that has this name, and those that had it just now.
    """

    def __init__(self, path: str, report: Report) -> None:
        self.files: list[_File] = []
        self._path = path
        self._report = report
        self._identity: Identity | None = None
        self._last_trouble = ""

    def look(self, known: set[Identity]) -> None:
        """
        See whether another file has the name now, and open it.

        A *known* file is followed already: it was only renamed.
        """
        try:
            found = Path(self._path).stat()
            identity: Identity | None = _identity(found)
            if identity != self._identity and identity not in known:
                file = _File(self._path, self._report, found)
                identity = file.identity
                self.files.append(file)
        except OSError as error:
            self._tell(error)
            identity = None
        else:
            self._last_trouble = ""
        self._identity = identity
        for file in self.files:
            file.leave_soon(is_current=file.identity == identity)

    def leave(self) -> Iterator[Record]:
        """
        Close the files that lost the name some time ago; yield what is left.
        """
        for file in [each for each in self.files if each.is_left]:
            yield from file.rest()
            file.close()
            self.files.remove(file)

    def _tell(self, error: OSError) -> None:
        is_missing = isinstance(error, FileNotFoundError)
        trouble = error.strerror or str(error)
        # A file that was there and is gone is rotated, as a rule.
        if trouble != self._last_trouble and not (
            is_missing and self._identity
        ):
            waiting = " (yet)" if is_missing else ""
            self._report(
                Finding(self._path, 0, trouble + waiting, not is_missing)
            )
        self._last_trouble = trouble


class _File:
    """
    A file that was opened, and how far it was read.

    What is no plain file, or is gzip, does not grow: it is read once.
    """

    def __init__(
        self, path: str, report: Report, found: os.stat_result
    ) -> None:
        self._path = path
        self._hear = report
        self._report = report
        self._descriptor: int | None = None
        self._is_read_once = not stat.S_ISREG(found.st_mode)
        if not self._is_read_once:
            self._descriptor = os.open(path, os.O_RDONLY)
            found = os.fstat(self._descriptor)
            beginning = os.pread(self._descriptor, len(GZIP), 0)
            self._is_read_once = beginning == GZIP
        self.identity = _identity(found)
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
        Leave the file after a while, unless it has its name still or again.
        """
        if is_current:
            self._leave_at = float("inf")
        elif self._leave_at == float("inf"):
            self._leave_at = time.monotonic() + _LINGER

    def news(self) -> Iterator[Record]:
        """
        Yield what was written since.
        """
        if self._is_read_once:
            yield from self._once()
            return
        if self._is_cut():
            yield from self._reader.finish()
            self._start(0, 0)
        while chunk := self._next_chunk():
            yield from self._reader.feed(chunk)

    def tail(self, last: int) -> Iterator[Record]:
        """
        Yield the *last* records of what is there.
        """
        if self._is_read_once or self._descriptor is None:
            yield from deque(self.news(), maxlen=last)
            return
        lines = last
        records: deque[Record] = deque()
        findings: list[Finding] = []
        is_enough = False
        while not is_enough:
            findings.clear()
            self._hear = findings.append
            start = _beginning_of_last(self._descriptor, lines)
            self._start(start, _lines_before(self._descriptor, start))
            records = deque(self.news(), maxlen=last)
            # There may be lines among them that hold no record.
            is_enough = not start or len(records) >= last
            lines = 4 * lines + 16
        self._hear = self._report
        for finding in findings:
            self._report(finding)
        yield from records

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
        self._anchor = b""
        self._reader = LineReader(self._path, self._told, number=number)

    def _told(self, finding: Finding) -> None:
        self._hear(finding)

    def _once(self) -> Iterator[Record]:
        if not self._is_read:
            self._is_read = True
            yield from records_of(chunks_of_file(self._path), self._reader)

    def _is_cut(self) -> bool:
        """
        Tell whether it is shorter than what was read, or another text.
        """
        length = len(self._anchor)
        anchor = self._bytes_at(self._offset - length, length)
        return anchor is not None and anchor != self._anchor

    def _next_chunk(self) -> bytes:
        chunk = self._bytes_at(self._offset, CHUNK) or b""
        if chunk:
            self._offset += len(chunk)
            self._anchor = (self._anchor + chunk[-_ANCHOR:])[-_ANCHOR:]
            if self._leave_at != float("inf"):
                self._leave_at = time.monotonic() + _LINGER
        return chunk

    def _bytes_at(self, offset: int, length: int) -> bytes | None:
        """
        Return bytes of the file; `None`, and tell of it, if that fails.
        """
        if self._descriptor is None:
            return None
        try:
            found = os.pread(self._descriptor, length, offset)
        except OSError as error:
            trouble = error.strerror or str(error)
            if trouble != self._last_trouble:
                self._reader.tell(trouble, is_unreadable=True)
            self._last_trouble = trouble
            return None
        self._last_trouble = ""
        return found


def _beginning_of_last(descriptor: int, lines: int) -> int:
    """
    Return where the last *lines* whole lines of a file begin.
    """
    # The line feed before them is looked for.
    wanted = lines + 1
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - CHUNK)
        block = os.pread(descriptor, end - start, start)
        found = block.count(b"\n")
        if found >= wanted:
            place = len(block)
            for _ in range(wanted):
                place = block.rfind(b"\n", 0, place)
            return start + place + 1
        wanted -= found
        end = start
    return 0


def _lines_before(descriptor: int, end: int) -> int:
    lines = offset = 0
    while offset < end:
        size = min(CHUNK, end - offset)
        block = os.pread(descriptor, size, offset)
        if not block:
            break
        lines += block.count(b"\n")
        offset += len(block)
    return lines


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
