"""
What the lines of a run do not tell, and which setting would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from .evidence import (
    has_waited_in_vain,
    is_of_agent,
    is_peer_closed,
    signal_told_by_shell,
)
from .open_ends import open_ends
from .runs import Node, Run
from .verdicts import AttemptAccount, Cause, Verdict
from .wording import ranks_text


_CRASHES: Final = {
    **dict.fromkeys(("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL"), ""),
    "SIGABRT": (
        "; NCCL's watchdog ends a worker so that has waited for another too"
        " long, and says so on its standard error"
    ),
}
_SENDERS: Final = {
    "SIGINT": "^C at its terminal, or the scheduler",
    "SIGHUP": "its terminal was closed, or the scheduler",
}
_TIMEOUT: Final = "RendezvousTimeoutError"
_SCHEDULER: Final = (
    "ask the scheduler (time limit, preemption, scancel, a deleted pod)"
)


def unknowns(verdict: Verdict, clocks: Mapping[str, float]) -> list[str]:
    """
    Return a sentence for each thing that is not known.

    Args:
        verdict: What came of the run.

        clocks: Hosts whose clocks are off, and by how many seconds.
    """
    # Several attempts may leave the same question.
    return [
        *dict.fromkeys(_all(verdict)),
        *(
            f"the clock of {host} is {abs(seconds):.1f} s"
            f" {'ahead' if seconds > 0 else 'behind'}: times of different"
            " nodes are shown as they are, and say little of what was first"
            for host, seconds in clocks.items()
        ),
    ]


def _all(verdict: Verdict) -> Iterator[str]:
    yield from _of_end(verdict)
    yield from _of_cause(verdict)
    yield from _of_lost_nodes(verdict)
    yield from _of_missing_nodes(verdict)
    yield from _of_attempts(verdict)
    yield from _of_nodes(verdict.run.nodes)
    if not verdict.run.is_whole:
        yield "what the lines tell that the filters left out: try without them"
    if verdict.run.shares_id:
        yield (
            "whether every line is this job's: another one had the same run"
            " id at the same time; --rdzv-id gives each its own"
        )


def _of_nodes(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        if node.is_mixed and node.first is not None:
            file = node.first.line.rpartition(":")[0]
            yield (
                f"which agent wrote which line of {file}: torch's own lines"
                " do not tell; give each agent a file of its own, or start"
                " torchrun with ELASTIC_EVENTS_DESTINATION set"
            )
        if node.set_back:
            yield (
                f"what was first on {node.id}, and when: its clock went back"
                f" by {node.set_back / 1000:.1f} s meanwhile; times are shown"
                " as they are"
            )


def _of_end(verdict: Verdict) -> Iterator[str]:
    if verdict.outcome == "running":
        yield from open_ends(verdict)
    elif verdict.outcome == "unknown":
        yield (
            "what came of it: the end of no worker was recorded; are the"
            " lines of all agents among the files?"
        )


def _of_cause(verdict: Verdict) -> Iterator[str]:
    cause = verdict.cause
    if cause is None:
        return
    yield from _of_one_cause(cause, "it")
    if not cause.certain and not _is_unseen(verdict):
        yield from _of_doubt(cause, verdict.run)
    if cause.kind == "signal":
        sender = _SENDERS.get(cause.signal or "", _SCHEDULER)
        yield f"who sent {cause.signal} to the agent: {sender}"


def _is_unseen(verdict: Verdict) -> bool:
    """
    Tell whether the doubt is due to lines that were not seen, or are mixed.
    """
    run = verdict.run
    if not run.is_whole or any(node.is_mixed for node in run.nodes):
        return True
    return any(
        account.cause == verdict.cause and account.attempt.unseen
        for account in verdict.attempts
    )


def _of_doubt(cause: Cause, run: Run) -> Iterator[str]:
    has_logs = any(
        node.has_logs for node in run.nodes if node.id == cause.node
    )
    if cause.kind == "worker" and is_peer_closed(cause.error):
        yield (
            f"who closed the connection that rank {_number(cause.rank)} lost:"
            " nothing that was recorded tells of another failure"
            f"{_those_done(cause, run)}"
        )
    elif (
        cause.kind == "worker"
        and is_of_agent(cause.exit_code)
        and not has_logs
    ):
        yield (
            f"whether rank {_number(cause.rank)} was killed by its agent:"
            " torch's events do not tell, but its logs do; start torchrun"
            " with ELASTIC_EVENTS_DESTINATION set, which records both"
        )
    elif cause.kind in {"worker", "agent", "signal", "rendezvous"}:
        other = "worker" if cause.kind == "worker" else "agent"
        yield (
            f"whether another {other} failed first: nothing orders them within"
            " the resolution of the times (torch's are whole seconds)"
        )


def _those_done(cause: Cause, run: Run) -> str:
    """
    Return who may have closed a connection because it was done.
    """
    done = [
        worker.rank
        for attempt in run.attempts
        for worker in attempt.workers
        if attempt.number == cause.attempt
        and worker.state == "succeeded"
        and worker.rank is not None
    ]
    if not done:
        return ""
    ranks = "ranks" if len(done) > 1 else "rank"
    return f"; {ranks} {ranks_text(done)} had ended well"


def _of_one_cause(cause: Cause, what: str) -> Iterator[str]:
    who = f"rank {_number(cause.rank)}"
    if cause.kind == "unknown":
        yield (
            f"which worker failed first when {what} failed: torch's events do"
            " not tell, but its logs do; start torchrun with"
            " ELASTIC_EVENTS_DESTINATION set, which records both"
        )
    if cause.kind == "worker" and has_waited_in_vain(cause.error):
        yield (
            f"for whom {who} waited in vain: a worker that is slow or hangs"
            " need not fail; look at what those without this error did"
        )
    if cause.kind == "worker" and cause.error is None:
        yield from _of_worker_without_error(cause, who)


def _of_worker_without_error(cause: Cause, who: str) -> Iterator[str]:
    told = signal_told_by_shell(cause.exit_code)
    signal = cause.signal or told
    if told:
        who += f" (exit code {cause.exit_code} is a shell's for {told})"
    if signal == "SIGKILL":
        yield (
            f"who killed {who}: the kernel's log of its host tells whether"
            " memory had run out (dmesg, oom-killer)"
        )
    elif signal in _CRASHES:
        yield (
            f"where {who} crashed: PYTHONFAULTHANDLER=1 in its environment"
            f" makes Python print its stack{_CRASHES[signal]}"
        )
    elif cause.signal is None:
        yield (
            f"why {who} failed: it left no error; decorate its entry point"
            " with torch's @record or with elastic_events.record_failures()"
        )
    elif cause.certain:
        yield f"who sent {cause.signal} to {who}: not its agent; {_SCHEDULER}"


def _of_lost_nodes(verdict: Verdict) -> Iterator[str]:
    for lost in verdict.lost_nodes:
        if lost.is_guess:
            yield (
                f"whether {lost.id} was lost: nobody says so, but it is"
                " silent while all others have ended; were all of its lines"
                " given?"
            )
        else:
            yield (
                f"why {lost.id} was lost: look at its host (power, network,"
                " kernel log)"
            )


def _of_missing_nodes(verdict: Verdict) -> Iterator[str]:
    cause = verdict.cause
    if cause is not None and cause.kind == "rendezvous":
        yield from _of_store(verdict, cause)
        wanted = max(map(_min_nodes, verdict.run.nodes), default=0)
        here = len(verdict.run.nodes)
        if wanted > here and not verdict.attempts:
            yield (
                f"which nodes did not come: {here} of at least {wanted} have"
                " recorded something; the others have not, or their lines"
                " were not given"
            )
    yield from _of_missing_lines(verdict)


def _of_store(verdict: Verdict, cause: Cause) -> Iterator[str]:
    if cause.error is not None and cause.error.type == _TIMEOUT:
        # It has waited there for the others.
        return
    for node in verdict.run.nodes:
        if node.id == cause.node and node.launched and node.launched.endpoint:
            yield (
                f"whether {node.launched.endpoint}, where the nodes meet, was"
                f" up and within reach of {node.host or node.id}"
            )


def _min_nodes(node: Node) -> int:
    launched = node.launched
    return (launched.min_nodes if launched else None) or 0


def _of_missing_lines(verdict: Verdict) -> Iterator[str]:
    attempts = [account.attempt for account in verdict.attempts]
    for (unseen, size), group in groupby(
        attempts, lambda each: (each.unseen, each.group_size)
    ):
        if unseen:
            numbers = [attempt.number for attempt in group]
            yield (
                f"what happened on {unseen} of {size} nodes of attempt"
                f"{'s' if len(numbers) > 1 else ''} {ranks_text(numbers)}:"
                " their lines were not given"
            )


def _of_attempts(verdict: Verdict) -> Iterator[str]:
    for account in verdict.attempts:
        if _is_cause_of_run(account, verdict):
            continue
        if account.cause is not None:
            what = f"attempt {account.attempt.number}"
            yield from _of_one_cause(account.cause, what)


def _is_cause_of_run(account: AttemptAccount, verdict: Verdict) -> bool:
    return account.cause is not None and account.cause == verdict.cause


def _number(rank: int | None) -> str:
    return "?" if rank is None else str(rank)
