"""
How many records there are of what, when, and what failed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, TypeAlias

from ..schema import EARLIEST, LATEST
from ..torchelastic import FAILED_EVENT
from .activity import Activity
from .filters import is_keepalive
from .moments import instant
from .records import Record, time_of


FIELDS: Final = {
    "kinds": "kind",
    "levels": "level",
    "sources": "source",
    "hosts": "hostname",
    "names": "name",
    "loggers": "logger",
    "ranks": "rank",
}
"""What is counted, and the key that it stands in."""

_OF_EVERY_LINE: Final = ("kind", "level", "source", "hostname")
_said_by_every_line: Final = itemgetter(*_OF_EVERY_LINE)
_FAILURES: Final = ("error", "critical")
_DROPPING_LOGGER: Final = "elastic_events"
_BATCH: Final = 1 << 18
_MOST_COMBINATIONS: Final = 10_000
_MOST_VALUES: Final = 1000
_LONGEST_VALUE: Final = 200
_MOST_SILENCES: Final = 3
_WINDOW: Final = 1000

# What every line says; name, logger, rank, run_id and restart.
Combination: TypeAlias = "tuple[tuple[Any, ...], Any, Any, Any, Any, Any]"


class Tally:
    """
    Count values, exactly, but only the first thousand different ones.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.left_out = 0

    def add(self, value: str, count: int) -> None:
        """
        Add *count* to what was counted of *value*.
        """
        if value in self.counts or len(self.counts) < _MOST_VALUES:
            self.counts[value] += count
        else:
            self.left_out += count


