"""
The forms of lines that are alike, made once for all of them.

Two lines are alike that differ in texts and numbers only. What their forms
share is kept, so that a further one takes no more than finding these in the
line, and putting them into its form.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Collection, Mapping
from operator import methodcaller
from typing import Any, Final, NamedTuple, TypeAlias

from .encoding import decode, encode


Line: TypeAlias = "Mapping[str, Any]"

# What matches a value as encoding writes it: no more has to be told apart.
# Integers are of so few digits that every form can hold them.
_PATTERNS: Final = {int: rb"[-0-9]{1,15}", float: rb"[-0-9]+[.e][-.e0-9]*"}
# What a part has matched it need not give back: from Python 3.11 on it can be
# told, and takes less time.
_ALL: Final = b"*+" if sys.version_info >= (3, 11) else b"*"
_PLAIN_TEXT: Final = rb'"[^"\\]%b"' % _ALL
_TEXT: Final = rb'"[^"\\]%b(?:\\.[^"\\]%b)%b"' % (_ALL, _ALL, _ALL)
# Times of other centuries have forms of their own.
_TIMESTAMP: Final = rb"[1-9]\d{12}"

# What stands for a value while a template is made: a number, small enough for
# a time, and not likely to be in a key.
_FIRST_MARK: Final = 1_717_171_000_000
_MARK: Final = re.compile(rb'(?:"<)?1717171(\d{6})(?:>"|\.5)?')

# What is kept, and what is spent on it, is to stay small.
_MOST_KEPT: Final = 16
_MOST_MADE: Final = 256
_MOST_SEEN: Final = 4096
_MOST_BYTES: Final = 1 << 13


class _Template(NamedTuple):
    """
    What the forms of lines that are alike share.

    Args:
        match: Matches these lines, a group for each value that differs.

        values: Returns the texts of these of a match, in the form's order.

        text: The form, ``%b`` where one of them stands.
    """

    match: Callable[[bytes], re.Match[bytes] | None]
    values: Callable[[re.Match[bytes]], tuple[bytes, ...]]
    text: bytes


class Templates:
    """
    Encode the form of lines, of most without making it.

    Args:
        to: Returns the form of what is read from a line.

        decisive: The keys whose values decide the form.
    """

    def __init__(
        self,
        to: Callable[[Line], Mapping[str, Any]],
        decisive: Collection[str],
    ) -> None:
        self._to = to
        self._decisive = decisive
        self._templates: list[_Template] = []
        self._made = 0
        self._seen: set[int] = set()

    def encode(self, line: bytes) -> bytes:
        """
        Return the form of a finished *line*, as `encode` would.

        Raises:
            Exception: If `to` does.
        """
        # Most are like the one before, which stands first.
        templates = self._templates
        for template in templates:
            match, values, text = template
            found = match(line)
            if found is not None:
                if template is not templates[0]:
                    self._put_first(template)
                return text % values(found)
        said = decode(line)
        encoded = encode(self._to(said))
        if (
            len(encoded) <= _MOST_BYTES
            and len(self._seen) < _MOST_SEEN
            # Then each mark that is found later is one of ours.
            and not _MARK.search(line + encoded)
        ):
            # Whatever becomes of it, this form is made.
            with contextlib.suppress(Exception):
                self._learn(line, said, encoded)
        return encoded

    def _put_first(self, template: _Template) -> None:
        others = [each for each in self._templates if each is not template]
        self._templates = [template, *others[: _MOST_KEPT - 1]]

    def _learn(self, line: bytes, said: Line, encoded: bytes) -> None:
        """
        Keep the template of a *line* that is like one that was seen before.
        """
        patterns: list[bytes] = []
        marked = {
            key: value if key in self._decisive else _marked(value, patterns)
            for key, value in said.items()
        }
        native = encode(marked)
        if hash(native) not in self._seen:
            self._seen.add(hash(native))
        elif self._made < _MOST_MADE:
            self._made += 1
            template = _template(native, encode(self._to(marked)), patterns)
            # The form may depend on more than was said.
            found = template.match(line)
            if found and template.text % template.values(found) == encoded:
                self._put_first(template)


def _marked(value: Any, patterns: list[bytes]) -> Any:
    """
    Return *value* with a mark for each text and number in it.

    What matches these is added to *patterns*.
    """
    kind = type(value)
    if kind is dict:
        return {key: _marked(item, patterns) for key, item in value.items()}
    if kind is list:
        return [_marked(item, patterns) for item in value]
    number = _FIRST_MARK + len(patterns)
    if kind is str:
        patterns.append(_TEXT if b"\\" in encode({value: 0}) else _PLAIN_TEXT)
        return f"<{number}>"
    if kind not in _PATTERNS:
        return value
    patterns.append(_PATTERNS[kind] if patterns else _TIMESTAMP)
    return number if kind is int else number + 0.5


def _template(native: bytes, form: bytes, patterns: list[bytes]) -> _Template:
    """
    Return the template of lines like *native*, marks in it and its *form*.
    """
    pieces = _MARK.split(form.replace(b"%", b"%%"))
    slots = list(map(int, pieces[1::2]))
    parts = list(map(re.escape, _MARK.split(native)))
    parts[1::2] = [
        _with_groups(pattern, slots.count(slot))
        for slot, pattern in enumerate(patterns)
    ]
    # As the groups are numbered.
    order = [sorted(slots).index(slot) + 1 for slot in slots]
    return _Template(
        re.compile(b"".join(parts), re.DOTALL).fullmatch,
        re.Match.groups
        if slots == sorted(slots)
        else methodcaller("group", *order),
        b"%b".join(pieces[::2]),
    )


def _with_groups(pattern: bytes, count: int) -> bytes:
    """
    Return *pattern* with so many groups around it.
    """
    if not count:
        return pattern
    # All values at once can be had faster than one twice.
    return b"(?=(%b))" % pattern * (count - 1) + b"(%b)" % pattern
