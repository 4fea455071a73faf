"""
What a picture is made of: lanes, spans, marks.
"""

from __future__ import annotations

from typing import Final, NamedTuple


SPAN_KINDS: Final = (
    "failed",
    "killed",
    "lost",
    "stopped",
    "running",
    "succeeded",
    "waiting",
    "idle",
    "silent",
)
"""How a stretch of time is drawn, the worst end of a worker first."""

MARK_KINDS: Final = (
    "cause",
    "lost",
    "killed",
    "failure",
    "agent",
    "rendezvous",
    "signal",
    "restart",
    "removed",
    "gap",
    "stopped",
    "note",
)
"""What a mark stands for, the gravest first."""

LEVELS: Final = ("error", "warning", "info")


class Lane(NamedTuple):
    """
    A row: a node, or one of its workers in all attempts.
    """

    name: str
    node: int
    """The number of the node's own lane, which for a node is this one."""
    host: str
    ranks: tuple[int, ...]
    pids: tuple[int, ...]
    worst: str
    """Of its spans' kinds."""


class Span(NamedTuple):
    """
    A stretch of time in a lane, in ms since the picture's base.
    """

    lane: int
    kind: str
    start: int
    end: int
    attempt: int | None
    text: str
    places: tuple[str, ...] = ()


class Mark(NamedTuple):
    """
    Something that happened in a lane, at ms since the picture's base.
    """

    lane: int
    kind: str
    level: str
    at: int
    attempt: int | None
    text: str
    places: tuple[str, ...] = ()
    victims: tuple[int, ...] = ()
    """The numbers of the marks of those that it took along."""


class Picture(NamedTuple):
    """
    What is drawn of one run.
    """

    run_id: str
    outcome: str
    account: tuple[str, ...]
    """What ``explain`` tells people, line by line."""
    summary: str
    """The first cause, in its words."""
    base: int | None
    """In ms since the epoch; `None` where lines have no time: then all is
    in the order of lines, and the number of a line stands for ms."""
    first_line: int
    """The number of the line that stands at 0, where lines have no time."""
    length: int
    lanes: tuple[Lane, ...]
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    first: int | None
    """The number of the first cause's mark."""
    notes_left_out: int = 0
