"""
Whether lines are as they are promised to be, and none is missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ..encoding import decode
from ..levels import LEVELS
from ..schema import EARLIEST, KEYS, LATEST
from .filters import KINDS, SOURCES
from .moments import instant
from .records import Finding, Record, time_of
from .sequences import Loss, Sequences
from .writers import Writer, Writers


_TIME: Final = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z"
)
_MOST_KEPT: Final = 1000
_MOST_WRITERS: Final = 10_000
_MOST_ORDERS: Final = 1000
_LONGEST_VALUE: Final = 60
_LARGEST_STEP_BACK: Final = 1000

READING_KINDS: Final = {
    "torn record": "torn",
    "records on one line": "glued",
    "bytes passed over": "over_long",
}
"""What the reader says of a bad line, and the kind of flaw that it is."""


class Rule(NamedTuple):
    """
    What the value of a key must be, and how that is said.
    """

    holds: Callable[[Any], bool]
    expected: str


class Flaw(NamedTuple):
    """
    Something that is not as it should be.

    Args:
        kind: ``schema``, ``order``, ``time``, ``time_back``, ``duplicate``,
            ``missing``, ``torn``, ``glued``, ``over_long`` or ``bad``.

        finding: What it is, and where.
    """

    kind: str
    finding: Finding


def _is_integer(value: Any) -> bool:
    # To JSON Schema 1.0 is one.
    return type(value) is int or (
        isinstance(value, float) and value.is_integer()
    )


_INTEGER: Final = Rule(_is_integer, "an integer")
_TEXT: Final = Rule(lambda value: isinstance(value, str), "a text")
_OBJECT: Final = Rule(lambda value: isinstance(value, dict), "an object")
_NOT_EMPTY: Final = {
    int: _INTEGER,
    str: Rule(
        lambda value: isinstance(value, str) and value != "",
        "a text that is not empty",
    ),
    dict: Rule(
        lambda value: isinstance(value, dict) and bool(value),
        "an object that is not empty",
    ),
    bool: Rule(lambda value: value is True, "true"),
}
_MAY_BE_EMPTY: Final = {int: _INTEGER, str: _TEXT, dict: _OBJECT}


def _one_of(*texts: str) -> Rule:
    return Rule(
        lambda value: isinstance(value, str) and value in texts,
        f"one of {', '.join(texts)}",
    )


_RULES: Final[dict[str, Rule]] = {
    **{
        key: (_MAY_BE_EMPTY if required else _NOT_EMPTY)[kind]
        for key, (kind, required) in KEYS.items()
    },
    "timestamp": Rule(
        lambda value: _is_integer(value) and EARLIEST <= value <= LATEST,
        "milliseconds within the years 1 to 9999",
    ),
    "time": Rule(
        lambda value: (
            isinstance(value, str) and _TIME.fullmatch(value) is not None
        ),
        "a text like 2024-02-29T12:34:56.789Z",
    ),
    "level": _one_of(*LEVELS),
    "kind": _one_of(*KINDS),
    "source": _one_of(*SOURCES),
    "seq": Rule(
        lambda value: _is_integer(value) and value >= 0,
        "an integer from 0 on",
    ),
}
_WORKER_RULES: Final = {
    **dict.fromkeys(
        (
            "local_rank",
            "role_rank",
            "role_world_size",
            "group_world_size",
            "exit_code",
            "pid",
        ),
        _INTEGER,
    ),
    "entry_point": _TEXT,
    "error": _NOT_EMPTY[dict],
}
_ERROR_RULES: Final = {
    "type": _TEXT,
    "message": _TEXT,
    "timestamp": _INTEGER,
}
_REQUIRED: Final = {
    kind: frozenset(key for key in KEYS if kind in KEYS[key].required)
    for kind in KINDS
}
_ALWAYS_REQUIRED: Final = frozenset.intersection(*_REQUIRED.values())
_OF_NODES: Final = frozenset(("node_state", "local_id", "master_endpoint"))
_FORBIDDEN: Final = {
    "event": _OF_NODES | {"logger"},
    "rdzv": frozenset(("metadata", "logger")),
    "log": _OF_NODES | {"name"},
}


def problems(said: dict[str, Any]) -> list[str]:
    """
    Return what the JSON Schema of a line would not accept in what is *said*.
    """
    found = list(_broken(said, _RULES))
    kind = said.get("kind")
    required, forbidden = _ALWAYS_REQUIRED, frozenset[str]()
    if isinstance(kind, str) and kind in _REQUIRED:
        required, forbidden = _REQUIRED[kind], _FORBIDDEN[kind]
    if not said.keys() >= required:
        found += [f"no {key}" for key in KEYS if key in required - set(said)]
    if not said.keys().isdisjoint(forbidden):
        found += [
            f"{key} on a line of kind {kind}"
            for key in said
            if key in forbidden
        ]
    worker = said.get("worker")
    if isinstance(worker, dict):
        found += _broken(worker, _WORKER_RULES, "worker.")
        error = worker.get("error")
        if isinstance(error, dict):
            found += _broken(error, _ERROR_RULES, "worker.error.")
    return found


class Validator:
    """
    Look for what is not as it should be in all records that it sees.

    Of each kind of flaw the first thousand are kept, all are counted.

    Args:
        tell: Is given each flaw that is kept, when it is found.

        is_whole: Whether no line was left out, so that one can be missed.
    """

    def __init__(
        self,
        tell: Callable[[Flaw], None] | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        self.flaws: list[Flaw] = []
        self._tell = tell
        self._is_whole = is_whole
        self._lines = 0
        self._raw_lines = 0
        self._counts: Counter[str] = Counter()
        self._writers = Writers()
        self._sequences = Sequences()
        self._latest: dict[Writer, float] = {}
        self._right_orders: set[tuple[str, ...]] = set()

    def see(self, record: Record) -> None:
        """
        Look at *record*. A line that torch wrote itself is only counted.
        """
        self._lines += 1
        if _is_of_torch(record):
            self._raw_lines += 1
            return
        said = record.said
        for what in problems(said):
            self._find("schema", record, what)
        if not self._is_in_order(tuple(said)):
            self._find("order", record, "keys out of order")
        timestamp, time = said.get("timestamp"), said.get("time")
        if (
            type(timestamp) is int
            and isinstance(time, str)
            and time != instant(timestamp)
        ):
            self._find(
                "time",
                record,
                f"time is {_shown(time)}, but timestamp {_shown(timestamp)}",
            )
        self._see_writer(record)

    def report(self, finding: Finding) -> None:
        """
        Take what the reader found: a line that is no record.
        """
        self._keep(Flaw(_reading_kind(finding.what), finding))

    def finish(self) -> None:
        """
        Tell what is missing, when all records were seen.
        """
        if self._is_whole:
            for loss in self._sequences.losses():
                finding = Finding(loss.file, 0, _told(loss))
                self._keep(Flaw("missing", finding))

    def as_dict(self) -> dict[str, Any]:
        """
        Return what was found, made of JSON's types.

        Returns:
            ``lines``, how many records there were, ``raw`` of them torch's
            own; ``findings``: ``file``, ``line`` (0: the file as a whole),
            ``what`` and ``kind`` of each that was kept; ``counts``, how many
            of each kind there are.
        """
        return {
            "lines": self._lines,
            "raw": self._raw_lines,
            "findings": [
                {
                    "file": finding.file,
                    "line": finding.number,
                    "what": finding.what,
                    "kind": kind,
                }
                for kind, finding in self.flaws
            ],
            "counts": dict(sorted(self._counts.items())),
        }

    def _see_writer(self, record: Record) -> None:
        said = record.said
        host, pid, seq = map(said.get, ("hostname", "pid", "seq"))
        if not isinstance(host, str) or type(pid) is not int:
            return
        is_rdzv = said.get("kind") == "rdzv"
        writer = self._writers.writer(record.file, host, pid, is_rdzv=is_rdzv)
        if (
            type(seq) is int
            and seq >= 0
            and self._sequences.see(
                writer, record.file, seq, record.raw, is_rdzv=is_rdzv
            )
        ):
            self._find("duplicate", record, f"seen before: seq {seq}")
            return
        timestamp = time_of(said)
        if timestamp is None or not EARLIEST <= timestamp <= LATEST:
            return
        back = self._latest.get(writer, timestamp) - timestamp
        self._latest[writer] = timestamp
        if len(self._latest) > _MOST_WRITERS:
            self._latest.clear()
        if back > _LARGEST_STEP_BACK:
            what = f"time goes back by {back / 1000:.1f} s"
            self._find("time_back", record, f"{what} ({_name(writer)})")

    def _is_in_order(self, keys: tuple[str, ...]) -> bool:
        """
        Tell whether our keys are in their order, and before all others.
        """
        if keys in self._right_orders:
            return True
        ours = tuple(key for key in KEYS if key in keys)
        if ours != keys[: len(ours)]:
            return False
        # Keys may be of any length, and different on each line.
        if len(self._right_orders) < _MOST_ORDERS and len(keys) < 2 * len(
            KEYS
        ):
            self._right_orders.add(keys)
        return True

    def _find(self, kind: str, record: Record, what: str) -> None:
        self._keep(Flaw(kind, Finding(record.file, record.number, what)))

    def _keep(self, flaw: Flaw) -> None:
        self._counts[flaw.kind] += 1
        if self._counts[flaw.kind] > _MOST_KEPT:
            return
        self.flaws.append(flaw)
        if self._tell is not None:
            self._tell(flaw)


def _broken(
    said: dict[str, Any], rules: dict[str, Rule], where: str = ""
) -> Iterator[str]:
    """
    Yield what values in *said* are not as *rules* want them.
    """
    for key, value in said.items():
        rule = rules.get(key)
        if rule is None:
            # Only at the root are keys that we do not know.
            if where:
                yield f"unknown key {where}{_shown(key)}"
        elif not rule.holds(value):
            yield f"{where}{key} is {_shown(value)}, expected {rule.expected}"


def _is_of_torch(record: Record) -> bool:
    """
    Tell whether the line does not say its kind, and yet the kind is known.
    """
    said = record.said
    if "seq" in said or "time" in said or "kind" not in said:
        return False
    try:
        value = decode(record.raw)
    except ValueError:
        return False
    return isinstance(value, dict) and "kind" not in value


def _reading_kind(what: str) -> str:
    for part, kind in READING_KINDS.items():
        if part in what:
            return kind
    return "bad"


def _told(loss: Loss) -> str:
    spans = ", ".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in loss.spans
    )
    told = sum(last - first + 1 for first, last in loss.spans)
    more = ", …" if told < loss.lines else ""
    lines = "1 line" if loss.lines == 1 else f"{loss.lines} lines"
    return f"{_name(loss.writer)}: {lines} missing (seq {spans}{more})"


def _name(writer: Writer) -> str:
    return f"{writer[0]} pid {writer[1]}"


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    if len(text) > _LONGEST_VALUE:
        return text[: _LONGEST_VALUE - 1] + "…"
    return text
