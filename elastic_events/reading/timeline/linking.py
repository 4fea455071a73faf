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


def draw_causes(verdict: Verdict, canvas: Canvas) -> int | None:
    """
    Turn the marks of what failed first into causes, linked to victims.

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
            text=f"first cause: {summary(cause)}{sure}",
            attempt=cause.attempt,
            victims=tuple(_marks_of(victims, cause, number, canvas)),
        )
    return first


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
