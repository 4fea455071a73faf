"""
One page of HTML that holds pictures, and what draws them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from ..escaping import escaped
from .pieces import LEVELS, MARK_KINDS, SPAN_KINDS, Lane, Mark, Picture, Span
from .places import file_and_number


MARKER: Final = '<meta name="generator" content="elastic-events timeline">'
"""What every such page has in it, near its beginning."""

_MOST_BYTES: Final = 18 << 20
_LEAST_FOR_LINES: Final = 1 << 20
# Its file and number, and the number of its line.
_BYTES_OF_A_PLACE: Final = 24
_LONGEST_FILE: Final = 200
# They share one scope; the last one begins to draw.
_SCRIPTS: Final = (
    "script/model.js",
    "script/elements.js",
    "script/time.js",
    "script/drawing.js",
    "script/moving.js",
    "script/details.js",
    "script/controls.js",
    "script/events.js",
)
# What could end the element that holds the data, or a line of script.
_ESCAPES: Final = {each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def page(
    pictures: Iterable[Picture],
    line: Callable[[str], str | None],
    *,
    most_bytes: int = _MOST_BYTES,
) -> str:
    """
    Return the page.

    Args:
        pictures: Those of the runs, in the order in which they are offered.

        line: Returns the line at a place, `None` if it is not known.

        most_bytes: What the data may take. Lines are left out first, those
            of what is least grave; then whole runs, the later ones.
    """
    data = _Data(line, most_bytes)
    for each in pictures:
        data.add(each)
    texts = {
        "script": "".join(map(_source, _SCRIPTS)),
        "style": _source("style.css"),
        "data": data.as_json(),
    }
    html = _source("page.html")
    for name in ("script", "style"):
        html = html.replace(f"{{{name}-hash}}", _hash(texts[name]))
    html = html.replace("{marker}", MARKER)
    # The data comes last: what is in it must not be filled in.
    for name in ("style", "script", "data"):
        before, _, after = html.partition(f"{{{name}}}")
        html = f"{before}{texts[name]}{after}"
    return html


class _Data:
    """
    Everything that the page draws, in few bytes: numbers stand for texts.
    """

    def __init__(
        self, line: Callable[[str], str | None], most_bytes: int
    ) -> None:
        self._line = line
        self._most = most_bytes
        self._texts = _Numbers()
        self._places = _Numbers()
        self._urgent: dict[int, int] = {}
        self._runs: list[str] = []
        self._used = 0
        self._runs_left_out: list[str] = []

    def add(self, picture: Picture) -> None:
        """
        Add a run, if there is room for it.
        """
        if self._runs_left_out or (
            self._runs and self._used > self._most - _LEAST_FOR_LINES
        ):
            self._runs_left_out.append(picture.run_id)
            return
        run = _as_json(self._packed(picture))
        self._used += len(run) + self._texts.take_size()
        self._used += self._places.take_new() * _BYTES_OF_A_PLACE
        self._runs.append(run)

    def as_json(self) -> str:
        """
        Return all of it, safe within an element of HTML.
        """
        lines, left_out = self._lines()
        places = [*self._placed()]
        members = {
            "spanKinds": _as_json(SPAN_KINDS),
            "markKinds": _as_json(MARK_KINDS),
            "levels": _as_json(LEVELS),
            "texts": _as_json([*self._texts]),
            "places": _as_json(places),
            "lines": f"{{{','.join(lines)}}}",
            "linesLeftOut": _as_json(left_out),
            "runsLeftOut": _as_json(self._runs_left_out),
            "runs": f"[{','.join(self._runs)}]",
        }
        named = (f'"{name}":{value}' for name, value in members.items())
        return f"{{{','.join(named)}}}"

    def _packed(self, picture: Picture) -> dict[str, Any]:
        return {
            "runId": picture.run_id,
            "outcome": picture.outcome,
            "account": picture.account,
            "summary": picture.summary,
            "base": picture.base,
            "firstLine": picture.first_line,
            "length": picture.length,
            "first": picture.first,
            "notesLeftOut": picture.notes_left_out,
            "lanes": [*map(self._lane, picture.lanes)],
            "spans": [*map(self._span, picture.spans)],
            "marks": [*map(self._mark, picture.marks)],
            "victims": {
                number: mark.victims
                for number, mark in enumerate(picture.marks)
                if mark.victims
            },
        }

    def _lane(self, lane: Lane) -> list[Any]:
        return [
            self._texts.number(lane.name),
            lane.node,
            self._texts.number(lane.host),
            lane.ranks,
            lane.pids,
            SPAN_KINDS.index(lane.worst) if lane.worst else None,
        ]

    def _span(self, span: Span) -> list[Any]:
        return [
            span.lane,
            SPAN_KINDS.index(span.kind),
            span.start,
            span.end,
            span.attempt,
            self._texts.number(span.text),
            *self._numbers_of(span.places, len(MARK_KINDS)),
        ]

    def _mark(self, mark: Mark) -> list[Any]:
        kind = MARK_KINDS.index(mark.kind)
        return [
            mark.lane,
            kind,
            LEVELS.index(mark.level),
            mark.at,
            mark.attempt,
            self._texts.number(mark.text),
            *self._numbers_of(mark.places, kind),
        ]

    def _numbers_of(self, places: tuple[str, ...], gravity: int) -> list[int]:
        numbers = [self._places.number(place) for place in places]
        for number in numbers:
            known = self._urgent.get(number, gravity)
            self._urgent[number] = min(known, gravity)
        return numbers

    def _placed(self) -> Iterator[tuple[int, int]]:
        names: dict[str, int] = {}
        for place in self._places:
            file, number = file_and_number(place)
            if file not in names:
                shown = escaped(file, _LONGEST_FILE)
                names[file] = self._texts.number(shown)
            yield names[file], number

    def _lines(self) -> tuple[list[str], int]:
        """
        Return the lines that find room, and how many do not.
        """
        room = max(_LEAST_FOR_LINES, self._most - self._used)
        places = [*self._places]
        lines: list[str] = []
        left_out = 0
        for number in sorted(self._urgent, key=self._urgent.__getitem__):
            line = self._line(places[number]) if room > 0 else None
            member = "" if line is None else f'"{number}":{_as_json(line)}'
            if not member or _size(member) > room:
                left_out += 1
                continue
            room -= _size(member) + 1
            lines.append(member)
        return lines, left_out


class _Numbers:
    """
    Texts, each with its number.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new = self._size = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def number(self, text: str) -> int:
        """
        Return the number of *text*, a new one if it is not known.
        """
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self._numbers)
            self._new += 1
            self._size += _size(_as_json(text)) + 1
        return known

    def take_size(self) -> int:
        """
        Return the bytes of what came since this was asked last.
        """
        size, self._size = self._size, 0
        return size

    def take_new(self) -> int:
        """
        Return how many came since this was asked last.
        """
        new, self._new = self._new, 0
        return new


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _size(text: str) -> int:
    """
    Return the bytes of *text* in the page; names of files may be no UTF-8.
    """
    return len(text.encode("utf-8", "backslashreplace"))


def _source(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = sha256(text.encode()).digest()
    return f"sha256-{b64encode(digest).decode()}"
