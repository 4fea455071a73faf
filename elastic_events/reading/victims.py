"""
Who failed only because something else had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .evidence import is_of_agent, is_peer_closed, is_rendezvous_closed
from .runs import Attempt, Node, Part, Worker
from .suspects import error_of_agent
from .verdicts import Cause, Victim, Why


def worker_victims(
    attempt: Attempt, culprit: Worker | None
) -> Iterator[Victim]:
    """
    Yield the workers of *attempt* that *culprit* took along.
    """
    for part in attempt.parts:
        for worker in part.workers:
            if worker is not culprit and _is_hurt(worker, part):
                yield Victim(
                    worker.node,
                    worker.rank,
                    worker.exit_code,
                    _why(worker),
                )


def found_it_closed(
    nodes: Iterable[Node], cause: Cause | None
) -> Iterator[Victim]:
    """
    Yield the agents that failed only because the job was over.
    """
    for node in nodes:
        is_closed = is_rendezvous_closed(error_of_agent(node))
        if is_closed and (cause is None or node.id != cause.node):
            yield Victim(node.id, None, None, "rendezvous_closed")


def _is_hurt(worker: Worker, part: Part) -> bool:
    return worker.state in {"failed", "stopped"} or (
        worker.stopped_with is not None or part.restarting is not None
    )


def _why(worker: Worker) -> Why:
    if is_peer_closed(worker.error):
        return "peer_closed"
    if is_rendezvous_closed(worker.error):
        return "rendezvous_closed"
    if worker.stopped_with is not None or worker.state == "stopped":
        return "stopped_by_agent"
    return "stopped_by_agent" if is_of_agent(worker.exit_code) else "unknown"
