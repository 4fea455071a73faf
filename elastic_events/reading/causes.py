"""
Why a run failed: the first cause, told apart from its victims.

The order of evidence: workers that failed by themselves, a lost node, an
error of an agent or a signal to it, workers that lost their peers, and last
those that were only stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Literal, NamedTuple, TypeAlias

from .runs import Attempt, Moment, Node, Part, Run, Worker
from .suspects import (
    Cause,
    LostNode,
    Suspect,
    Tier,
    error_of_agent,
    is_certain,
    is_of_agent,
    is_peer_closed,
    is_rendezvous_closed,
    suspected_agents,
    suspected_nodes,
    suspected_workers,
)


Why: TypeAlias = Literal[
    "stopped_by_agent", "peer_closed", "rendezvous_closed", "unknown"
]
Outcome: TypeAlias = Literal[
    "succeeded", "failed", "restarted", "running", "unknown"
]
"""``restarted`` is an attempt that ended because nodes came or went."""


class Victim(NamedTuple):
    """
    Who failed only because something else had.
    """

    node: str
    rank: int | None
    exit_code: int | None
    why: Why


class AttemptAccount(NamedTuple):
    """
    What came of an attempt, and why.
    """

    attempt: Attempt
    outcome: Outcome
    cause: Cause | None
    victims: tuple[Victim, ...]


class Verdict(NamedTuple):
    """
    What came of a run, and why.
    """

    run: Run
    outcome: Outcome
    cause: Cause | None
    victims: tuple[Victim, ...]
    lost_nodes: tuple[LostNode, ...]
    attempts: tuple[AttemptAccount, ...]


def verdict(run: Run) -> Verdict:
    """
    Return what came of *run*, and why.
    """
    lost = tuple(_lost_nodes(run))
    accounts = tuple(
        _account(run, attempt, later, lost)
        for attempt, later in zip_longest(run.attempts, run.attempts[1:])
    )
    outcome = _outcome(run, accounts)
    cause: Cause | None = None
    victims: tuple[Victim, ...] = ()
    if outcome == "failed":
        cause, victims = _end(run, accounts, lost)
    return Verdict(run, outcome, cause, victims, lost, accounts)


def _lost_nodes(run: Run) -> Iterator[LostNode]:
    known = {node.id: node for node in run.nodes}
    found = set()
    for node in run.nodes:
        for lost, missed in node.removed:
            gone = known.get(lost)
            if lost not in found and _is_silent(gone, missed):
                found.add(lost)
                last = gone.last if gone else None
                yield LostNode(lost, last, missed, is_guess=False)
    for node in run.nodes:
        if node.id not in found and _is_gone(node, run):
            yield LostNode(node.id, node.last, None, is_guess=True)


def _is_silent(node: Node | None, since: Moment) -> bool:
    """
    Tell whether *node* recorded nothing after it was missed.
    """
    if node is None:
        return True
    if node.said is not None:
        return False
    last = node.last.time if node.last else None
    return last is None or since.time is None or last <= since.time


def _is_gone(node: Node, run: Run) -> bool:
    """
    Tell whether *node* is silent although all others have ended.
    """
    others = [each for each in run.nodes if each is not node and each.parts]
    return (
        node.is_agent
        and node.said is None
        and node.parts != []
        and bool(others)
        and all(each.said is not None for each in others)
        and not any(part.finished for part in node.parts[-1:])
    )


def _account(
    run: Run,
    attempt: Attempt,
    later: Attempt | None,
    lost: tuple[LostNode, ...],
) -> AttemptAccount:
    gone = [each for each in lost if _was_lost_in(each, attempt, later)]
    outcome = _outcome_of_attempt(run, attempt, later, gone)
    if outcome != "failed":
        return AttemptAccount(attempt, outcome, None, ())
    nodes = [] if later else _failed_nodes(run)
    suspects = [
        *suspected_workers(run, attempt),
        *suspected_nodes(gone, attempt.number),
        *suspected_agents(nodes, attempt.number),
    ]
    return AttemptAccount(attempt, outcome, *_judged(suspects, attempt, nodes))


def _was_lost_in(
    lost: LostNode, attempt: Attempt, later: Attempt | None
) -> bool:
    return lost.id in attempt.nodes and (
        later is None or lost.id not in later.nodes
    )


def _outcome_of_attempt(
    run: Run,
    attempt: Attempt,
    later: Attempt | None,
    gone: list[LostNode],
) -> Outcome:
    workers = [*attempt.workers]
    if any(worker.state == "failed" for worker in workers):
        return "failed"
    if any(
        part.restarting and part.restarting.failed for part in attempt.parts
    ):
        return "failed"
    if workers and all(worker.state == "succeeded" for worker in workers):
        return "succeeded"
    if not gone and any(part.restarting for part in attempt.parts):
        return "restarted"
    if later is not None:
        raised = (later.restart or 0) > (attempt.restart or 0)
        return "failed" if raised or gone else "restarted"
    if gone or any(
        part.node in _ids(_failed_nodes(run)) for part in attempt.parts
    ):
        return "failed"
    if any(worker.state == "running" for worker in workers):
        return "running"
    return "unknown"


def _outcome(run: Run, accounts: tuple[AttemptAccount, ...]) -> Outcome:
    failed = _failed_nodes(run)
    if not accounts:
        if failed:
            return "failed"
        return "running" if any(n.waiting for n in run.nodes) else "unknown"
    last = accounts[-1]
    if last.outcome == "succeeded":
        took_part = set(last.attempt.nodes)
        return "failed" if took_part & _ids(failed) else "succeeded"
    if last.outcome == "restarted" or _will_restart(last.attempt):
        return "failed" if failed else "running"
    return last.outcome


def _will_restart(attempt: Attempt) -> bool:
    return any(part.restarting is not None for part in attempt.parts)


def _failed_nodes(run: Run) -> list[Node]:
    """
    Return the nodes that ended with an error of their agent.
    """
    return [
        node
        for node in run.nodes
        if node.rendezvous_failure is not None
        or node.told_to_stop is not None
        or (node.said is not None and node.said[0].state == "FAILED")
    ]


def _ids(nodes: Iterable[Node]) -> set[str]:
    return {node.id for node in nodes}


def _end(
    run: Run, accounts: tuple[AttemptAccount, ...], lost: tuple[LostNode, ...]
) -> tuple[Cause | None, tuple[Victim, ...]]:
    """
    Return the cause of the end of a failed run, and its victims.
    """
    last = accounts[-1] if accounts else None
    if last is not None and last.cause and not _will_restart(last.attempt):
        return last.cause, last.victims
    # It failed between two attempts, or before the first.
    nodes = _failed_nodes(run)
    attempt = last.attempt if last else None
    number = attempt.number if attempt else None
    gone = [
        each
        for each in lost
        if attempt is None or _was_lost_in(each, attempt, None)
    ]
    suspects = [
        *suspected_nodes(gone, number),
        *suspected_agents(nodes, None),
    ]
    if not suspects and last is not None:
        return last.cause, last.victims
    cause, victims = _judged(suspects, None, nodes)
    if last is not None and cause == last.cause:
        return last.cause, last.victims
    return cause, victims


def _judged(
    suspects: list[Suspect],
    attempt: Attempt | None,
    nodes: Iterable[Node],
) -> tuple[Cause | None, tuple[Victim, ...]]:
    """
    Return the first of *suspects*, and who its victims are.
    """
    suspects.sort(key=lambda each: (each.tier, each.time))
    first = suspects[0] if suspects else None
    cause = None
    if first is None or first.tier is Tier.STOPPED:
        number = attempt.number if attempt else None
        cause = Cause("unknown", attempt=number)
        first = None
    else:
        cause = first.cause._replace(certain=is_certain(suspects))
    victims: list[Victim] = []
    if attempt is not None:
        culprit = first.worker if first else None
        victims += _worker_victims(attempt, culprit)
    for node in nodes:
        is_closed = is_rendezvous_closed(error_of_agent(node))
        if is_closed and node.id != cause.node:
            victims.append(Victim(node.id, None, None, "rendezvous_closed"))
    return cause, tuple(victims)


def _worker_victims(
    attempt: Attempt, culprit: Worker | None
) -> Iterator[Victim]:
    for part in attempt.parts:
        for worker in part.workers:
            if worker is not culprit and _is_hurt(worker, part):
                yield Victim(
                    worker.node,
                    worker.rank,
                    worker.exit_code,
                    _why(worker),
                )


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
