"""
What the nodes did together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from .runs import Attempt, Node, Part, known


_Place: TypeAlias = "tuple[int, int, int]"
"""Launch, round, and the rank of a node in it."""
_Seat: TypeAlias = "tuple[int | None, int, int]"
"""Round, where it has no number how many came before, and the rank in it."""


def jobs_of(nodes: list[Node]) -> list[list[Node]]:
    """
    Return *nodes* by the job they belong to; as a rule that is one.

    Two that had the same place in the same round, both alive at one time, are
    of two jobs that were given the same run id.
    """
    jobs: list[tuple[list[Node], dict[_Seat, int]]] = []
    for node in sorted(nodes, key=_first_time):
        seats = _seats(node)
        begin = _first_time(node)
        for job in jobs:
            # Until when each seat was taken.
            taken = job[1]
            if all(taken.get(seat, begin) <= begin for seat in seats):
                break
        else:
            job = ([], {})
            jobs.append(job)
        mine, taken = job
        mine.append(node)
        end = node.last.time if node.last else None
        for seat in seats:
            taken[seat] = max(taken.get(seat, begin), end or begin)
    return [mine for mine, _ in jobs]


def _seats(node: Node) -> list[_Seat]:
    return [
        (part.round, ordinal if part.round is None else 0, part.group_rank)
        for ordinal, part in enumerate(node.parts)
        if part.group_rank is not None
    ]


def attempts_of(nodes: list[Node]) -> list[Attempt]:
    """
    Return what the nodes did together, in the order of time.

    The number of a round tells which nodes met; without one, the first time
    of each is one attempt, and so on. When a job was started again under the
    same run id, all begins anew.
    """
    grouped: dict[tuple[int, int], list[Part]] = {}
    taken: set[_Place] = set()
    for node in sorted(nodes, key=_first_time):
        launch = next(n for n in count() if taken.isdisjoint(_places(node, n)))
        taken.update(_places(node, launch))
        for key, part in _keyed(node):
            grouped.setdefault((launch, key), []).append(part)
    attempts = []
    for number, group in enumerate(sorted(grouped)):
        parts = sorted(
            grouped[group], key=lambda part: (_rank_of(part), part.node)
        )
        rounds = [*known(part.round for part in parts)]
        attempts.append(Attempt(number, rounds[0] if rounds else None, parts))
    return attempts


def _first_time(node: Node) -> int:
    return node.first.time or 0 if node.first else 0


def _rank_of(part: Part) -> int:
    return -1 if part.group_rank is None else part.group_rank


def _keyed(node: Node) -> Iterator[tuple[int, Part]]:
    for ordinal, part in enumerate(node.parts):
        yield (ordinal if part.round is None else part.round), part


def _places(node: Node, launch: int) -> list[_Place]:
    """
    Return the places that *node* has if it took part in *launch*.
    """
    return [
        (launch, key, part.group_rank)
        for key, part in _keyed(node)
        if part.group_rank is not None
    ]
