"""
From bytes to lines, and from lines to records.

A line ends at a line feed and nowhere else. What is no record is told of and
passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import BinaryIO, Final

from ..encoding import decode
from .damage import is_wide, name_of_damage, name_of_type
from .prefilter import Prefilter, holds
from .records import Finding, Record, Report, said_by
from .salvage import spans


MAX_LINE: Final = 4 << 20
"""The most bytes of a line that is read, unless it is said otherwise."""

CHUNK: Final = 1 << 16
"""So many bytes are read at once: a block that stays near the processor."""

_BOM: Final = b"\xef\xbb\xbf"
_new: Final = tuple.__new__


class DamagedError(ValueError):
    """
    The rest of the bytes cannot be had.
    """


def records_of(
    chunks: Iterator[bytes], reader: LineReader
) -> Iterator[Record]:
    """
    Return the records that *reader* finds in *chunks*.

    An error of the system, or a `DamagedError`, is the end of them, and is
    told of.
    """
    return chain.from_iterable(batches_of(chunks, reader))


def batches_of(
    chunks: Iterator[bytes], reader: LineReader
) -> Iterator[Iterator[Record]]:
    """
    Yield what `records_of` returns, the records of each chunk apart.
    """
    is_whole = False
    while not is_whole:
        try:
            chunk = next(chunks, None)
        except OSError as error:
            reader.tell(error.strerror or str(error), is_unreadable=True)
            break
        except DamagedError as error:
            reader.tell(str(error))
            break
        if chunk is None or reader.is_given_up:
            is_whole = True
        else:
            yield reader.feed(chunk)
    yield reader.finish(is_whole=is_whole)


def chunks_of(stream: BinaryIO, size: int = CHUNK) -> Iterator[bytes]:
    """
    Yield what *stream* holds, in pieces of at most *size* bytes.
    """
    # Of a pipe what is there already, without waiting for more.
    read = getattr(stream, "read1", stream.read)
    while chunk := read(size):
        yield chunk


class LineReader:
    """
    What finds the records of one file, given its bytes piece by piece.

    Args:
        file: The file's name.

        report: Who is told of what is no record.

        must_hold:
            What a line must hold to be wanted. One of our lines that lacks
            some of it is passed over. (A record that is not wanted may be
            found nevertheless.)

        max_line: The most bytes of a line; a longer one is passed over.

        number: How many lines of the file are not given.
    """

    def __init__(
        self,
        file: str,
        report: Report,
        *,
        must_hold: tuple[bytes, ...] = (),
        max_line: int = MAX_LINE,
        number: int = 0,
    ) -> None:
        self.is_given_up = False
        self._file = file
        self._report = report
        self._wanted = Prefilter(must_hold) if must_hold else None
        self._max_line = max_line
        self._number = number
        self._is_new = not number
        # The beginning of a line whose end is still to come.
        self._held: list[bytes] = []
        self._length = 0
        self._nuls = 0

    def feed(self, chunk: bytes) -> Iterator[Record]:
        """
        Yield the records on the lines that *chunk* brings to an end.
        """
        if self._is_new and chunk:
            self._is_new = False
            if is_wide(chunk):
                self.is_given_up = True
                self.tell("UTF-16 or UTF-32, expected UTF-8", number=0)
        if self.is_given_up:
            return
        end = chunk.rfind(b"\n") + 1
        if end:
            block = b"".join((*self._held, chunk[: end - 1]))
            self._held.clear()
            if self._length > self._max_line:
                # Of a line that long the beginning was not kept.
                rest, line_feed, block = block.partition(b"\n")
                self._length += len(rest)
                self._pass_over()
                if line_feed:
                    yield from self._records(block)
            else:
                self._length = 0
                yield from self._records(block)
        self._hold(chunk[end:])

    def finish(self, *, is_whole: bool = True) -> Iterator[Record]:
        """
        Yield the records on a last line without a line feed.

        Args:
            is_whole:
                Whether there is no more of it. Else nothing is said of what
                is no record.
        """
        line = b"".join(self._held)
        self._held.clear()
        report = self._report
        if not is_whole:
            self._report = tell_nobody
        if self._length > self._max_line:
            self._pass_over()
        elif line or self._nuls:
            self._length = 0
            self._number += 1
            if not self._wanted or self._wanted.must_be_read(line):
                yield from self._tolerated(line)
        self._report = report

    def tell(
        self,
        what: str,
        *,
        number: int | None = None,
        is_unreadable: bool = False,
    ) -> None:
        """
        Report *what* is wrong at the place that is reached.
        """
        if number is None:
            number = self._number
        self._report(Finding(self._file, number, what, is_unreadable))

    def _hold(self, beginning: bytes) -> None:
        if not self._length:
            # A hole in a file may be longer than any line.
            stripped = beginning.lstrip(b"\0")
            self._nuls += len(beginning) - len(stripped)
            beginning = stripped
        self._length += len(beginning)
        if self._length > self._max_line:
            self._held.clear()
        elif beginning:
            self._held.append(beginning)

    def _pass_over(self) -> None:
        self._number += 1
        self._tell_of_length(self._length)
        self._length = self._nuls = 0

    def _tell_of_length(self, length: int) -> None:
        self.tell(
            f"line of {length} bytes passed over:"
            f" the limit is {self._max_line}"
        )

    def _records(self, block: bytes) -> Iterator[Record]:
        """
        Return the records of a block of whole lines.
        """
        if (
            self._nuls
            or len(block) > self._max_line
            or b"\0" in block
            or holds(block, _BOM)
        ):
            return self._tolerated_records(block)
        if self._wanted:
            return self._wanted_records(block, self._wanted)
        return self._sound_records(block)

    def _tolerated_records(self, block: bytes) -> Iterator[Record]:
        for raw in block.split(b"\n"):
            self._number += 1
            yield from self._tolerated(raw)

    def _sound_records(self, block: bytes) -> Iterator[Record]:
        # Most of the time of reading is spent here.
        file = self._file
        before = self._number
        lines = block.split(b"\n")
        for number, raw in enumerate(lines, before + 1):
            try:
                said = decode(raw)
            except ValueError:
                said = None
            if type(said) is not dict:
                self._number = number
                yield from self._tolerated(raw)
                continue
            if "kind" not in said:
                said = said_by(said)
            # Half the time of `Record(…)`.
            yield _new(Record, (file, number, raw, said))
        self._number = before + len(lines)

    def _wanted_records(
        self, block: bytes, wanted: Prefilter
    ) -> Iterator[Record]:
        before = self._number
        line_feeds = block.count(b"\n")
        for passed, raw in wanted.lines(block, line_feeds):
            self._number = before + passed + 1
            yield from self._tolerated(raw)
        self._number = before + line_feeds + 1

    def _tolerated(self, raw: bytes) -> Iterator[Record]:
        """
        Yield the records on a line that may be anything.
        """
        raw = self._without_nuls(raw)
        if len(raw) > self._max_line:
            self._tell_of_length(len(raw))
            return
        body = _without_marks(raw)
        if not body.strip():
            return
        if b"\0" in raw:
            yield from self._salvaged(raw, ValueError("NUL bytes"))
            return
        try:
            said = decode(body)
        except ValueError as error:
            yield from self._salvaged(raw, error)
            return
        if isinstance(said, dict):
            yield Record(self._file, self._number, body, said_by(said))
        else:
            self.tell(f"not an object but {name_of_type(said)}")

    def _without_nuls(self, raw: bytes) -> bytes:
        """
        Return a line without the NULs before it, which are told of.
        """
        stripped = raw.lstrip(b"\0")
        nuls = self._nuls + len(raw) - len(stripped)
        self._nuls = 0
        if nuls:
            self.tell(f"{nuls} NUL bytes")
        return stripped

    def _salvaged(self, raw: bytes, error: ValueError) -> Iterator[Record]:
        parts = spans(raw)
        beginning = list(islice(parts, 2))
        is_alone = len(beginning) == 1
        records = lost = 0
        # There may be as many as it has bytes: none is kept.
        for part in chain(beginning, parts):
            if part.said is None:
                lost += 1
                self.tell(name_of_damage(part, error, is_alone=is_alone))
            else:
                records += 1
                said = said_by(part.said)
                yield Record(self._file, self._number, part.raw, said)
        if records > 1 and not lost:
            self.tell(f"{records} records on one line")


def _without_marks(raw: bytes) -> bytes:
    """
    Return a line without the byte order marks before it.
    """
    start = 0
    while raw.startswith(_BOM, start):
        start += len(_BOM)
    return raw[start:]


def tell_nobody(_: Finding) -> None:
    """
    Do nothing with a finding.
    """
