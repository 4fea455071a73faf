"""
The forms of lines that are alike, made once for all of them.

Two lines are alike that differ in texts, numbers and truth values only, and in
how many numbers a list has. What their forms share is kept, so that a further
one takes no more than finding these in the line, and putting them into its
form.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection
from typing import Any, Final

from .encoding import decode, encode
from .learning import Form, Template, learnt
from .marking import ROWS, Line


# They hardly ever differ in a process: it is faster to have them stand.
_STEADY: Final = frozenset(("kind", "source", "hostname", "pid", "run_id"))

_NO_MATCH: Final = re.compile(b"(?!)").match
_NOTHING: Final[dict[str, Any]] = {}

# What is kept is to stay small: half of it at least was used lately.
_MOST_SHAPES: Final = 2048
_MOST_TEMPLATES: Final = 128
_MOST_OF_A_SHAPE: Final = 4
# To look for what is alike would take longer than to make the form.
_LONGEST_LINE: Final = 1 << 16
_MOST_ITEMS: Final = 64
_DEEPEST: Final = 2
# So is what is spent on it: it takes as long as some hundred forms.
_PRICE: Final = 500
_MOST_CREDIT: Final = 128 * _PRICE


class _Shape:
    """
    What is known of lines with the same keys and types.
    """

    misses = 0
    learnt = 0
    templates: tuple[Template, ...] = ()


class Templates:
    """
    Encode the form of lines, of most without making it.

    Args:
        to: Returns the form of what is read from a line.

        decisive: The keys whose values decide the form.
    """

    def __init__(self, to: Form, decisive: Collection[str]) -> None:
        self._to = to
        self._decisive = tuple(sorted(decisive))
        # By their hash: a template refuses what it does not match.
        self._shapes: dict[int, _Shape] = {}
        self._older: dict[int, _Shape] = {}
        self._kept = 0
        self._credit = _MOST_CREDIT
        # What is tried before a shape is looked for: what followed the last
        # template before, and that of the last line whose metadata had the
        # same keys.
        self._last = Template(_NO_MATCH, re.Match.groups, b"")
        self._latest: dict[int, Template] = {}

    def encode(self, line: bytes, event: Line) -> bytes:
        """
        Return the form of a finished *line* as `encode` would.

        Args:
            line: The line.

            event: What it was made of, from which its shape is seen.

        Raises:
            Exception: If `to` does.
        """
        if len(line) > _LONGEST_LINE:
            return encode(self._to(decode(line)))
        last = self._last
        template = last.next
        if template is not None:
            found = template.match(line)
            if found is not None:
                self._last = template
                return template.text % template.values(found)
            last.next = None
        try:
            metadata = event.get("metadata")
            if type(metadata) is not dict:
                metadata = _NOTHING
            keys = hash((len(event), *metadata))
            template = self._latest.get(keys)
            if template is not None:
                found = template.match(line)
                if found is not None:
                    self._follow(last, template)
                    return template.text % template.values(found)
            shape = self._shape_of(event, metadata)
        except Exception:
            # Of a value that cannot be hashed, or is being changed.
            return encode(self._to(decode(line)))
        # What did not match now may not match often.
        was_tried = self._latest.pop(keys, None)
        for template in shape.templates:
            form = template.form_of(line)
            if form is not None:
                if not was_tried:
                    self._latest[keys] = template
                self._follow(last, template)
                return form
        return self._made(line, shape)

    def _follow(self, last: Template, template: Template) -> None:
        last.next = template if last.followed_by is template else None
        last.followed_by = self._last = template

    def _shape_of(self, event: Line, metadata: Line) -> _Shape:
        key = hash(
            (
                *event,
                *metadata,
                *map(event.get, self._decisive),
                *_kinds(metadata.values()),
                _inner(event.get("worker")),
            )
        )
        shape = self._shapes.get(key)
        return self._brought(key) if shape is None else shape

    def _brought(self, key: int) -> _Shape:
        """
        Return the shape that was not used lately, or is new.
        """
        if len(self._shapes) >= _MOST_SHAPES or self._kept >= _MOST_TEMPLATES:
            self._older, self._shapes = self._shapes, {}
            self._latest = {}
            self._kept = 0
        shape = self._older.pop(key, None) or _Shape()
        self._kept += len(shape.templates)
        self._shapes[key] = shape
        return shape

    def _made(self, line: bytes, shape: _Shape) -> bytes:
        """
        Return the form of a *line* for which there is no template.

        One is made at the second time, and if it does not do, at the fourth,
        the eighth and so on, as long as this is a small part of all.
        """
        said = decode(line)
        form = encode(self._to(said))
        if self._credit < _MOST_CREDIT:
            self._credit += 1
        shape.misses += 1
        if shape.misses >= 2 << shape.learnt and self._credit >= _PRICE:
            self._credit -= _PRICE
            # Whatever becomes of it, this form is made.
            with contextlib.suppress(Exception):
                self._learn(line, said, form, shape)
        return form

    def _learn(
        self, line: bytes, said: Line, form: bytes, shape: _Shape
    ) -> None:
        is_wide = shape.learnt > 1
        shape.learnt += 1
        literal = {*self._decisive, *(() if is_wide else _STEADY)}
        template = learnt(said, self._to, literal, is_wide=is_wide)
        # The form may depend on more than was said.
        if template and template.form_of(line) == form:
            kept = (template, *shape.templates)[:_MOST_OF_A_SHAPE]
            self._kept += len(kept) - len(shape.templates)
            shape.templates = kept


def _kinds(values: Collection[Any], depth: int = 0) -> tuple[Any, ...]:
    """
    Return the types of *values*, and keys and types of what these hold.

    It is no more than a guess: what is large or deep is not told apart.
    """
    kinds = tuple(map(type, values))
    if (dict in kinds or list in kinds) and depth <= _DEEPEST:
        return (*kinds, *(_inner(each, depth) for each in values))
    return kinds


def _inner(value: Any, depth: int = 0) -> Any:
    kind = type(value)
    if kind is not dict and kind is not list:
        return None
    if kind is list:
        kinds = {*map(type, value)}
        if kinds in ROWS:
            return tuple(kinds)
    if len(value) > _MOST_ITEMS:
        return kind
    if kind is dict:
        return (*value, *_kinds(value.values(), depth + 1))
    return (list, *_kinds(value, depth + 1))
