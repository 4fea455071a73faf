"""
What is left of a line that does not parse: whole records, and the rest.

A torn write may take the end of its line with it, so that the next record
follows on the same line; a crash may leave a run of NULs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..encoding import decode


# How our lines begin, and the raw ones of torch.
_BEGINNING: Final = re.compile(r'\{"(?:timestamp":-?[0-9]+,"time":"|name": ")')
_BLANK: Final = re.compile("[ \t\r\0]*")
_BOM: Final = "\xef\xbb\xbf"
_scan: Final = json.JSONDecoder().raw_decode


class Span(NamedTuple):
    """
    A part of a line: a record and what it says, or what is none, and `None`.
    """

    raw: bytes
    said: dict[str, Any] | None


def spans(line: bytes) -> Iterator[Span]:
    """
    Yield the parts of *line*, without what is blank between them.

    The first record begins where the line does, or the one before it ends.
    Any other is searched for by its beginning, and then must reach up to the
    end of the line or to another record: what is nested in a torn record
    looks like one, too.
    """
    # One character a byte, so that places in both are the same.
    text = line.decode("latin-1")
    patience = _Patience(4 * len(line) + 65536)
    lost = _after_blanks(text, 0)
    yield from _nuls(line[:lost])
    start = lost
    while start < len(text):
        found = patience.extent(text, start)
        after = _after_blanks(text, found)
        is_whole = found > start and (
            start == lost or text[after : after + 1] in ("", "{")
        )
        said = _said(line[start:found]) if is_whole else None
        if said is None:
            start = patience.next_beginning(text, start + 1)
            continue
        if lost < start:
            yield Span(line[lost:start].rstrip(b" \t\r"), None)
        yield Span(line[start:found], said)
        yield from _nuls(line[found:after])
        start = lost = after
        if not text.startswith("{", start):
            start = patience.next_beginning(text, start)
    if lost < len(text):
        yield Span(line[lost:].rstrip(b" \t\r"), None)


class _Patience:
    """
    How much more may be tried on a line that was made to try one's patience.
    """

    def __init__(self, characters: int) -> None:
        self._characters = characters

    def extent(self, text: str, start: int) -> int:
        """
        Return the end of the object that begins at *start*; *start* if none.
        """
        if not text.startswith("{", start):
            return start
        try:
            end = _scan(text, start)[1]
        except json.JSONDecodeError as error:
            # It was read on to the end to find that a string has none.
            is_unended = error.msg.startswith("Unterminated")
            end = len(text) if is_unended else error.pos
            # To make the error, the lines before it were counted.
            self._characters -= end - start + end // 32
        except (RecursionError, ValueError):
            self._characters -= len(text) - start
        else:
            self._characters -= end - start
            return end
        return start

    def next_beginning(self, text: str, start: int) -> int:
        """
        Return where a record may begin, at *start* or later; else the end.
        """
        if self._characters <= 0:
            return len(text)
        beginning = _BEGINNING.search(text, start)
        return beginning.start() if beginning else len(text)


def _said(raw: bytes) -> dict[str, Any] | None:
    try:
        said = decode(raw)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _after_blanks(text: str, start: int) -> int:
    # A pattern of more than one character would remember each time it fits.
    end = start
    while blank := _BLANK.match(text, end):
        end = blank.end()
        if not text.startswith(_BOM, end):
            break
        end += len(_BOM)
    return end


def _nuls(blanks: bytes) -> Iterator[Span]:
    nuls = blanks.count(b"\0")
    if nuls:
        yield Span(bytes(nuls), None)
