"""
Whether what is suspected most is the first cause beyond doubt.
"""

from __future__ import annotations

from collections.abc import Container

from .runs import Worker
from .suspects import NEVER, RESOLUTION, Suspect, Tier


def is_certain(suspects: list[Suspect], misled: Container[str]) -> bool:
    """
    Tell whether the first of *suspects* is the first cause beyond doubt.

    Args:
        suspects: The most suspected one first.

        misled: The nodes whose clocks are off.
    """
    first, *others = suspects
    if first.is_guess or first.tier not in (
        Tier.BY_ITSELF,
        Tier.NODE_LOST,
        Tier.AGENT,
    ):
        return False
    if first.worker is not None:
        lost = [each for each in others if each.tier == Tier.NODE_LOST]
        if lost and first.worker.error is None:
            return False
        if not all(_is_before(first, each, misled) for each in lost):
            return False
    rivals = [each for each in others if each.tier == first.tier]
    return all(_is_before(first, each, misled) for each in rivals)


def _is_before(first: Suspect, other: Suspect, misled: Container[str]) -> bool:
    is_same_node = first.cause.node == other.cause.node
    if is_same_node and first.worker and other.worker:
        exact = first.worker.failed_at, other.worker.failed_at
        if exact[0] is not None and exact[1] is not None:
            return exact[0] < exact[1]
    elif is_same_node:
        return True
    elif first.cause.node in misled or other.cause.node in misled:
        return False
    if other.time == NEVER or not _is_prompt(other.worker):
        return False
    return other.time - first.time > RESOLUTION


def _is_prompt(worker: Worker | None) -> bool:
    """
    Tell whether the time of a failure is that of the failure itself.

    torch's event of it comes when all others of the node have stopped, which
    may take half a minute; its logs tell when that began.
    """
    if worker is None or worker.is_first_of_node or worker.failed_at:
        return True
    return worker.error is not None and worker.error.timestamp is not None
