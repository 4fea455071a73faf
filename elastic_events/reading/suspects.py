"""
Who may have failed first, and how strong the evidence is.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Container, Iterable, Iterator
from enum import IntEnum
from typing import Final, Literal, NamedTuple, TypeAlias

from .facts import Error
from .runs import Attempt, Moment, Node, Run, Worker, earliest
from .signals import signal_name, signal_of


Kind: TypeAlias = Literal[
    "worker", "signal", "agent", "rendezvous", "node_lost", "unknown"
]


class Cause(NamedTuple):
    """
    What failed first.
    """

    kind: Kind
    attempt: int | None = None
    node: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    error: Error | None = None
    time: int | None = None
    certain: bool = False
    lines: tuple[str, ...] = ()


class LostNode(NamedTuple):
    """
    A node that was gone without a word.
    """

    id: str
    last: Moment | None
    """Its own last line, if there is one."""
    missed: Moment | None
    """When another node gave it up, if one did."""
    is_guess: bool
    """Whether nobody said so: it is silent while the others have ended."""
    is_seen: bool
    """Whether its own lines tell in which rounds it took part."""


# torch gives the time of an error in whole seconds.
_RESOLUTION: Final = 1000
# Later than any time.
_NEVER: Final = 1 << 62

_SIGNALS_OF_AGENTS: Final = (-signal.SIGTERM, -signal.SIGKILL)
_PEER_CLOSED: Final = re.compile(
    r"connection (?:was )?(?:closed|reset) by (?:remote )?peer"
    r"|connection was likely closed|broken pipe|remote process exited",
    re.IGNORECASE,
)
_RENDEZVOUS_ERROR: Final = re.compile(r"Rendezvous\w*|DistStoreError")
_RENDEZVOUS_CLOSED: Final = re.compile(
    r"RendezvousClosedError|RendezvousGracefulExitError"
)
_SIGNAL_ERROR: Final = "SignalException"
_GOT_SIGNAL: Final = re.compile(r"got signal: (\d{1,3})")


class Tier(IntEnum):
    """
    How strong the evidence is, the strongest first.
    """

    BY_ITSELF = 0
    PERHAPS_BY_ITSELF = 1
    NODE_LOST = 2
    AGENT = 3
    PEER_CLOSED = 4
    RENDEZVOUS_CLOSED = 5
    STOPPED = 6


class Suspect(NamedTuple):
    """
    What may be the first cause: of the strongest tier the earliest.
    """

    tier: Tier
    time: int
    cause: Cause
    worker: Worker | None = None
    is_guess: bool = False


def is_peer_closed(error: Error | None) -> bool:
    """
    Tell whether an error only says that another process was gone.
    """
    return error is not None and bool(
        _PEER_CLOSED.search(error.message or error.traceback or "")
    )


def is_rendezvous_closed(error: Error | None) -> bool:
    """
    Tell whether an error only says that the job was over.
    """
    return error is not None and bool(
        _RENDEZVOUS_CLOSED.fullmatch(error.type or "")
    )


def is_of_agent(exit_code: int | None) -> bool:
    """
    Tell whether *exit_code* is that of a worker that its agent has stopped.
    """
    return exit_code in _SIGNALS_OF_AGENTS


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
    if other.time == _NEVER or not _is_prompt(other.worker):
        return False
    return other.time - first.time > _RESOLUTION


def _is_prompt(worker: Worker | None) -> bool:
    """
    Tell whether the time of a failure is that of the failure itself.

    torch's event of it comes when all others of the node have stopped, which
    may take half a minute; its logs tell when that began.
    """
    if worker is None or worker.is_first_of_node or worker.failed_at:
        return True
    return worker.error is not None and worker.error.timestamp is not None


def suspected_workers(run: Run, attempt: Attempt) -> Iterator[Suspect]:
    """
    Yield the workers of *attempt* that did not end well.
    """
    nodes = {node.id: node for node in run.nodes}
    for part in attempt.parts:
        has_logs = part.node in nodes and nodes[part.node].has_logs
        for worker in part.workers:
            if worker.state not in ("failed", "stopped"):
                continue
            tier = _tier_of(worker, has_logs=has_logs)
            yield Suspect(
                tier,
                _time_of_failure(worker),
                _cause_of_worker(worker, attempt.number),
                worker,
            )


def _tier_of(worker: Worker, *, has_logs: bool) -> Tier:
    """
    Return how strongly *worker* is suspected to have failed by itself.

    Args:
        worker: One that did not end well.

        has_logs: Whether its agent's logs tell to whom it sent a signal.
    """
    if is_peer_closed(worker.error):
        return Tier.PEER_CLOSED
    if worker.stopped_with is not None and not worker.is_first_of_node:
        return Tier.STOPPED if worker.error is None else Tier.RENDEZVOUS_CLOSED
    if worker.error is not None or worker.is_first_of_node:
        return Tier.BY_ITSELF
    if worker.exit_code not in (None, 0, *_SIGNALS_OF_AGENTS):
        return Tier.BY_ITSELF
    if worker.state == "stopped" or worker.exit_code == 0:
        return Tier.STOPPED
    if has_logs and worker.exit_code is not None:
        return Tier.BY_ITSELF
    is_stopped = worker.exit_code == -signal.SIGTERM
    return Tier.STOPPED if is_stopped else Tier.PERHAPS_BY_ITSELF


def _time_of_failure(worker: Worker) -> int:
    if worker.failed_at is not None:
        return worker.failed_at
    if worker.error is not None and worker.error.timestamp is not None:
        return worker.error.timestamp
    ended = worker.ended.time if worker.ended else None
    return _NEVER if ended is None else ended


def _cause_of_worker(worker: Worker, attempt: int) -> Cause:
    time = _time_of_failure(worker)
    return Cause(
        "worker",
        attempt=attempt,
        node=worker.node,
        rank=worker.rank,
        local_rank=worker.local_rank,
        pid=worker.pid,
        exit_code=worker.exit_code,
        signal=signal_of(worker.exit_code),
        error=worker.error,
        time=None if time == _NEVER else time,
        lines=tuple(worker.lines),
    )


def suspected_nodes(
    lost: Iterable[LostNode], attempt: int | None
) -> Iterator[Suspect]:
    """
    Yield the nodes that were lost.
    """
    for each in lost:
        moments = [each.last, each.missed]
        time = earliest(moments)
        cause = Cause(
            "node_lost",
            attempt=attempt,
            node=each.id,
            time=time,
            lines=tuple(moment.line for moment in moments if moment),
        )
        yield Suspect(
            Tier.NODE_LOST, time or _NEVER, cause, is_guess=each.is_guess
        )


def suspected_agents(
    nodes: Iterable[Node], attempt: int | None
) -> Iterator[Suspect]:
    """
    Yield the agents that failed, were told to stop, or met nobody.
    """
    for node in nodes:
        error = error_of_agent(node)
        moment = _moment_of_failure(node)
        kind = error.type or "" if error else ""
        number = _signal_of_agent(node, error)
        cause = Cause(
            "agent",
            attempt=attempt,
            node=node.id,
            pid=node.pid,
            error=error,
            time=moment.time,
            lines=(moment.line,),
        )
        tier = Tier.AGENT
        if number is not None:
            cause = cause._replace(kind="signal", signal=signal_name(number))
        elif is_rendezvous_closed(error):
            cause, tier = (
                cause._replace(kind="rendezvous"),
                Tier.RENDEZVOUS_CLOSED,
            )
        elif node.rendezvous_failure or _RENDEZVOUS_ERROR.fullmatch(kind):
            cause = cause._replace(kind="rendezvous")
        yield Suspect(tier, moment.time or _NEVER, cause)


def error_of_agent(node: Node) -> Error | None:
    """
    Return the error with which an agent ended, if it did.
    """
    if node.rendezvous_failure is not None:
        return node.rendezvous_failure[0]
    return node.said[0].error if node.said else None


def _moment_of_failure(node: Node) -> Moment:
    for known in node.told_to_stop, node.rendezvous_failure, node.said:
        if known is not None:
            return known[1]
    return Moment(None, "")


def _signal_of_agent(node: Node, error: Error | None) -> int | None:
    if node.told_to_stop is not None:
        return node.told_to_stop[0]
    if error is None or error.type != _SIGNAL_ERROR:
        return None
    found = _GOT_SIGNAL.search(error.message or "")
    return int(found[1]) if found else int(signal.SIGTERM)
