"""
Where what a line says stands in a form: one table for both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final

from .forming import (
    CONTEXT,
    Form,
    Line,
    error_of,
    finished,
    level_of,
    part,
    unowned,
)
from .schema import KEYS


class Said(str):
    """
    Stands in a table where the value of this key of a line stands in a form.

    ``error.type`` and ``error.message`` are what is known of an error.
    """

    __slots__ = ()


_REQUIRED: Final = [
    key for key, each in KEYS.items() if each.required == KEYS["time"].required
]
_required: Final = itemgetter(*_REQUIRED)


class Layout:
    """
    The form that a table shows, and the way back.

    Args:
        table:
            The form, and objects in it. What is not `Said` is the same in all
            forms.

        others:
            The object that has, under the line's own keys, what the table has
            no place for; empty for the form itself.

        left_out: The key that says what another one says already.

        levels: What the form calls the levels. (default: what we do)
    """

    def __init__(
        self,
        table: Form,
        *,
        others: str,
        left_out: str,
        levels: Mapping[str, str] | None = None,
    ) -> None:
        places = {str(key): place for key, place in _said_in(table)}
        self._errors = [
            (what, *places.pop(f"error.{what}"))
            for what in ("type", "message")
            if f"error.{what}" in places
        ]
        self._places = {
            key: places.get(key, (others, key))
            for key in KEYS
            if key != left_out
        }
        self._others = others
        self._levels = levels or {}
        self._ours = {name: level for level, name in self._levels.items()}
        self._blank, self._objects = _blank(table)
        # Nothing comes to it.
        self._to = {**self._places, left_out: (None, "")}

    def form_of(self, line: Line) -> Form:
        """
        Return the form of *line*, to which its values are moved as they are.

        Raises:
            KeyError: If the line lacks what every line has.
        """
        _required(line)
        form = self._blank.copy()
        for name, blank in self._objects:
            form[name] = blank.copy()
        places = self._to
        context: Form = {}
        for key, value in line.items():
            try:
                holder, name = places[key]
            except KeyError:
                context[key] = value
                continue
            if not holder:
                if holder is not None:
                    form[name] = value
            elif holder in form:
                form[holder][name] = value
            else:
                form[holder] = {name: value}
        if self._levels:
            holder, name = self._places["level"]
            part(form, holder)[name] = self._levels[line["level"]]
        if context:
            part(form, self._others)[CONTEXT] = context
        if "worker" in line or "error_trace" in line:
            self._add_error(form, error_of(line))
        return form

    def _add_error(self, form: Form, error: Form) -> None:
        for what, holder, name in self._errors:
            if what in error:
                form.setdefault(holder, {})[name] = error[what]

    def line_of(self, form: Line) -> Form:
        """
        Return the line of which *form* is the form.

        Raises:
            ValueError: If it is the form of none.
        """
        line: Form = {}
        for key, (holder, name) in self._places.items():
            holds = part(form, holder)
            if name in holds:
                line[key] = holds[name]
        if self._levels:
            line["level"] = level_of(line.get("level"), self._ours)
        context = part(part(form, self._others), CONTEXT)
        return finished({**line, **unowned(context)})


def _said_in(table: Form) -> Iterator[tuple[Said, tuple[str, str]]]:
    """
    Yield each `Said` of *table*, with the object and the name it has there.
    """
    for name, entry in table.items():
        if isinstance(entry, Said):
            yield entry, ("", name)
        elif isinstance(entry, dict):
            for key, (_, inner) in _said_in(entry):
                yield key, (name, inner)


def _blank(table: Form) -> tuple[Form, list[tuple[str, Form]]]:
    """
    Return what all forms have in common: in themselves, and in their objects.
    """
    blank: Form = {}
    objects = []
    for name, entry in table.items():
        if isinstance(entry, dict):
            same = {k: v for k, v in entry.items() if not isinstance(v, Said)}
            if same:
                objects.append((name, same))
        elif not isinstance(entry, Said) or entry in _REQUIRED:
            # What every line has keeps its place.
            blank[name] = entry
    return blank, objects
