"""
Whether lines are as they are promised to be, and none is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..encoding import decode
from ..schema import KEYS
from .moments import instant
from .records import Finding, Record, is_time, time_of
from .rules import problems, shown
from .sequences import Loss, Sequences
from .wording import counted, spans_text
from .writers import Writer, Writers


_MOST_KEPT: Final = 1000
_MOST_WRITERS: Final = 10_000
_MOST_ORDERS: Final = 1000
_LARGEST_STEP_BACK: Final = 1000

READING_KINDS: Final = {
    "torn record": "torn",
    "records on one line": "glued",
    "bytes passed over": "over_long",
}
"""What the reader says of a bad line, and the kind of flaw that it is."""


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
                f"time is {shown(time)}, but timestamp {shown(timestamp)}",
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
        if not is_time(timestamp):
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
    spans = spans_text(loss.spans)
    told = sum(last - first + 1 for first, last in loss.spans)
    more = ", …" if told < loss.lines else ""
    lines = counted(loss.lines, "line")
    return f"{_name(loss.writer)}: {lines} missing (seq {spans}{more})"


def _name(writer: Writer) -> str:
    return f"{writer[0]} pid {writer[1]}"
