"""
Why a run failed: the first cause, told apart from its victims.

The order of evidence: workers that failed by themselves, a lost node, an
error of an agent or a signal to it, workers that lost their peers, and last
those that were only stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest

from .certainty import is_certain
from .hosts import host_label
from .losses import is_done, lost_in, lost_nodes
from .runs import Attempt, Node, Part, Run
from .suspects import (
    Suspect,
    Tier,
    suspected_agents,
    suspected_nodes,
    suspected_workers,
)
from .verdicts import (
    AttemptAccount,
    Cause,
    LostNode,
    Outcome,
    Verdict,
    Victim,
)
from .victims import found_it_closed, worker_victims


def verdict(run: Run, clocks: Mapping[str, float] | None = None) -> Verdict:
    """
    Return what came of *run*, and why.

    Args:
        run: What was recorded of it.

        clocks: Hosts whose clocks are off, and by how many seconds.
    """
    return _Judge(run, clocks or {}).verdict()


class _Judge:
    """
    Judge one run.
    """

    def __init__(self, run: Run, clocks: Mapping[str, float]) -> None:
        self._run = run
        self._lost = tuple(lost_nodes(run))
        self._misled = _nodes_on(run, clocks)
        self._misled |= {node.id for node in run.nodes if node.set_back}
        self._is_mixed = any(node.is_mixed for node in run.nodes)
        self._silent = {
            node.id
            for node in run.nodes
            if node.is_agent and not is_done(node)
        }
        self._failed_in = _by_last_attempt(run)

    def verdict(self) -> Verdict:
        """
        Return what came of the run, and why.
        """
        attempts = self._run.attempts
        accounts = tuple(
            self._account(attempt, later)
            for attempt, later in zip_longest(attempts, attempts[1:])
        )
        outcome = self._outcome(accounts)
        cause: Cause | None = None
        victims: tuple[Victim, ...] = ()
        if outcome == "failed":
            cause, victims = self._end(accounts)
        return Verdict(
            self._run, outcome, cause, victims, self._lost, accounts
        )

    def _account(
        self, attempt: Attempt, later: Attempt | None
    ) -> AttemptAccount:
        gone = lost_in(attempt, later, self._lost)
        failed = self._failed_in.get(attempt.number, [])
        outcome = _outcome_of_attempt(attempt, later, gone, failed)
        if outcome != "failed":
            return AttemptAccount(attempt, outcome, None, ())
        if later is None:
            failed = [*failed, *self._failed_in.get(None, [])]
        suspects = [
            *suspected_workers(self._run, attempt),
            *suspected_nodes(gone, attempt.number),
            *suspected_agents(failed, attempt.number),
        ]
        return AttemptAccount(
            attempt, outcome, *self._judged(suspects, attempt, failed)
        )

    def _outcome(self, accounts: tuple[AttemptAccount, ...]) -> Outcome:
        failed = self._failed_at_end()
        if not accounts:
            if failed:
                return "failed"
            is_waiting = any(node.waiting for node in self._run.nodes)
            return "running" if is_waiting else "unknown"
        last = accounts[-1]
        if last.outcome == "succeeded":
            is_spoilt = last.attempt.number in self._failed_in
            return "failed" if is_spoilt else "succeeded"
        if last.outcome == "restarted" or _will_restart(last.attempt):
            return "failed" if failed else "running"
        return last.outcome

    def _failed_at_end(self) -> list[Node]:
        """
        Return the nodes that failed after the last attempt had begun.
        """
        last = self._run.attempts[-1].number if self._run.attempts else None
        return [
            node
            for number in dict.fromkeys([last, None])
            for node in self._failed_in.get(number, [])
        ]

    def _end(
        self, accounts: tuple[AttemptAccount, ...]
    ) -> tuple[Cause | None, tuple[Victim, ...]]:
        """
        Return the cause of the end of a failed run, and its victims.
        """
        last = accounts[-1] if accounts else None
        if last is not None and last.cause and not _will_restart(last.attempt):
            return last.cause, last.victims
        # It failed between two attempts, or before the first.
        failed = self._failed_at_end()
        gone = [*self._lost]
        if last is not None:
            gone = lost_in(last.attempt, None, self._lost)
        suspects = [
            *suspected_nodes(gone, last.attempt.number if last else None),
            *suspected_agents(failed, None),
        ]
        if last is not None and all(
            each.tier is Tier.RENDEZVOUS_CLOSED for each in suspects
        ):
            # They only found that the job was over.
            closed = found_it_closed(failed, last.cause)
            return last.cause, (*last.victims, *closed)
        cause, victims = self._judged(suspects, None, failed)
        if last is not None and cause == last.cause:
            return last.cause, last.victims
        return cause, victims

    def _judged(
        self,
        suspects: list[Suspect],
        attempt: Attempt | None,
        nodes: Iterable[Node],
    ) -> tuple[Cause | None, tuple[Victim, ...]]:
        """
        Return the first of *suspects*, and who its victims are.
        """
        suspects.sort(key=lambda each: (each.tier, each.time))
        first = suspects[0] if suspects else None
        if first is None or first.tier is Tier.STOPPED:
            number = attempt.number if attempt else None
            cause = Cause("unknown", attempt=number)
            first = None
        else:
            is_sure = is_certain(suspects, self._misled)
            is_sure = is_sure and self._run.is_whole and not self._is_mixed
            is_sure = is_sure and not self._may_be_hidden(first, attempt)
            cause = first.cause._replace(certain=is_sure)
        victims: list[Victim] = []
        if attempt is not None:
            culprit = first.worker if first else None
            victims += worker_victims(attempt, culprit)
        return cause, (*victims, *found_it_closed(nodes, cause))

    def _may_be_hidden(self, first: Suspect, attempt: Attempt | None) -> bool:
        """
        Tell whether something may have failed before *first* unrecorded.
        """
        if attempt is not None:
            lost = sum(not each.is_seen for each in self._lost)
            if attempt.unseen > lost:
                return True
            is_said = first.worker is None or first.worker.error is not None
            if not is_said and any(
                part.node != first.cause.node and _is_going_on(part)
                for part in attempt.parts
            ):
                return True
        # An agent may also fail because another one is gone.
        is_by_itself = first.cause.kind not in {"agent", "rendezvous"}
        return not is_by_itself and bool(self._silent - {first.cause.node})


def _is_going_on(part: Part) -> bool:
    """
    Tell whether no end is known of what a node did in an attempt.
    """
    return part.ended is None and all(
        worker.state == "running" for worker in part.workers
    )


def _nodes_on(run: Run, hosts: Iterable[str]) -> set[str]:
    """
    Return the ids of the nodes on *hosts*, by either name of theirs.
    """
    labels = {host_label(host) for host in hosts}
    return {
        node.id
        for node in run.nodes
        if host_label(node.host) in labels
        or host_label(node.id.rsplit("_", 2)[0]) in labels
    }


def _has_failed(node: Node) -> bool:
    """
    Tell whether *node* ended with an error of its agent, or a signal to it.
    """
    return (
        node.rendezvous_failure is not None
        or node.told_to_stop is not None
        or (node.said is not None and node.said[0].state == "FAILED")
    )


def _by_last_attempt(run: Run) -> dict[int | None, list[Node]]:
    """
    Return the nodes that failed by the last attempt in which each took part.

    Those that took part in none are under `None`.
    """
    numbers = {
        id(part): attempt.number
        for attempt in run.attempts
        for part in attempt.parts
    }
    found: dict[int | None, list[Node]] = {}
    for node in filter(_has_failed, run.nodes):
        number = numbers[id(node.parts[-1])] if node.parts else None
        found.setdefault(number, []).append(node)
    return found


def _outcome_of_attempt(
    attempt: Attempt,
    later: Attempt | None,
    gone: list[LostNode],
    failed: list[Node],
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
        return "failed" if raised or gone or failed else "restarted"
    if gone or failed:
        return "failed"
    if any(worker.state == "running" for worker in workers):
        return "running"
    is_starting = any(part.ended is None for part in attempt.parts)
    return "running" if is_starting and not workers else "unknown"


def _will_restart(attempt: Attempt) -> bool:
    return any(part.restarting is not None for part in attempt.parts)
