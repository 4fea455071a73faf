"""
The first causes, and who fell victim to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..summary import summary
from ..verdicts import Cause, Verdict, Victim
from .canvas import Canvas


_KINDS: Final = {"node_lost": ("lost",), "unknown": ()}


def draw_causes(
    verdict: Verdict, canvas: Canvas, since: int | None = None
) -> int | None:
    """
    Turn the marks of what failed first into causes, linked to victims.

    Args:
        verdict: What came of the run.

        canvas: Where its marks are drawn.

        since: When the run began; `None` where its lines have no time.

    Returns:
        The number of the mark of the run's first cause.
    """
    first = None
    causes = [(each.cause, each.victims) for each in verdict.attempts]
    for cause, victims in (
        (verdict.cause, verdict.victims),
        *causes,
    ):
        number = _mark_of(cause, canvas) if cause else None
        if number is None or cause is None:
            continue
        first = number if first is None else first
        mark = canvas.marks[number]
        if mark.kind == "cause":
            continue
        sure = "" if cause.certain else " (not certain)"
        canvas.marks[number] = mark._replace(
            kind="cause",
            level="error",
            at=_time_of(cause, mark.at, since),
            text=f"first cause: {summary(cause)}{sure}",
            attempt=cause.attempt,
            victims=tuple(_marks_of(victims, cause, number, canvas)),
        )
    return first


def _time_of(cause: Cause, recorded: int, since: int | None) -> int:
    """
    Return when a cause was: of a worker, it may be recorded much later.
    """
    time = cause.time
    if cause.kind != "worker" or time is None or since is None:
        return recorded
    return time if since <= time < recorded else recorded


def _mark_of(cause: Cause, canvas: Canvas) -> int | None:
    if cause.kind == "worker":
        return canvas.mark_of_worker(cause)
    kinds = _KINDS.get(cause.kind, ("signal", "rendezvous", "agent"))
    # It may be the cause of an attempt already.
    return canvas.mark_of_node(cause.node or "", (*kinds, "cause"))


def _marks_of(
    victims: Iterable[Victim], cause: Cause, own: int, canvas: Canvas
) -> Iterator[int]:
    for victim in victims:
        named = Cause(
            "worker",
            attempt=cause.attempt,
            node=victim.node,
            rank=victim.rank,
        )
        number = canvas.mark_of_worker(named)
        if number is None and victim.rank is None:
            agent = Cause("agent", node=victim.node)
            number = _mark_of(agent, canvas)
        if number is not None and number != own:
            yield number
