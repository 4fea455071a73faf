"""
What is drawn on: lanes with their spans and marks, as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ..escaping import escaped
from ..verdicts import Cause
from .pieces import SPAN_KINDS, Lane, Mark, Span
from .words import LONGEST_NAME


_LEVEL_OF: Final = {
    **dict.fromkeys(
        ("cause", "lost", "killed", "failure", "agent", "rendezvous"), "error"
    ),
    **dict.fromkeys(("signal", "restart", "removed", "gap"), "warning"),
    "stopped": "info",
}
_NO_SPAN: Final = len(SPAN_KINDS)


@dataclass
class Row:
    """
    A lane that is being drawn.
    """

    name: str
    node: int
    host: str = ""
    ranks: set[int] = field(default_factory=set)
    pids: set[int] = field(default_factory=set)
    worst: int = _NO_SPAN


class Canvas:
    """
    The picture of a run while it is drawn; its times are absolute.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.spans: list[Span] = []
        self.marks: list[Mark] = []
        self.nodes: dict[str, int] = {}
        """The lane of each node."""
        self.processes: dict[tuple[str, int], int] = {}
        """The lane of each process, by the label of its host and its pid."""
        self._workers: dict[tuple[int, str, str, int | None], int] = {}
        self._in_lane: dict[int, list[int]] = {}

    def add_row(self, name: str, node: int | None, host: str) -> int:
        """
        Add a lane, that of a worker if *node* is given, and return its number.
        """
        number = len(self.rows)
        name, host = escaped(name, LONGEST_NAME), escaped(host, LONGEST_NAME)
        self.rows.append(Row(name, number if node is None else node, host))
        return number

    def add_span(
        self,
        lane: int,
        kind: str,
        start: int,
        end: int,
        attempt: int | None,
        text: str,
        places: tuple[str, ...] = (),
    ) -> None:
        """
        Add a span; one that would end before it starts has no length.
        """
        self.spans.append(
            Span(lane, kind, start, max(start, end), attempt, text, places)
        )
        row = self.rows[lane]
        row.worst = min(row.worst, SPAN_KINDS.index(kind))

    def add_mark(
        self,
        lane: int,
        kind: str,
        at: int,
        text: str,
        places: tuple[str, ...],
        attempt: int | None = None,
        *,
        level: str | None = None,
    ) -> int:
        """
        Add a mark and return its number.
        """
        level = level or _LEVEL_OF[kind]
        number = len(self.marks)
        self.marks.append(Mark(lane, kind, level, at, attempt, text, places))
        self._in_lane.setdefault(lane, []).append(number)
        return number

    def name_mark(
        self,
        number: int,
        attempt: int | None,
        node: str,
        *,
        rank: int | None,
        pid: int | None,
    ) -> None:
        """
        Let a mark be found as that of a worker in an attempt.
        """
        self._workers[attempt or 0, node, "rank", rank] = number
        self._workers[attempt or 0, node, "pid", pid] = number

    def mark_of_worker(self, cause: Cause) -> int | None:
        """
        Return the number of the mark of the worker that *cause* names.
        """
        where = (cause.attempt or 0, cause.node or "")
        if cause.pid is not None:
            return self._workers.get((*where, "pid", cause.pid))
        return self._workers.get((*where, "rank", cause.rank))

    def mark_of_node(self, node: str, kinds: tuple[str, ...]) -> int | None:
        """
        Return the number of a node's first mark of one of *kinds*.
        """
        for number in self._in_lane.get(self.nodes.get(node, -1), ()):
            if self.marks[number].kind in kinds:
                return number
        return None

    def move_to_base(self) -> tuple[int, int]:
        """
        Let times begin with the earliest, and return it and the length.
        """
        times = [
            *(time for span in self.spans for time in (span.start, span.end)),
            *(mark.at for mark in self.marks),
        ]
        base = min(times, default=0)
        self.spans = [
            span._replace(start=span.start - base, end=span.end - base)
            for span in self.spans
        ]
        self.marks = [mark._replace(at=mark.at - base) for mark in self.marks]
        return base, max(times, default=0) - base

    def lanes(self) -> Iterator[Lane]:
        """
        Yield the lanes as they are in the end.
        """
        kinds = (*SPAN_KINDS, "")
        for row in self.rows:
            yield Lane(
                row.name,
                row.node,
                row.host,
                tuple(sorted(row.ranks)),
                tuple(sorted(row.pids)),
                kinds[row.worst],
            )
