"""
What is known of the nodes of a run whose end was not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .losses import is_done
from .moments import instant
from .runs import Node, latest
from .verdicts import Verdict
from .wording import counted, duration_text


# Three keep-alives; then the other nodes give it up.
_SILENCE: Final = 15_000
_MOST_NAMED: Final = 3


def open_ends(verdict: Verdict) -> Iterator[str]:
    """
    Yield why the end of a run that seems to go on is not known.
    """
    agents = [node for node in verdict.run.nodes if node.is_agent]
    heard_last = latest(node.last for node in agents)
    lost = {each.id for each in verdict.lost_nodes}
    silences = {
        node.id: silence
        for node in agents
        if node.id not in lost
        and (silence := _silence(node, heard_last)) > _SILENCE
    }
    heard = [node for node in agents if node.id not in lost | {*silences}]
    yield (
        "how it ended: no end was recorded; it may still be running, or its"
        f" agents were killed, or lines are missing{''.join(_states(heard))}"
    )
    silent = [node for node in agents if node.id in silences]
    for node in silent[:_MOST_NAMED]:
        last = node.last.time if node.last else None
        yield (
            f"what became of {node.id}: it was last heard of at"
            f" {instant(last or 0)}, {duration_text(silences[node.id])} before"
            " the last line of the others"
        )
    more = len(silent) - _MOST_NAMED
    if more > 0:
        yield (
            f"what became of {counted(more, 'node')} more, of which nothing"
            f" was heard for the last {_SILENCE // 1000} s or longer"
        )


def _silence(node: Node, heard_last: int | None) -> int:
    """
    Return for how long *node* said nothing while others did, in ms.
    """
    last = node.last.time if node.last else None
    if last is None or heard_last is None or is_done(node):
        return 0
    return heard_last - last


def _states(nodes: list[Node]) -> Iterator[str]:
    """
    Yield which of *nodes* do nothing any more, as far as they say so.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        if node.said is not None:
            state = "has ended", "have ended"
        elif any(part.finished for part in node.parts[-1:]):
            state = (
                "has finished, and waits for the others",
                "have finished, and wait for the others",
            )
        elif node.waiting is not None:
            state = "waits in the rendezvous", "wait in the rendezvous"
        else:
            continue
        groups.setdefault(state, []).append(node.id)
    for (does, do), names in groups.items():
        yield f"; {_named(names)} {does if len(names) == 1 else do}"


def _named(names: list[str]) -> str:
    if len(names) > _MOST_NAMED:
        return counted(len(names), "node")
    return ", ".join(names)
