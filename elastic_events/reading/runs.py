"""
The model of a run: its attempts, the nodes that took part, their workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from .facts import AgentSaid, Error, Launched, Restarting


State: TypeAlias = Literal["running", "succeeded", "failed", "stopped"]


class Moment(NamedTuple):
    """
    When something was recorded, and where it stands.
    """

    time: int | None
    """In ms since the epoch, by the host's clock; torch's lines have none."""
    line: str
    """As ``FILE:7``."""


@dataclass
class Worker:
    """
    A worker of one node in one attempt.
    """

    node: str
    local_rank: int | None = None
    rank: int | None = None
    pid: int | None = None
    restart: int | None = None
    world_size: int | None = None
    state: State = "running"
    exit_code: int | None = None
    error: Error | None = None
    stopped_with: str | None = None
    """The signal that its agent sent."""
    is_first_of_node: bool = False
    """Whether torch named it as the first of its node that failed."""
    failed_at: int | None = None
    """When it failed by its own account, in ms; None where it gave none."""
    started: Moment | None = None
    ended: Moment | None = None
    lines: list[str] = field(default_factory=list)


@dataclass
class Part:
    """
    What one node did in one attempt.
    """

    node: str
    round: int | None = None
    group_rank: int | None = None
    group_size: int | None = None
    restart: int | None = None
    waited: Moment | None = None
    """Since when it waited for the others; `joined` is the end of it."""
    joined: Moment | None = None
    left: Moment | None = None
    """When it took itself out of the round."""
    workers: list[Worker] = field(default_factory=list)
    stopping: Moment | None = None
    """When the agent began to stop workers, for it knew of a failure."""
    restarting: Restarting | None = None
    finished: bool = False
    ended: Moment | None = None
    """When the agent said that it was over."""
    _by_pid: dict[int, Worker] = field(default_factory=dict)
    _by_local_rank: dict[int, Worker] = field(default_factory=dict)

    @property
    def wait(self) -> int | None:
        """
        How long it waited for the others, in ms, by its own clock.
        """
        begin, end = self.waited, self.joined
        if begin is None or end is None:
            return None
        if begin.time is None or end.time is None:
            return None
        return max(0, end.time - begin.time)

    @property
    def over(self) -> int | None:
        """
        When no worker of the node ran any more, in ms.
        """
        if any(worker.state == "running" for worker in self.workers):
            return self.ended.time if self.ended else None
        return latest([self.ended, *(each.ended for each in self.workers)])

    def has(self, pid: int) -> bool:
        """
        Tell whether a worker of this *pid* is known.
        """
        return pid in self._by_pid

    def worker(self, pid: int | None, local_rank: int | None) -> Worker:
        """
        Return the worker of this *pid* or *local_rank*, a new one if none is.
        """
        worker = None if pid is None else self._by_pid.get(pid)
        if worker is None and local_rank is not None:
            worker = self._by_local_rank.get(local_rank)
            if worker and None not in (pid, worker.pid):
                worker = None
        if worker is None:
            worker = Worker(self.node, restart=self.restart)
            self.workers.append(worker)
        if pid is not None:
            worker.pid = pid
            self._by_pid[pid] = worker
        if local_rank is not None:
            worker.local_rank = local_rank
            self._by_local_rank[local_rank] = worker
        return worker


@dataclass
class Node:
    """
    An agent, under the name that its rendezvous gave it.
    """

    id: str
    host: str
    pid: int | None
    launched: Launched | None = None
    parts: list[Part] = field(default_factory=list)
    waiting: Moment | None = None
    """Since when it has been waiting for others, if it still is."""
    rendezvous_failure: tuple[Error, Moment] | None = None
    told_to_stop: tuple[int, Moment] | None = None
    said: tuple[AgentSaid, Moment] | None = None
    """Its last state, which torch calls a success also where workers failed"""
    removed: list[tuple[str, Moment]] = field(default_factory=list)
    """Other nodes that it heard nothing of."""
    first: Moment | None = None
    last: Moment | None = None
    is_agent: bool = True
    """Whether an agent recorded; else it is a host on which workers did."""
    has_logs: bool = False
    """Whether torch's plain logs were recorded too."""
    is_mixed: bool = False
    """Whether raw lines of other agents stand between its own."""
    set_back: int = 0
    """By how much its clock went back meanwhile, in ms."""


@dataclass
class Attempt:
    """
    One completed round of the rendezvous, and what came of it.
    """

    number: int
    round: int | None
    parts: list[Part]

    @property
    def workers(self) -> Iterator[Worker]:
        """
        The workers of all nodes.
        """
        return (worker for part in self.parts for worker in part.workers)

    @property
    def restart(self) -> int | None:
        """
        The highest restart count of its nodes; a replaced one begins at 0.
        """
        return max(known(part.restart for part in self.parts), default=None)

    @property
    def nodes(self) -> list[str]:
        """
        The nodes that took part, in the order of their ranks.
        """
        return [part.node for part in self.parts]

    @property
    def wait(self) -> int | None:
        """
        How long it took to meet, in ms: the longest wait of its nodes.
        """
        return max(known(part.wait for part in self.parts), default=None)

    @property
    def group_size(self) -> int | None:
        """
        How many nodes joined.
        """
        return max(known(part.group_size for part in self.parts), default=None)

    @property
    def unseen(self) -> int:
        """
        How many of its nodes recorded nothing that was given.
        """
        return max(0, (self.group_size or 0) - len(self.parts))

    @property
    def world_size(self) -> int | None:
        """
        How many workers there are on all nodes.
        """
        return max(
            known(worker.world_size for worker in self.workers), default=None
        )

    @property
    def started(self) -> int | None:
        """
        When the first node joined, or the first worker was started, in ms.
        """
        joined = earliest(part.joined for part in self.parts)
        if joined is not None:
            return joined
        return earliest(worker.started for worker in self.workers)

    @property
    def ended(self) -> int | None:
        """
        When its last node was done, in ms; `None` if none is.
        """
        return max(known(part.over for part in self.parts), default=None)


@dataclass
class Run:
    """
    All that was recorded under one run id.
    """

    run_id: str
    nodes: list[Node]
    attempts: list[Attempt]
    started: int | None
    last: int | None
    """The time of the latest line of any agent or worker, in ms."""
    is_whole: bool = True
    """Whether no filter left out any line."""
    shares_id: bool = False
    """Whether another job had the same run id at the same time."""


def pause_between(attempt: Attempt, later: Attempt) -> int | None:
    """
    Return how long no worker ran between two attempts, in ms.

    It is the longest of all nodes that took part in both, each by its own
    clock; `None` where none has recorded both.
    """
    ended = {part.node: part.over for part in attempt.parts}
    pauses = []
    for part in later.parts:
        end = ended.get(part.node)
        again = earliest(worker.started for worker in part.workers)
        if end is not None and again is not None:
            pauses.append(max(0, again - end))
    return max(pauses, default=None)


def earliest(moments: Iterable[Moment | None]) -> int | None:
    """
    Return the earliest time of *moments* in ms, `None` where none is known.
    """
    return min(known(m.time for m in moments if m), default=None)


def latest(moments: Iterable[Moment | None]) -> int | None:
    """
    Return the latest time of *moments* in ms, `None` where none is known.
    """
    return max(known(m.time for m in moments if m), default=None)


def known(values: Iterable[int | None]) -> Iterator[int]:
    """
    Yield those of *values* that are known.
    """
    return (value for value in values if value is not None)
