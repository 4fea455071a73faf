"""
Who may have failed first, and how strong the evidence is.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from .evidence import (
    is_end_by,
    is_of_agent,
    is_peer_closed,
    is_rendezvous_closed,
    is_terminated,
)
from .facts import Error
from .runs import Attempt, Moment, Node, Part, Run, Worker, earliest
from .signals import signal_name, signal_of
from .verdicts import Cause, LostNode


NEVER: Final = 1 << 62
"""Later than any time."""

RESOLUTION: Final = 1000
"""In ms: torch gives the time of an error in whole seconds."""

_RENDEZVOUS_ERROR: Final = re.compile(r"Rendezvous\w*|DistStoreError")
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


def suspected_workers(run: Run, attempt: Attempt) -> Iterator[Suspect]:
    """
    Yield the workers of *attempt* that did not end well.
    """
    # Not by their names: lines that are wrong may give two nodes one.
    nodes = {id(part): node for node in run.nodes for part in node.parts}
    for part in attempt.parts:
        node = nodes.get(id(part))
        for worker in part.workers:
            if worker.state not in ("failed", "stopped"):
                continue
            tier = _tier_of(worker, node)
            if node is not None and _is_end_with_agent(worker, part, node):
                tier = Tier.STOPPED
            yield Suspect(
                tier,
                _time_of_failure(worker),
                _cause_of_worker(worker, attempt.number),
                worker,
            )


def _tier_of(worker: Worker, node: Node | None) -> Tier:
    """
    Return how strongly *worker* is suspected to have failed by itself.

    Args:
        worker: One that did not end well.

        node: Its own.
    """
    # The logs of its agent tell to whom it sent a signal.
    has_logs = node is not None and node.has_logs
    if is_peer_closed(worker.error):
        return Tier.PEER_CLOSED
    if worker.stopped_with is not None and not worker.is_first_of_node:
        return Tier.STOPPED if worker.error is None else Tier.RENDEZVOUS_CLOSED
    if worker.error is not None or worker.is_first_of_node:
        return Tier.BY_ITSELF
    is_killed = is_of_agent(worker.exit_code)
    if not is_killed and worker.exit_code not in (None, 0):
        return Tier.BY_ITSELF
    if worker.state == "stopped" or worker.exit_code == 0:
        return Tier.STOPPED
    if has_logs and worker.exit_code is not None:
        return Tier.BY_ITSELF
    is_stopped = is_terminated(worker.exit_code)
    return Tier.STOPPED if is_stopped else Tier.PERHAPS_BY_ITSELF


def _is_end_with_agent(worker: Worker, part: Part, node: Node) -> bool:
    """
    Tell whether who told the agent to stop has stopped *worker*, too.
    """
    told = node.told_to_stop
    return (
        told is not None
        and part is node.parts[-1]
        and is_end_by(told[0], worker.exit_code, worker.error)
    )


def _time_of_failure(worker: Worker) -> int:
    """
    Return what orders failures: the time of an error in torch's whole seconds.
    """
    if worker.failed_at is not None:
        return worker.failed_at
    if worker.error is not None and worker.error.timestamp is not None:
        return worker.error.timestamp
    ended = worker.ended.time if worker.ended else None
    return NEVER if ended is None else ended


def _cause_of_worker(worker: Worker, attempt: int) -> Cause:
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
        time=_time_told(worker),
        lines=tuple(worker.lines),
    )


def _time_told(worker: Worker) -> int | None:
    """
    Return when *worker* failed, as closely as it is known.

    What was recorded within the whole second that torch gives tells more.
    """
    time = _time_of_failure(worker)
    ended = worker.ended.time if worker.ended else None
    is_closer = ended is not None and 0 <= ended - time < RESOLUTION
    if worker.failed_at is None and is_closer and not time % RESOLUTION:
        return ended
    return None if time == NEVER else time


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
            Tier.NODE_LOST, time or NEVER, cause, is_guess=each.is_guess
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
        yield Suspect(tier, moment.time or NEVER, cause)


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
