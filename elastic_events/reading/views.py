"""
Records for people: one row each, in a terminal.

Needs rich, the extra ``cli``, for the colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Final

from rich.color import ColorSystem
from rich.style import Style

from .escaping import escaped
from .painting import Paint, plain
from .records import time_of
from .signals import signal_of
from .tables import as_text, value_at


_LEVEL_STYLES: Final = {
    "debug": "dim",
    "info": "green",
    "warning": "yellow",
    "error": "bold red",
    "critical": "bold white on red",
}
_FAILURES: Final = ("error", "critical")
_NO_TIME: Final = "--:--:--.---"
_LONGEST_WORD: Final = 100
_LONGEST_DETAIL: Final = 200
_LONGEST_TRACE: Final = 100_000
_WIDEST_COLUMN: Final = 40
_GAP: Final = "  "
_INDENT: Final = " " * 6


def colored(text: str, style: str) -> str:
    """
    Return *text* in the colours of *style*.
    """
    return _style(style).render(text, color_system=ColorSystem.STANDARD)


class Rows:
    """
    The rows of records that come one after another.

    Args:
        paint: `plain` or `colored`.

        is_utc: Whether times are UTC, else those of this machine's zone.

        fields: Dotted keys whose values alone are shown; none: time, level,
            host, rank, what, details.

        has_traces: Whether tracebacks stand below their rows.
    """

    def __init__(
        self,
        paint: Paint = plain,
        *,
        is_utc: bool = True,
        fields: Sequence[str] = (),
        has_traces: bool = False,
    ) -> None:
        self._paint = paint
        self._zone = timezone.utc if is_utc else None
        self._fields = fields
        self._has_traces = has_traces
        self._day = ""
        self._widths: dict[str, int] = {}

    def of(self, said: dict[str, Any]) -> Iterator[str]:
        """
        Yield the rows of one record: where a day begins its date, too.
        """
        if self._fields:
            yield self._chosen(said)
        else:
            moment = _moment(said, self._zone)
            yield from self._date(moment)
            yield self._row(said, moment)
        if self._has_traces:
            yield from self._trace(said)

    def _date(self, moment: datetime | None) -> Iterator[str]:
        if moment is None:
            return
        zone = "UTC" if self._zone else moment.strftime("local, UTC%z")
        day = f"{moment.date()} ({zone})"
        if day != self._day:
            self._day = day
            yield self._paint(f"-- {day}", "dim")

    def _row(self, said: dict[str, Any], moment: datetime | None) -> str:
        level = said.get("level")
        style = _LEVEL_STYLES.get(level, "") if isinstance(level, str) else ""
        is_failure = level in _FAILURES
        columns = (
            (_clock(moment), "dim"),
            ("!" if is_failure else " ", style),
            (_word(level).upper().ljust(8), style),
            (self._aligned("host", _word(said.get("hostname"))), ""),
            (self._aligned("who", _who(said)), "cyan"),
            (_word(said.get("name") or said.get("logger")), "bold"),
            (_details(said), style if is_failure else ""),
        )
        return _GAP.join(self._paint(*column) for column in columns).rstrip()

    def _chosen(self, said: dict[str, Any]) -> str:
        return _GAP.join(
            self._aligned(field, _cut(value_at(said, field)) or "-")
            for field in self._fields
        ).rstrip()

    def _aligned(self, column: str, text: str) -> str:
        """
        Return *text*, as wide as the widest of its column until now.
        """
        width = max(self._widths.get(column, 0), len(text))
        self._widths[column] = min(width, _WIDEST_COLUMN)
        return text.ljust(self._widths[column])

    def _trace(self, said: dict[str, Any]) -> Iterator[str]:
        trace = said.get("error_trace")
        if not isinstance(trace, str):
            return
        for line in trace[:_LONGEST_TRACE].rstrip("\n").split("\n"):
            yield _INDENT + self._paint(escaped(line), "red")
        if len(trace) > _LONGEST_TRACE:
            yield f"{_INDENT}…"


@lru_cache(maxsize=64)
def _style(name: str) -> Style:
    return Style.parse(name)


def _moment(said: dict[str, Any], zone: timezone | None) -> datetime | None:
    timestamp = time_of(said)
    if timestamp is None:
        return None
    seconds, milliseconds = divmod(int(timestamp), 1000)
    try:
        moment = datetime.fromtimestamp(seconds, tz=timezone.utc)
        return moment.replace(microsecond=milliseconds * 1000).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return None


def _clock(moment: datetime | None) -> str:
    if moment is None:
        return _NO_TIME
    return moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"


def _who(said: dict[str, Any]) -> str:
    if said.get("rank") is not None and said.get("kind") != "rdzv":
        return f"rank {_word(said['rank'])}"
    return _word(said.get("source")).lower()


def _details(said: dict[str, Any]) -> str:
    """
    Return what a record says apart from its name, in one row's length.
    """
    parts = []
    restart = said.get("restart")
    if type(restart) is int and restart > 0:
        parts.append(f"restart={restart}")
    if said.get("message") != said.get("name"):
        parts.append(_cut(said.get("message")))
    worker, metadata = said.get("worker"), said.get("metadata")
    if isinstance(worker, dict):
        parts += _of_worker(worker)
    elif isinstance(metadata, dict):
        # torch's nested metadata say the same again, as a JSON string.
        known = {**said, "metadata": metadata.get("metadata")}
        parts += _pairs(
            metadata,
            [key for key in metadata if metadata[key] != known.get(key)],
        )
    return _shortened(" ".join(part for part in parts if part))


def _of_worker(worker: dict[str, Any]) -> list[str]:
    parts = _pairs(worker, ("exit_code", "pid"))
    name = signal_of(worker.get("exit_code"))
    if name:
        parts.insert(1, f"({name})")
    error = worker.get("error")
    if isinstance(error, dict):
        known = (_cut(error.get(key)) for key in ("type", "message"))
        parts.append(": ".join(each for each in known if each))
    return parts


def _pairs(values: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """
    Return the pairs of *keys*, but no more than a row has room for.
    """
    pairs: list[str] = []
    room = _LONGEST_DETAIL
    for key in keys:
        if room < 0:
            break
        if values.get(key) is not None:
            pairs.append(f"{_word(key)}={_cut(values[key])}")
            room -= len(pairs[-1])
    return pairs


def _word(value: Any) -> str:
    return escaped(as_text(value), _LONGEST_WORD)


def _cut(value: Any) -> str:
    # What is cut here is cut once more with the rest of its row.
    return escaped(as_text(value), _LONGEST_DETAIL)


def _shortened(text: str) -> str:
    if len(text) > _LONGEST_DETAIL:
        return text[:_LONGEST_DETAIL] + "…"
    return text
