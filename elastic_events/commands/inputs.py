"""
What the commands that read have in common: files, and what is wrong in them.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..reading.clocks import ClockWatch
from ..reading.filters import Filter
from ..reading.following import follow
from ..reading.lines import MAX_LINE
from ..reading.merging import merged
from ..reading.records import Finding, Record
from ..reading.sources import STDIN, expand, read
from ..reading.wording import counted
from . import filtering
from .noticing import FieldWatch, FormatWatch, seen_until
from .progress import is_wanted, watched
from .statuses import Status, UsageError
from .telling import complain, tell


_MOST_TOLD: Final = 100


def add_arguments(
    parser: argparse.ArgumentParser,
    *,
    is_strict: bool = False,
    keepalives: str = "with them",
) -> None:
    """
    Add the files, how to read them, and the filters.

    Args:
        parser: The command's.

        is_strict: Whether bad lines always matter to the command, so that
            nobody need ask for it.

        keepalives: Whether keep-alives are wanted by default, for people.
    """
    # All options would fill the screen at each mistake.
    parser.usage = "%(prog)s [OPTION ...] FILE [FILE ...]"
    group = parser.add_argument_group("input")
    group.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a file, also .gz, a glob, or - for standard input",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        default=is_strict,
        help=argparse.SUPPRESS
        if is_strict
        else "exit with 1 if a line was bad",
    )
    group.add_argument(
        "--max-line",
        type=_length,
        default=MAX_LINE,
        metavar="BYTES",
        help="longer lines are skipped and told of (default: 4 MiB)",
    )
    filtering.add_arguments(parser, keepalives=keepalives)


class Input:
    """
    The records of the files that were named, those that the filters want.

    What cannot be read is told on standard error, and stops nothing.

    Args:
        options: What `add_arguments` added.

        keepalive: Whether keep-alives are wanted if *options* do not say.

        shows_as_it_reads: Whether the output comes while files are read; a
            bar of progress would be in its way on a terminal.

        fields: Those that are shown, if not all: it is told which no record
            has.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        *,
        keepalive: bool = True,
        shows_as_it_reads: bool = False,
        fields: Sequence[str] = (),
    ) -> None:
        self._files: list[str] = options.files
        self._is_strict: bool = options.strict
        self._longest: int = options.max_line
        self._filter: Filter = filtering.filter_of(
            options, keepalive=keepalive
        )
        self._shows_as_it_reads = shows_as_it_reads
        self._clocks = ClockWatch()
        self._formats = FormatWatch()
        self._fields = FieldWatch(fields)
        self._files_with_bad_lines: set[str] = set()
        self._bad_lines = 0
        self._is_unreadable = False

    @property
    def is_live(self) -> bool:
        """
        Whether more may come while it is read.
        """
        return any(map(_is_live, self._files))

    @property
    def keeps_all(self) -> bool:
        """
        Whether no filter leaves out any record.
        """
        return not self._filter.tests

    def records(self) -> Iterator[Record]:
        """
        Yield the records, file after file.
        """
        records = read(
            self._files,
            self.report,
            must_hold=self._must_hold,
            max_line=self._longest,
        )
        known = seen_until(records, self._formats.see)
        return self._wanted(self._watched(known))

    def merged(self) -> Iterator[Record]:
        """
        Yield the records of all files by time, each file's own in its order.

        Clocks that go back or differ are told of at the end.

        Raises:
            UsageError: If these are too many files.
        """
        try:
            records = merged(
                self._files,
                self.report,
                must_hold=self._must_hold,
                max_line=self._longest,
            )
        except OSError as error:
            raise UsageError(error.strerror) from error
        known = seen_until(records, self._formats.see)
        return self._wanted(self._timed(self._watched(known)))

    def follow(self, last: int | None = None) -> Iterator[Record | None]:
        """
        Yield the records there are and those to come; `None` when idle.

        Args:
            last: So many of those that are there; default: all.

        Raises:
            UsageError: If these are too many files.
        """
        try:
            records = follow(
                self._files, self.report, last=last, max_line=self._longest
            )
        except OSError as error:
            raise UsageError(error.strerror) from error
        known = seen_until(records, self._formats.see)
        yield from seen_until(self._followed(known), self._fields.see)

    def report(self, finding: Finding) -> None:
        """
        Tell on standard error what is wrong with a line or file.
        """
        if finding.is_unreadable:
            self._is_unreadable = True
            complain(str(finding))
            return
        self._bad_lines += 1
        self._files_with_bad_lines.add(finding.file)
        if self._bad_lines <= _MOST_TOLD:
            tell(str(finding))
        elif self._bad_lines == _MOST_TOLD + 1:
            complain("further bad lines are only counted")

    def finish(self) -> int:
        """
        Tell how many lines were bad, which clocks, and what else was noticed.

        Returns:
            The exit status.
        """
        for finding in self._clocks.findings():
            tell(str(finding))
        if self._bad_lines:
            lines = counted(self._bad_lines, "bad line")
            files = counted(len(self._files_with_bad_lines), "file")
            complain(f"{lines} in {files}")
        for watch in self._formats, self._fields:
            if hint := watch.hint():
                complain(hint)
        if self._is_unreadable:
            return Status.USAGE
        is_bad = self._is_strict and self._bad_lines
        return Status.FINDINGS if is_bad else Status.FINE

    @property
    def _must_hold(self) -> tuple[bytes, ...]:
        # Lines that lack it are not parsed, and so not found to be bad.
        return () if self._is_strict else self._filter.must_hold

    def _wanted(self, records: Iterable[Record]) -> Iterator[Record]:
        if not self.keeps_all:
            matches = self._filter.matches
            records = (each for each in records if matches(each.said))
        return seen_until(records, self._fields.see)

    def _followed(
        self, records: Iterable[Record | None]
    ) -> Iterator[Record | None]:
        matches, see = self._filter.matches, self._clocks.see
        for record in records:
            if record is not None:
                see(record)
            if record is None or matches(record.said):
                yield record

    def _timed(self, records: Iterable[Record]) -> Iterator[Record]:
        see = self._clocks.see
        for record in records:
            see(record)
            yield record

    def _watched(self, records: Iterator[Record]) -> Iterator[Record]:
        if self._shows_as_it_reads and sys.stdout.isatty():
            return records
        paths = expand(self._files)
        if not is_wanted(paths):
            return records
        return watched(records, paths, is_sparse=bool(self._must_hold))


def _is_live(path: str) -> bool:
    try:
        mode = os.stat(0 if path == STDIN else path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode)


def _length(text: str) -> int:
    try:
        length = int(text)
    except ValueError:
        length = 0
    if length < 1:
        raise argparse.ArgumentTypeError(
            f"expected a number of bytes above 0, got {text!r}"
        )
    return length
