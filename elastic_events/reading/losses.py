"""
Nodes that were gone without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

from .runs import Attempt, Moment, Node, Run
from .verdicts import LostNode


def lost_nodes(run: Run) -> Iterator[LostNode]:
    """
    Yield the nodes that were lost.
    """
    nodes = {node.id: node for node in run.nodes}
    found = set()
    for node in run.nodes:
        for lost, missed in node.removed:
            gone = nodes.get(lost)
            if lost not in found and _is_silent(gone, missed):
                found.add(lost)
                yield LostNode(
                    lost,
                    gone.last if gone else None,
                    missed,
                    is_guess=False,
                    is_seen=gone is not None and gone.parts != [],
                )
    parted = [node for node in run.nodes if node.parts]
    silent = [node for node in parted if node.said is None]
    if len(silent) != 1 or len(parted) == 1:
        return
    (node,) = silent
    if node.is_agent and node.id not in found and not is_done(node):
        yield LostNode(node.id, node.last, None, is_guess=True, is_seen=True)


def lost_in(
    attempt: Attempt, later: Attempt | None, lost: tuple[LostNode, ...]
) -> list[LostNode]:
    """
    Return those of *lost* that were lost in *attempt*.

    Args:
        attempt: One attempt.

        later: The next one, if there is one.

        lost: All nodes that were lost.
    """
    here = set(attempt.nodes)
    there = set(later.nodes) if later else set()
    is_sure = later is None or not later.unseen
    gone = []
    for each in lost:
        if each.id in here - there:
            gone.append(each._replace(is_guess=each.is_guess or not is_sure))
        elif not each.is_seen and attempt.unseen and is_sure:
            # By its own lines it may have gone on, or ended otherwise.
            gone.append(each._replace(is_guess=True))
    return gone


def _is_silent(node: Node | None, since: Moment) -> bool:
    """
    Tell whether *node* recorded nothing after it was missed.
    """
    if node is None:
        return True
    if is_done(node):
        return False
    last = node.last.time if node.last else None
    return last is None or since.time is None or last <= since.time


def is_done(node: Node) -> bool:
    """
    Tell whether it is known what came of *node*, so that it may be silent.
    """
    return (
        node.said is not None
        or node.told_to_stop is not None
        or node.rendezvous_failure is not None
        or any(part.finished for part in node.parts[-1:])
    )