class Statistics:
    """
    Count the records that it sees.

    Memory does not grow with their number.
    """

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0
        self._untimed = 0
        self._dropped = 0
        self._failures = 0
        self._failed_workers = 0
        self._combinations: Counter[Combination] = Counter()
        self._tallies = {field: Tally() for field in FIELDS}
        self._runs = Tally()
        self._run_failures: Counter[str] = Counter()
        self._restarts: dict[str, int] = {}
        self._first = math.inf
        self._last = -math.inf
        self._work = Activity()

    def see(self, record: Record) -> None:
        """
        Count *record*.
        """
        self.see_all((record,))

    def see_all(self, records: Iterable[Record]) -> None:
        """
        Count *records*, which takes much less time than one by one.
        """
        batch: list[Combination] = []
        size = left = 0
        # What is within one window of time is noted at once.
        begin: float = math.inf
        end = earliest = latest = 0.0
        for _, _, raw, said in records:
            get = said.get
            try:
                always = _said_by_every_line(said)
            except KeyError:
                always = tuple(map(get, _OF_EVERY_LINE))
            logger = get("logger")
            batch.append(
                (
                    always,
                    get("name"),
                    logger,
                    get("rank"),
                    get("run_id"),
                    get("restart"),
                )
            )
            if logger == _DROPPING_LOGGER:
                self._dropped += _dropped(said)
            length = len(raw) + 1
            size += length
            left -= length
            if left < 0:
                self._count(batch)
                left = _BATCH
            timestamp = get("timestamp")
            if type(timestamp) is not int:
                timestamp = time_of(said)
            if timestamp is None or not EARLIEST <= timestamp <= LATEST:
                self._untimed += 1
                continue
            if begin <= timestamp < end:
                if timestamp > latest:
                    latest = timestamp
                elif timestamp < earliest:
                    earliest = timestamp
                continue
            if always[0] == "rdzv" and is_keepalive(said):
                self._note(timestamp, timestamp, is_work=False)
                continue
            if begin < math.inf:
                self._note(earliest, latest)
            begin = timestamp - timestamp % _WINDOW
            end = begin + _WINDOW
            earliest = latest = timestamp
        if begin < math.inf:
            self._note(earliest, latest)
        self._count(batch)
        self._bytes += size

    def as_dict(self) -> dict[str, Any]:
        """
        Return what was counted, made of JSON's types.

        Returns:
            ``lines`` and ``bytes``; ``first`` and ``last`` (RFC 3339, UTC, or
            null), ``span`` (seconds between) and ``per_second`` (null without
            a span); ``untimed``, the lines without a time in the
            years 1 to 9999.

            ``kinds``, ``levels``, ``sources``, ``names``, ``loggers``,
            ``hosts`` and ``ranks``: for each value, the most frequent first,
            its ``lines`` and ``per_second``. At most a thousand values are
            counted; ``left_out`` says how many lines had another.

            ``runs``: for each run id its ``lines``, its ``failures`` and
            ``restarts``, the highest that a line states.

            ``failures``: ``lines`` of level error and above, and
            ``workers``, torchelastic's events of failed workers.

            ``dropped``: how many lines the package says it had to drop.

            ``silences``: the longest times without a line, keep-alives apart:
            ``from``, ``to`` and ``seconds``.
        """
        self._settle()
        is_timed = self._first <= self._last
        span = (self._last - self._first) / 1000 if is_timed else 0.0
        return {
            "lines": self._lines,
            "bytes": self._bytes,
            "first": instant(self._first) if is_timed else None,
            "last": instant(self._last) if is_timed else None,
            "span": span,
            "per_second": _rate(self._lines - self._untimed, span),
            "untimed": self._untimed,
            **self._values(span),
            "failures": {
                "lines": self._failures,
                "workers": self._failed_workers,
            },
            "dropped": self._dropped,
            "silences": [
                {
                    "from": instant(each.start),
                    "to": instant(each.end),
                    "seconds": each.seconds,
                }
                for each in self._work.silences(_MOST_SILENCES)
            ],
        }

    def _values(self, span: float) -> dict[str, Any]:
        """
        Return how many lines there are of each value and each run.
        """
        tallies = {**self._tallies, "runs": self._runs}
        return {
            **{
                field: {
                    value: {"lines": count, "per_second": _rate(count, span)}
                    for value, count in tally.counts.most_common()
                }
                for field, tally in self._tallies.items()
            },
            "left_out": {
                field: tally.left_out
                for field, tally in tallies.items()
                if tally.left_out
            },
            "runs": {
                run_id: {
                    "lines": count,
                    "failures": self._run_failures[run_id],
                    "restarts": self._restarts.get(run_id),
                }
                for run_id, count in self._runs.counts.most_common()
            },
        }

    def _count(self, batch: list[Combination]) -> None:
        """
        Count a batch of lines, and empty it.
        """
        self._lines += len(batch)
        try:
            counts = Counter(batch)
        except TypeError:
            counts = Counter(map(_short_combination, batch))
        batch.clear()
        for combination, count in counts.items():
            self._combinations[_short_combination(combination)] += count
            if len(self._combinations) > _MOST_COMBINATIONS:
                self._settle()

    def _note(
        self, first: float, last: float, *, is_work: bool = True
    ) -> None:
        """
        Take note of two moments within one window.
        """
        self._first = min(self._first, first)
        self._last = max(self._last, last)
        if is_work:
            self._work.see(first)
            self._work.see(last)

    def _settle(self) -> None:
        """
        Move what was counted of combinations to what is counted of values.
        """
        for (always, *others), count in self._combinations.items():
            values = (*always, *others)
            for value, tally in zip(
                values, self._tallies.values(), strict=False
            ):
                if value is not None:
                    tally.add(str(value), count)
            _, level, _, _, name, _, _, run_id, restart = values
            is_failure = level in _FAILURES
            self._failures += count * is_failure
            self._failed_workers += count * (name == FAILED_EVENT)
            if run_id is not None:
                self._settle_run(str(run_id), restart, count, is_failure)
        self._combinations.clear()

    def _settle_run(
        self, run_id: str, restart: Any, count: int, is_failure: bool
    ) -> None:
        self._runs.add(run_id, count)
        if run_id not in self._runs.counts:
            return
        self._run_failures[run_id] += count * is_failure
        if type(restart) is int:
            highest = self._restarts.get(run_id, restart)
            self._restarts[run_id] = max(highest, restart)


def _short_combination(combination: Combination) -> Combination:
    always, *others = combination
    return (tuple(map(_short, always)), *map(_short, others))


def _short(value: Any) -> Any:
    """
    Return a scalar, a long text cut, and anything else as a text.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else f"<{type(value).__name__}>"
    if len(text) > _LONGEST_VALUE:
        text = text[: _LONGEST_VALUE - 1] + "…"
    return text


def _dropped(said: Mapping[str, Any]) -> int:
    metadata = said.get("metadata")
    if said.get("kind") != "log" or not isinstance(metadata, dict):
        return 0
    dropped = metadata.get("dropped")
    return dropped if type(dropped) is int and dropped > 0 else 0


def _rate(count: int, span: float) -> float | None:
    return round(count / span, 6) if span > 0 else None
