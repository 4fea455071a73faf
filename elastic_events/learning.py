"""
A template: what the forms of lines that are alike share, and how it is made.

It is made of one line, by marks in the place of its values, and checked
against the form of this line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from operator import methodcaller
from typing import Any, Final, NamedTuple, TypeAlias

from .encoding import encode


Line: TypeAlias = "Mapping[str, Any]"
Form: TypeAlias = "Callable[[Line], Mapping[str, Any]]"
Values: TypeAlias = "Callable[[re.Match[bytes]], tuple[bytes, ...]]"

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
_FIRST_MARK: Final = 1_717_171_000_000
_MARK: Final = re.compile(rb'(?:"<)?1717171(\d{6})(?:>"|\.5)?')
_TRUTH: Final = re.compile(rb"(true|false)")
# Of numbers of one type there may be any number, and two stand for them. What
# is between these is between all.
ROWS: Final = ({int}, {float})
"""The types in a list that is as long as it likes."""
_SECOND: Final = 500_000
_LENGTHS: Final = (1, 3)

_MOST_BYTES: Final = 1 << 13


class Template(NamedTuple):
    """
    What the forms of lines that are alike share.

    Args:
        match: Matches these lines, a group for each value that differs.

        values: Returns the texts of these of a match, in the form's order.

        text: The form, ``%b`` where one of them stands.
    """

    match: Callable[[bytes], re.Match[bytes] | None]
    values: Values
    text: bytes

    def form_of(self, line: bytes) -> bytes | None:
        """
        Return the form of a *line*, `None` if it is not alike.
        """
        found = self.match(line)
        return self.text % self.values(found) if found else None


def learnt(
    said: Line, to: Form, literal: Collection[str], *, is_wide: bool
) -> Template | None:
    """
    Return the template of lines that are like one, if there is one.

    Args:
        said: What is read from the line.

        to: Returns the form of it.

        literal: The keys whose values all these lines have in common.

        is_wide: Whether any texts are to be matched, at some cost.

    Raises:
        Exception: If there is none, too.
    """
    marks = _Marks(said, literal, is_wide=is_wide)
    native = encode(marks.line())
    form = _with_truths(marks, to)
    if len(native) + len(form) > _MOST_BYTES:
        return None
    template = _template(marks, native, form)
    for length in _LENGTHS if marks.rows else ():
        line = marks.line(true=-1, length=length)
        if template.form_of(encode(line)) != encode(to(line)):
            return None
    return template


def _template(marks: _Marks, native: bytes, form: bytes) -> Template:
    """
    Return the template of lines like *native*, with *marks*, and its *form*.
    """
    native, commas = _without_seconds(native, marks.rows)
    form, between = _without_seconds(form.replace(b"%", b"%%"), marks.rows)
    parts = _MARK.split(native)
    pieces = _MARK.split(form)
    slots = list(map(int, pieces[1::2]))
    if (
        # A key may look like a mark.
        list(map(int, parts[1::2])) != list(range(len(marks.patterns)))
        or not set(commas.values()) <= {b","}
    ):
        raise ValueError(native)
    parts = list(map(re.escape, parts))
    parts[1::2] = [
        _with_groups(pattern, slots.count(slot))
        for slot, pattern in enumerate(marks.patterns)
    ]
    # As the groups are numbered.
    order = [sorted(slots).index(slot) + 1 for slot in slots]
    values: Values = (
        re.Match.groups
        if slots == sorted(slots)
        else methodcaller("group", *order)
    )
    rows = [(slots.index(slot), said) for slot, said in between.items()]
    return Template(
        re.compile(b"".join(parts), re.DOTALL).fullmatch,
        _with_rows(values, rows) if rows else values,
        b"%b".join(pieces[::2]),
    )


def _without_seconds(
    text: bytes, rows: Collection[tuple[int, bytes]]
) -> tuple[bytes, dict[int, bytes]]:
    """
    Return *text* with one mark for each list of numbers, not two.

    And what was between the two.
    """
    between = {}
    for slot, end in rows:
        first, second = (
            b"%d%b" % (_FIRST_MARK + number, end)
            for number in (slot, slot + _SECOND)
        )
        before, _, rest = text.partition(first)
        between[slot], _, after = rest.partition(second)
        text = before + first + after
    return text, between


def _with_rows(values: Values, rows: list[tuple[int, bytes]]) -> Values:
    """
    Return *values* with what is between numbers of a list, at these places.
    """

    def joined(found: re.Match[bytes]) -> tuple[bytes, ...]:
        texts = list(values(found))
        for place, between in rows:
            texts[place] = texts[place].replace(b",", between)
        return tuple(texts)

    return joined


class _Marks:
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

    def line(self, true: int | None = None, length: int = 2) -> dict[str, Any]:
        """
        Return the line, where truth values are marked too.

        Args:
            true:
                If given, truth values are truth values: the one of that number
                is true, all others are false.

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
            return f"<{_FIRST_MARK + slot}>"
        if kind not in _PATTERNS:
            return value
        self.patterns.append(_PATTERNS[kind] if slot else _TIMESTAMP)
        if kind is bool:
            self.truths.append(slot)
            if self._true is not None:
                return slot == self._true
        return _number(kind, slot)

    def _marked_row(self, kind: type) -> list[Any]:
        slot = len(self.patterns)
        pattern = _PATTERNS[kind]
        self.patterns.append(b"%b(?:,%b)%b" % (pattern, pattern, _ALL))
        self.rows.append((slot, b".5" if kind is float else b""))
        return [
            _number(kind, slot + place * _SECOND)
            for place in range(self._length)
        ]

    def _text_pattern(self, text: str) -> bytes:
        encoded = encode({text: 0})
        if self._is_wide or b"\\\\" in encoded:
            return _ANY_TEXT
        return _QUOTING_TEXT if b"\\" in encoded else _PLAIN_TEXT


def _number(kind: type, slot: int) -> int | float:
    return _FIRST_MARK + slot + (0.5 if kind is float else 0)


def _with_truths(marks: _Marks, to: Form) -> bytes:
    """
    Return the form of *marks*, with a mark for each truth value too.

    Nothing can be put in its place that has its form: where it stands is seen
    from what differs if it is true.
    """
    form = encode(to(marks.line(-1)))
    if not marks.truths:
        return form
    pieces = _TRUTH.split(form)
    same = pieces.copy()
    for slot in marks.truths:
        others = _TRUTH.split(encode(to(marks.line(slot))))
        for place, (one, other) in enumerate(zip(same, others, strict=True)):
            if one != other:
                if not place % 2:
                    raise ValueError(other)
                pieces[place] = b"%d" % (_FIRST_MARK + slot)
    return b"".join(pieces)


def _with_groups(pattern: bytes, count: int) -> bytes:
    """
    Return *pattern* with so many groups around it.
    """
    if not count:
        return b"(?:%b)" % pattern
    # All values at once can be had faster than one twice.
    return b"(?=(%b))" % pattern * (count - 1) + b"(%b)" % pattern
