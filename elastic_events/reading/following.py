"""
Files that grow: what is there, and what comes.

A path is a name, behind which files change: they are rotated, removed and cut
off while somebody writes. What is held here is open files, and names.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from .growing import GrowingFile, Identity, identity_of
from .lines import MAX_LINE, LineReader, batches_of, records_of
from .merging import allow_open_files, by_time
from .records import Finding, Record, Report
from .sources import STDIN, chunks_of_file, expand


def follow(
    paths: Iterable[str],
    report: Report,
    *,
    last: int | None = None,
    max_line: int = MAX_LINE,
    poll: float = 0.25,
) -> Iterator[Record | None]:
    """
    Return the records of *paths*, and those that come, without an end.

    What is there comes first, by time. Then the files are looked at again and
    again, and patterns are matched again; a path need not exist yet. `None`
    stands wherever there is no more for now. A line is not read before
    its line feed is there.

    Standard input is read up to its end, as a part of what is there. Where
    there is nothing else, that is the end.

    Args:
        paths: Names of files, patterns, ``-`` for standard input.

        report: Who is told of what is no record.

        last: So many records of what is there, the latest. (default: all)

        max_line: The most bytes of a line; a longer one is passed over.

        poll: The seconds between two looks.

    Raises:
        OSError: If these are more files than can be open at once.
    """
    paths = list(paths)
    allow_open_files(len(expand(paths)))
    return _follow(paths, _Followed(report, max_line), last, poll)


def _follow(
    paths: list[str], followed: _Followed, last: int | None, poll: float
) -> Iterator[Record | None]:
    try:
        followed.look(paths)
        sources = followed.beginnings(last)
        if STDIN in paths:
            reader = followed.reader_of_stdin()
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

    def __init__(self, report: Report, max_line: int) -> None:
        self._report = report
        self._max_line = max_line
        self._names: dict[str, _Name] = {}

    def look(self, paths: Iterable[str]) -> None:
        """
        See which files there are by now.
        """
        for path in expand(paths):
            if path != STDIN and path not in self._names:
                self._names[path] = _Name(path, self._report, self._max_line)
        with suppress(OSError):
            allow_open_files(len(self._names))
        known = {file.identity for file in self._files()}
        for name in self._names.values():
            name.look(known)
        # It may have lost one name for another that is followed, too.
        named = {name.identity for name in self._names.values()}
        for file in self._files():
            file.leave_soon(is_current=file.identity in named)

    def beginnings(self, last: int | None) -> list[Iterator[Record]]:
        """
        Return what is in each file, or the *last* records of each.
        """
        return [
            file.news() if last is None else file.tail(last)
            for file in self._files()
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
        for file in self._files():
            file.close()

    def reader_of_stdin(self) -> LineReader:
        """
        Return what finds the records of standard input.
        """
        return LineReader(STDIN, self._report, max_line=self._max_line)

    def _files(self) -> Iterator[GrowingFile]:
        for name in self._names.values():
            yield from name.files


class _Name:
    """
    A path, the file that has this name, and those that had it just now.
    """

    def __init__(self, path: str, report: Report, max_line: int) -> None:
        self.files: list[GrowingFile] = []
        self.identity: Identity | None = None
        self._path = path
        self._report = report
        self._max_line = max_line
        self._last_trouble = ""

    def look(self, known: set[Identity]) -> None:
        """
        See whether another file has the name now, and open it.

        A *known* file is followed already: it was only renamed.
        """
        try:
            self.identity = self._look(known)
        except OSError as error:
            self._tell(error)
            self.identity = None
        else:
            self._last_trouble = ""

    def leave(self) -> Iterator[Record]:
        """
        Close the files that lost the name some time ago; yield what is left.
        """
        for file in [each for each in self.files if each.is_left]:
            yield from file.rest()
            file.close()
            self.files.remove(file)

    def _look(self, known: set[Identity]) -> Identity:
        found = Path(self._path).stat()
        identity = identity_of(found)
        if identity == self.identity or identity in known:
            return identity
        file = GrowingFile(self._path, self._report, found, self._max_line)
        # Meanwhile the name may have come to a file that is known.
        if file.identity in known:
            file.close()
        else:
            known.add(file.identity)
            self.files.append(file)
        return file.identity

    def _tell(self, error: OSError) -> None:
        is_missing = isinstance(error, FileNotFoundError)
        trouble = error.strerror or str(error)
        # A file that was there and is gone is rotated, as a rule.
        if trouble != self._last_trouble and not (
            is_missing and self.identity
        ):
            waiting = " (yet)" if is_missing else ""
            self._report(
                Finding(self._path, 0, trouble + waiting, not is_missing)
            )
        self._last_trouble = trouble
