"""
Marks in the place of a line's values, and what matches these.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

from .encoding import encode


Line: TypeAlias = "Mapping[str, Any]"

# What a part has matched it need not give back: from Python 3.11 on it can be
# told, and takes less time.
_ALL: Final = b"*+" if sys.version_info >= (3, 11) else b"*"
# What matches a text as encoding writes it: without a backslash, without two
# that follow each other, and any. The less there may be, the faster. The first
# two refuse what they cannot tell.
_PLAIN_TEXT: Final = rb'"[^"]%b"(?<!\\")' % _ALL
_QUOTING_TEXT: Final = rb'"[^"]%b(?:(?<=[^\\]\\)"[^"]%b)%b"(?<!\\")' % (
    _ALL,
    _ALL,
    _ALL,
)
_ANY_TEXT: Final = rb'"[^"\\]%b(?:\\.[^"\\]%b)%b"' % (_ALL, _ALL, _ALL)
# Likewise for the others: no more has to be told apart. Integers are of so few
# digits that they have 64 bits, whatever their sign.
_PATTERNS: Final = {
    int: rb"[-0-9]{1,18}",
    float: rb"[-0-9]+[.e][-.e0-9]*",
    bool: rb"true|false",
}
# Times of other centuries have forms of their own.
_TIMESTAMP: Final = rb"[1-9]\d{12}"

# What stands for a value while a template is made: a number, small enough for
# a time, and not likely to be in a key.
FIRST_MARK: Final = 1_717_171_000_000
MARK: Final = re.compile(rb'(?:"<)?1717171(\d{6})(?:>"|\.5)?')
# In their place there are two marks: what is between these is between all.
ROWS: Final = ({int}, {float})
"""The types of what is in a list that may be of any length."""
SECOND: Final = 500_000
"""How much larger the second mark of such a list is."""


class Marks:
    """
    A line with marks in the place of its values.

    Args:
        said: What is read from the line.

        literal: The keys whose values stay.

        is_wide: Whether texts may be any.
    """

    def __init__(
        self, said: Line, literal: Collection[str], *, is_wide: bool
    ) -> None:
        self.patterns: list[bytes] = []
        self.truths: list[int] = []
        self.rows: list[tuple[int, bytes]] = []
        self._said = said
        self._literal = literal
        self._is_wide = is_wide

    def line(
        self, true: Collection[int] | None = None, length: int = 2
    ) -> dict[str, Any]:
        """
        Return the line, where truth values are marked too.

        Args:
            true:
                If given, truth values are truth values: those of these numbers
                are true, all others are false.

            length: How many marks there are for a list of numbers.
        """
        self.patterns, self.truths, self.rows = [], [], []
        self._true, self._length = true, length
        return {
            key: value if key in self._literal else self._marked(value)
            for key, value in self._said.items()
        }

    def _marked(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return {key: self._marked(item) for key, item in value.items()}
        if kind is list:
            if {*map(type, value)} in ROWS:
                return self._marked_row(type(value[0]))
            return [self._marked(item) for item in value]
        slot = len(self.patterns)
        if kind is str:
            self.patterns.append(self._text_pattern(value))
            return f"<{FIRST_MARK + slot}>"
        if kind not in _PATTERNS:
            return value
        self.patterns.append(_PATTERNS[kind] if slot else _TIMESTAMP)
        if kind is bool:
            self.truths.append(slot)
            if self._true is not None:
                return slot in self._true
        return _number(kind, slot)

    def _marked_row(self, kind: type) -> list[Any]:
        slot = len(self.patterns)
        pattern = _PATTERNS[kind]
        self.patterns.append(b"%b(?:,%b)%b" % (pattern, pattern, _ALL))
        self.rows.append((slot, b".5" if kind is float else b""))
        return [
            _number(kind, slot + place * SECOND)
            for place in range(self._length)
        ]

    def _text_pattern(self, text: str) -> bytes:
        encoded = encode({text: 0})
        if self._is_wide or b"\\\\" in encoded:
            return _ANY_TEXT
        return _QUOTING_TEXT if b"\\" in encoded else _PLAIN_TEXT


def _number(kind: type, slot: int) -> int | float:
    return FIRST_MARK + slot + (0.5 if kind is float else 0)
