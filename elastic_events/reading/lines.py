"""
From files to lines, and from lines to what they say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO, NamedTuple

from ..encoding import decode


class Line(NamedTuple):
    """
    One line of a file, and where it stands.
    """

    file: str
    number: int
    raw: bytes


class BadLineError(ValueError):
    """
    A line that is not a JSON object.
    """


def read_lines(paths: Iterable[str]) -> Iterator[Line]:
    """
    Yield the lines of *paths*, blank ones apart; ``-`` is standard input.

    Raises:
        OSError: If a file cannot be read.
    """
    for path in paths:
        with _opened(path) as stream:
            for number, raw in enumerate(stream, start=1):
                if not raw.isspace():
                    yield Line(path, number, raw)


def parse(line: Line) -> dict[str, Any]:
    """
    Return what *line* says.

    Raises:
        BadLineError: If it is not a JSON object.
    """
    try:
        said = decode(line.raw)
    except ValueError as error:
        raise BadLineError(f"not JSON: {error}") from error
    if not isinstance(said, dict):
        raise BadLineError(f"not an object but {type(said).__name__}")
    return said


def _opened(path: str) -> Any:
    if path == "-":
        stream: BinaryIO = sys.stdin.buffer
        return nullcontext(stream)
    return open(path, "rb")  # noqa: PTH123
