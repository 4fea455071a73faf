"""
What a picture shows beside the model: lines, warnings and silences.

Memory is bounded: what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..escaping import escaped
from ..fact_finding import fact_of, node_of
from ..filters import is_keepalive
from ..hosts import host_label
from ..records import Record, is_time, time_of


# For lines of what went wrong, and for all others.
_MOST_BYTES: Final = (64 << 20, 16 << 20)
_LONGEST_LINE: Final = 64 << 10
_MOST_NOTES: Final = 30_000
_LONGEST_NOTE: Final = 300
_LEVELS: Final = {"warning": "warning", "error": "error", "critical": "error"}
_BEAT: Final = "._keep_alive"
_MOST_INTERVALS: Final = 200
_MOST_GAPS: Final = 20
# So many usual intervals without a keep-alive are a gap.
_USUAL_TIMES: Final = 3


class Note(NamedTuple):
    """
    A line of level warning or above that states no fact of the model.
    """

    place: str
    time: int
    run_id: str | None
    level: str
    text: str


class Gap(NamedTuple):
    """
    A node said nothing for longer than it usually does, in ms.
    """

    start: int
    end: int
    usual: int
    places: tuple[str, str]


class _Beat(NamedTuple):
    """
    A keep-alive, and the time since the one before it.
    """

    interval: int
    time: int
    before: Record
    record: Record


class _Beats:
    """
    The keep-alives of one node.
    """

    def __init__(self, time: int, record: Record) -> None:
        self._last = (time, record)
        self._intervals: list[int] = []
        self._longest: list[_Beat] = []

    def beat(self, time: int, record: Record) -> None:
        last, before = self._last
        self._last = (time, record)
        interval = time - last
        if interval <= 0:
            return
        if len(self._intervals) < _MOST_INTERVALS:
            self._intervals.append(interval)
        self._longest.append(_Beat(interval, time, before, record))
        if len(self._longest) > 2 * _MOST_GAPS:
            self._longest = self._those_longest()

    def gaps(self) -> Iterator[_Beat]:
        """
        Yield the keep-alives that came late.
        """
        for beat in self._those_longest():
            if beat.interval > _USUAL_TIMES * self.usual:
                yield beat

    @property
    def usual(self) -> int:
        """
        How long it usually takes until the next one, in ms.

        A keep-alive that had to be repeated comes at once: those that took
        longer count.
        """
        place = len(self._intervals) * 9 // 10
        return sorted(self._intervals)[place] if self._intervals else 0

    def _those_longest(self) -> list[_Beat]:
        longest = sorted(self._longest, key=_interval, reverse=True)
        return longest[:_MOST_GAPS]


def _interval(beat: _Beat) -> int:
    return beat.interval


class Scrapbook:
    """
    What keeps the lines that a click may ask for, and what else is drawn.

    Args:
        most_bytes: So much is kept of the lines of what went wrong, and so
            much of all others.
    """

    def __init__(self, most_bytes: tuple[int, int] = _MOST_BYTES) -> None:
        self._room = dict(zip((True, False), most_bytes, strict=True))
        self._lines: dict[str, bytes] = {}
        self._last: dict[tuple[object, object], Record] = {}
        self._beats: dict[str, _Beats] = {}
        self.notes: dict[tuple[str, int], list[Note]] = {}
        """Those of each process, by the label of its host and its pid."""
        self.notes_left_out = 0
        self._noted = 0

    def see(self, record: Record) -> None:
        """
        Keep of *record* what may be shown.
        """
        said = record.said
        host, pid = said.get("hostname"), said.get("pid")
        if type(host) is str and type(pid) is int:
            self._last[host, pid] = record
        if is_keepalive(said):
            self._see_keepalive(record)
        elif fact_of(said) is not None:
            self._keep(record)
        elif _level_of(said) is not None:
            self._see_warning(record)

    def line(self, place: str) -> str | None:
        """
        Return the line at *place*, `None` if it was not kept.
        """
        raw = self._lines.get(place)
        return None if raw is None else raw.decode(errors="backslashreplace")

    def finish(self) -> dict[str, list[Gap]]:
        """
        Keep the last line of each process, too, and return the silences.

        They are those of each node, the longest of them.
        """
        for record in self._last.values():
            self._keep(record)
        return {
            node: [self._gap(late, beats.usual) for late in beats.gaps()]
            for node, beats in self._beats.items()
        }

    def _gap(self, late: _Beat, usual: int) -> Gap:
        self._keep(late.before)
        self._keep(late.record)
        start = late.time - late.interval
        return Gap(
            start, late.time, usual, (late.before.place, late.record.place)
        )

    def _keep(self, record: Record) -> None:
        raw = record.raw[:_LONGEST_LINE]
        if len(raw) < len(record.raw):
            raw += b" \xe2\x80\xa6 (cut)"
        is_grave = _level_of(record.said) is not None
        if len(raw) <= self._room[is_grave] and (
            record.place not in self._lines
        ):
            self._room[is_grave] -= len(raw)
            self._lines[record.place] = raw

    def _see_keepalive(self, record: Record) -> None:
        said = record.said
        time, node = time_of(said), node_of(said)
        if not is_time(time) or node is None:
            return
        if not said["name"].endswith(_BEAT):
            return
        if node in self._beats:
            self._beats[node].beat(int(time), record)
        else:
            self._beats[node] = _Beats(int(time), record)

    def _see_warning(self, record: Record) -> None:
        said = record.said
        time = time_of(said)
        host, pid, run_id = (
            said.get(key) for key in ("hostname", "pid", "run_id")
        )
        level = _level_of(said)
        if not is_time(time) or level is None:
            return
        if type(host) is not str or type(pid) is not int:
            return
        if self._noted == _MOST_NOTES:
            self.notes_left_out += 1
            return
        self._noted += 1
        self._keep(record)
        self.notes.setdefault((host_label(host), pid), []).append(
            Note(
                record.place,
                int(time),
                run_id if type(run_id) is str else None,
                level,
                _text_of(said),
            )
        )


def _level_of(said: dict[str, Any]) -> str | None:
    """
    Return the level of a warning or an error, `None` of anything else.
    """
    level = said.get("level")
    return _LEVELS.get(level) if isinstance(level, str) else None


def _text_of(said: dict[str, Any]) -> str:
    message = said.get("message")
    text = message if isinstance(message, str) else said.get("name", "")
    return escaped(text, _LONGEST_NOTE)
