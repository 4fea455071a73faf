"""
Which ``seq`` were seen of each writer: what came twice, and what is missing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from .writers import Writer


_PAGE: Final = 64
_MOST_PAGES: Final = 1 << 16
_MOST_LOSSES: Final = 10_000
_MOST_SPANS: Final = 5
_MOST_COMPARED: Final = 8
_LATEST_ZERO: Final = 64
_MARKS: Final = (1 << 32) - 1


class Loss(NamedTuple):
    """
    What is missing of one writer.

    Args:
        writer: Who wrote.

        file: Where its first line was read.

        lines: How many are missing.

        spans: The first of the gaps, first and last ``seq`` of each.
    """

    writer: Writer
    file: str
    lines: int
    spans: tuple[tuple[int, int], ...]


class Sequences:
    """
    Follow the ``seq`` of all writers.

    A process has a sequence for each destination, and process ids come back:
    of one host and process there may be several streams of lines. They are
    told apart by their bytes. Of each line four bytes are kept, of the last
    four million lines or so; older ones are forgotten.

    What a line of a rendezvous states as its writer need not be the process
    that wrote it: such a line is also taken for the next one of whoever wrote
    before it in the file.
    """

    def __init__(self) -> None:
        self._streams: dict[Writer, list[_Stream]] = {}
        self._begun: dict[tuple[Writer, int], _Stream] = {}
        self._current: dict[tuple[Writer, str], _Stream] = {}
        self._latest: dict[str, _Stream] = {}
        self._pages = 0
        self._losses: dict[tuple[Writer, str], Loss] = {}

    def see(
        self,
        writer: Writer,
        file: str,
        seq: int,
        raw: bytes,
        *,
        is_rdzv: bool = False,
    ) -> bool:
        """
        Take note of a line, and tell whether it was seen before.
        """
        # Zero is what was not seen.
        mark = hash(raw) & _MARKS or 1
        stream = self._current.get((writer, file))
        if (
            stream is None
            or not stream.takes(seq, mark)
            or (stream.is_of_nodes and stream.highest + 1 != seq)
        ):
            if self._is_next_in(file, seq, is_rdzv=is_rdzv):
                stream = self._latest[file]
            elif stream is None or not stream.takes(seq, mark):
                stream = self._stream(writer, file, seq, mark, stream)
        self._current[writer, file] = self._latest[file] = stream
        stream.is_of_nodes = stream.is_of_nodes and is_rdzv
        if stream.mark_at(seq):
            return True
        if seq == 0:
            self._begun[writer, mark] = stream
        self._pages += stream.add(seq, mark)
        if max(self._pages, len(self._current)) > _MOST_PAGES:
            self._forget()
        return False

    def losses(self) -> list[Loss]:
        """
        Return what is missing, between the first and last ``seq`` seen.
        """
        self._forget()
        return list(self._losses.values())

    def _is_next_in(self, file: str, seq: int, *, is_rdzv: bool) -> bool:
        """
        Tell whether a line may be by who wrote before it, under another name.
        """
        latest = self._latest.get(file)
        return (
            latest is not None
            and latest.highest + 1 == seq
            and (is_rdzv or latest.is_of_nodes)
        )

    def _stream(
        self,
        writer: Writer,
        file: str,
        seq: int,
        mark: int,
        current: _Stream | None,
    ) -> _Stream:
        """
        Return the stream that a line belongs to, which may be a new one.
        """
        streams = self._streams.setdefault(writer, [])
        if seq == 0:
            known = self._begun.get((writer, mark))
            if known is not None:
                return known
        else:
            for stream in reversed(streams[-_MOST_COMPARED:]):
                if stream.mark_at(seq) == mark:
                    return stream
            # A file that was rotated goes on in the next.
            if current is None and streams and seq > streams[-1].highest:
                return streams[-1]
        stream = _Stream(writer, file)
        streams.append(stream)
        return stream

    def _forget(self) -> None:
        """
        Keep nothing of the streams but what is missing.
        """
        for streams in self._streams.values():
            for stream in streams:
                self._lose(stream)
        self._streams.clear()
        self._begun.clear()
        self._current.clear()
        self._latest.clear()
        self._pages = 0

    def _lose(self, stream: _Stream) -> None:
        lines = stream.missing()
        key = stream.writer, stream.file
        before = self._losses.get(key)
        if not lines or (before is None and len(self._losses) >= _MOST_LOSSES):
            return
        if before is not None:
            lines += before.lines
        spans = before.spans if before is not None else ()
        for span in stream.gaps():
            if len(spans) >= _MOST_SPANS:
                break
            spans += (span,)
        self._losses[key] = Loss(*key, lines, spans)


class _Stream:
    """
    The ``seq`` of one writer to one destination, and a mark for each line.
    """

    def __init__(self, writer: Writer, file: str) -> None:
        self.writer = writer
        self.file = file
        self.highest = -1
        self.is_of_nodes = True
        self._seen = 0
        self._pages: dict[int, array[int]] = {}

    def mark_at(self, seq: int) -> int:
        """
        Return the mark of the line with that *seq*, zero if there is none.
        """
        page = self._pages.get(seq // _PAGE)
        return 0 if page is None else page[seq % _PAGE]

    def takes(self, seq: int, mark: int) -> bool:
        """
        Tell whether a line can be one of this stream, or is already.
        """
        present = self.mark_at(seq)
        if present or seq:
            return present in {0, mark}
        # A zero begins a new writer, but for one that a thread wrote late.
        return self.highest <= _LATEST_ZERO

    def add(self, seq: int, mark: int) -> bool:
        """
        Add a line, and tell whether that took a new page.
        """
        number = seq // _PAGE
        page = self._pages.get(number)
        is_new = page is None
        if page is None:
            page = self._pages[number] = array("I", bytes(4 * _PAGE))
        page[seq % _PAGE] = mark
        self._seen += 1
        self.highest = max(self.highest, seq)
        return is_new

    def missing(self) -> int:
        """
        Return how many lines are missing between the first and the last.
        """
        first = min(self._pages)
        begin = next(i for i, mark in enumerate(self._pages[first]) if mark)
        lowest = first * _PAGE + begin
        return self.highest - lowest + 1 - self._seen

    def gaps(self) -> Iterator[tuple[int, int]]:
        """
        Yield the first and last ``seq`` of each gap.
        """
        last = -1
        for number in sorted(self._pages):
            for index, mark in enumerate(self._pages[number]):
                seq = number * _PAGE + index
                if not mark:
                    continue
                if last >= 0 and seq > last + 1:
                    yield last + 1, seq - 1
                last = seq
