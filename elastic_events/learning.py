"""
A template: what the forms of lines that are alike share, and how it is made.

It is made of one line, by marks in the place of its values, and checked
against the form of this line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from operator import methodcaller
from typing import Any, Final, TypeAlias

from .encoding import encode
from .marking import FIRST_MARK, MARK, SECOND, Line, Marks


Form: TypeAlias = "Callable[[Line], Mapping[str, Any]]"
Match: TypeAlias = "Callable[[bytes], re.Match[bytes] | None]"
Values: TypeAlias = "Callable[[re.Match[bytes]], tuple[bytes, ...]]"

_TRUTH: Final = re.compile(rb"(true|false)")
# How long lists of numbers are to be told that it does not matter.
_LENGTHS: Final = (1, 3)
_MOST_BYTES: Final = 1 << 13


class Template:
    """
    What the forms of lines that are alike share.

    Args:
        match: Matches these lines, a group for each value that differs.

        values: Returns the texts of these of a match, in the form's order.

        text: The form, ``%b`` where one of them stands.
    """

    __slots__ = ("followed_by", "match", "next", "text", "values")

    def __init__(self, match: Match, values: Values, text: bytes) -> None:
        self.match = match
        self.values = values
        self.text = text
        self.followed_by: Template | None = None
        """That of the line that came next the last time."""
        self.next: Template | None = None
        """The same, if it was so twice: it is tried first."""

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
    marks = Marks(said, literal, is_wide=is_wide)
    native = encode(marks.line())
    if len(native) > _MOST_BYTES:
        return None
    form = _with_truths(marks, to)
    if len(native) + len(form) > _MOST_BYTES:
        return None
    template = _template(marks, native, form)
    for length in _LENGTHS if marks.rows else ():
        line = marks.line(true=(), length=length)
        if template.form_of(encode(line)) != encode(to(line)):
            return None
    return template


def _template(marks: Marks, native: bytes, form: bytes) -> Template:
    """
    Return the template of lines like *native*, with *marks*, and its *form*.
    """
    native, commas = _without_seconds(native, marks.rows)
    form, between = _without_seconds(form.replace(b"%", b"%%"), marks.rows)
    parts = MARK.split(native)
    pieces = MARK.split(form)
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
            b"%d%b" % (FIRST_MARK + number, end)
            for number in (slot, slot + SECOND)
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


def _with_truths(marks: Marks, to: Form) -> bytes:
    """
    Return the form of *marks*, with a mark for each truth value too.

    Nothing can be put in its place that has its form. They are numbered: each
    form has those true whose number has one of its bits, so that few forms
    tell them apart.
    """
    form = encode(to(marks.line(())))
    pieces = _TRUTH.split(form)
    numbers = [0] * len(pieces)
    truths = marks.truths
    for bit in range(len(truths).bit_length()):
        true = {
            slot for number, slot in enumerate(truths, 1) if number >> bit & 1
        }
        others = _TRUTH.split(encode(to(marks.line(true))))
        for place, (one, other) in enumerate(zip(pieces, others, strict=True)):
            if one != other:
                if not place % 2:
                    raise ValueError(other)
                numbers[place] |= 1 << bit
    for place, number in enumerate(numbers):
        if number:
            pieces[place] = b"%d" % (FIRST_MARK + truths[number - 1])
    return b"".join(pieces)


def _with_groups(pattern: bytes, count: int) -> bytes:
    """
    Return *pattern* with so many groups around it.
    """
    if not count:
        return b"(?:%b)" % pattern
    # All values at once can be had faster than one twice.
    return b"(?=(%b))" % pattern * (count - 1) + b"(%b)" % pattern
