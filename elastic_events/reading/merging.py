"""
The records of many files in the order of time.
"""

from __future__ import annotations

import errno
import heapq
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final

from .lines import MAX_LINE, LineReader, records_of
from .records import Record, Report, time_of
from .sources import chunks_of_file, expand


try:
    import resource
except ImportError:
    # Windows has no such limits.
    resource = None  # type: ignore[assignment]

_OTHER_FILES: Final = 32


def merged(
    paths: Iterable[str],
    report: Report,
    *,
    must_hold: tuple[bytes, ...] = (),
    max_line: int = MAX_LINE,
) -> Iterator[Record]:
    """
    Return the records of *paths* by time, each file's own in their order.

    A record without a time, or whose time is before that of one above it,
    comes right after that one. What has the same time comes in the order of
    *paths*.

    Raises:
        OSError: If these are more files than can be open at once.
    """
    files = expand(paths)
    allow_open_files(len(files))
    sources = []
    for file in files:
        reader = LineReader(
            file, report, must_hold=must_hold, max_line=max_line
        )
        sources.append(records_of(chunks_of_file(file), reader))
    if len(sources) == 1:
        return sources[0]
    return by_time(sources)


def by_time(sources: Iterable[Iterator[Record]]) -> Iterator[Record]:
    """
    Yield the records of *sources* by time, each source's in their order.
    """
    timed = [_timed(source) for source in sources]
    for _, record in heapq.merge(*timed, key=itemgetter(0)):
        yield record


def _timed(records: Iterator[Record]) -> Iterator[tuple[float, Record]]:
    """
    Yield each record with the latest time up to it.
    """
    latest: float = float("-inf")
    for record in records:
        time = time_of(record.said)
        if time is not None and time > latest:
            latest = time
        yield latest, record


def allow_open_files(number: int) -> None:
    """
    Raise the limit of open files so that *number* can be read at once.

    Raises:
        OSError: If it is not allowed.
    """
    if resource is None:
        return
    wanted = number + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard in range(wanted):
        raise OSError(
            errno.EMFILE,
            f"{number} files are too many to read at once: the limit of open"
            f" files is {hard}, and {_OTHER_FILES} are for other uses; give"
            " fewer, or raise it (ulimit -Hn)",
        )
    if soft in range(wanted):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
