"""
Where lines come from: files, patterns, standard input, gzip.
"""

from __future__ import annotations

import errno
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any, Final

from .lines import (
    CHUNK,
    MAX_LINE,
    DamagedError,
    LineReader,
    chunks_of,
    records_of,
)
from .records import Record, Report


STDIN: Final = "-"
GZIP: Final = b"\x1f\x8b\x08"
"""How gzip data begins."""

_PIECE: Final = 1 << 13
_GZIP_BITS: Final = 31


def expand(paths: Iterable[str]) -> list[str]:
    """
    Return *paths* with the files that a pattern matches in its place.

    What exists is taken by its name, and so is a pattern that matches nothing.
    Standard input can be read but once.
    """
    expanded: list[str] = []
    for path in paths:
        if path == STDIN:
            if path not in expanded:
                expanded.append(path)
        elif os.path.lexists(path) or not has_magic(path):
            expanded.append(path)
        else:
            # Path.glob takes no absolute pattern.
            found = glob(path, recursive=True)  # noqa: PTH207
            expanded += sorted(found) or [path]
    return expanded


def read(
    paths: Iterable[str],
    report: Report,
    *,
    must_hold: tuple[bytes, ...] = (),
    max_line: int = MAX_LINE,
) -> Iterator[Record]:
    """
    Yield the records of *paths*, file after file; ``-`` is standard input.

    A file that cannot be read is told of, and the others are read.
    """
    for file in expand(paths):
        reader = LineReader(
            file, report, must_hold=must_hold, max_line=max_line
        )
        yield from records_of(chunks_of_file(file), reader)


def chunks_of_file(file: str, size: int = CHUNK) -> Iterator[bytes]:
    """
    Yield what *file* holds, unzipped if need be.

    It is opened when the first is wanted.

    Args:
        file: A path, or ``-`` for standard input.

        size: So many bytes are read at once.

    Raises:
        OSError: If it cannot be read.

        DamagedError: If it is gzip that is cut off or damaged.
    """
    if file == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "Standard input is closed")
        yield from unpacked(chunks_of(sys.stdin.buffer, size), file)
        return
    try:
        stream = Path(file).open("rb", buffering=0)  # noqa: SIM115
    except FileNotFoundError as error:
        if has_magic(file):
            error.strerror = "No file matches"
        raise
    with stream:
        yield from unpacked(chunks_of(stream, size), file)


def unpacked(chunks: Iterator[bytes], file: str) -> Iterator[bytes]:
    """
    Yield what *chunks* hold, be it gzip or not, whatever the file's name.

    Raises:
        DamagedError: If it is gzip that is cut off or damaged.
    """
    beginning = b""
    for chunk in chunks:
        beginning += chunk
        if len(beginning) >= len(GZIP):
            break
    if beginning.startswith(GZIP):
        yield from _unzipped(beginning, chunks)
        return
    if file.endswith(".gz") and beginning[:1] not in b"{ \n\r\xef":
        raise DamagedError("not gzip data")
    yield beginning
    yield from chunks


def _unzipped(beginning: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """
    Yield what gzip data hold, member after member.

    Raises:
        DamagedError: After all that there is before the damage.
    """
    member = zlib.decompressobj(_GZIP_BITS)
    for piece in _pieces(chain([beginning], chunks)):
        data = piece
        while data:
            if member.eof:
                # Between members, and after the last, there may be NULs.
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(_GZIP_BITS)
            before = member.copy()
            try:
                yield member.decompress(data)
            except zlib.error as error:
                yield _up_to_damage(before, data)
                raise DamagedError("gzip data are damaged") from error
            data = member.unused_data if member.eof else b""
    if not member.eof:
        raise DamagedError("gzip data are cut off")


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """
    Cut *chunks* so small that none can hold very much when unzipped.
    """
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE):
            yield chunk[start : start + _PIECE]


def _up_to_damage(member: Any, data: bytes) -> bytes:
    unzipped = bytearray()
    with suppress(zlib.error):
        for byte in data:
            unzipped += member.decompress(bytes((byte,)))
    return bytes(unzipped)
