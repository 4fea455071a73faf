"""
What an agent did, told from its facts.
"""

from __future__ import annotations

from typing import Final

from .facts import (
    Assigned,
    Error,
    ErrorFile,
    Fact,
    Finished,
    Joined,
    Launched,
    Left,
    Met,
    Removed,
    RendezvousFailed,
    Restarting,
    Stopping,
    ToldToStop,
    Waited,
    WorkerExited,
    WorkerSaid,
)
from .hosts import host_label
from .processes import Noted, Process, moment_of
from .runs import Moment, Node, Part, State
from .signals import signal_of


_STATES: Final[dict[str, State]] = {
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
}
# Less is what threads do that write in another order.
_STEP: Final = 1000


def node_built(process: Process) -> Node:
    """
    Return the node whose agent *process* is.
    """
    builder = _Builder(process)
    latest = 0
    for _, moment, fact in _in_order(process.noted):
        if moment.time is not None:
            builder.set_back(latest - moment.time)
            latest = max(latest, moment.time)
        builder.take(fact, moment)
    return builder.node()


def _in_order(noted: list[Noted]) -> list[Noted]:
    """
    Return facts in the order in which they were recorded.

    That is the order of their numbers. Two files of one process, neither of
    which goes on where the other ends, have the same numbers: then it is that
    of their times.
    """
    numbers = {each.order for each in noted}
    if len(numbers) == len(noted):
        return sorted(noted, key=lambda each: each.order)
    return sorted(noted, key=lambda each: (each.moment.time or 0, each.order))


class _Builder:
    """
    Tell one agent's story from its facts.
    """

    def __init__(self, process: Process) -> None:
        host = host_label(process.host) or "?"
        pid = process.pid
        name = f"{host}_{pid}" if pid is not None else process.first.file
        self._node = Node(
            id=process.node or name,
            host=process.host,
            pid=pid,
            first=moment_of(process.first),
            last=moment_of(process.last),
            has_logs=process.has_logs,
            is_mixed=process.is_mixed,
        )
        self._has_met = False
        self._is_over = False
        """Whether the end of a worker of the latest part is known."""
        self._errors: list[Error] = []

    def node(self) -> Node:
        """
        Return the node.
        """
        # A rendezvous that was left without ranks was not completed.
        self._node.parts = [
            part
            for part in self._node.parts
            if part.joined or part.workers or part.round is not None
        ]
        return self._node

    def set_back(self, milliseconds: int) -> None:
        """
        Note that the clock went back by so much, if it is worth it.
        """
        if milliseconds > _STEP:
            self._node.set_back = max(self._node.set_back, milliseconds)

    def take(self, fact: Fact, moment: Moment) -> None:
        """
        Take in the next fact.
        """
        node = self._node
        if isinstance(fact, Launched):
            node.launched = fact
        elif isinstance(fact, Waited):
            node.waiting = moment
        elif isinstance(fact, Joined):
            self._join(fact, moment)
        elif isinstance(fact, Left):
            if node.parts:
                node.parts[-1].left = moment
        elif isinstance(fact, Removed):
            node.removed += [(each, moment) for each in fact.nodes]
        elif isinstance(fact, RendezvousFailed):
            node.rendezvous_failure = (fact.error, moment)
        elif isinstance(fact, Met):
            self._meet(fact)
        elif isinstance(fact, Assigned):
            self._part().joined = self._part().joined or moment
        elif isinstance(fact, WorkerSaid):
            self._take_worker(fact, moment)
        elif isinstance(fact, WorkerExited):
            self._take_exit(fact, moment)
        elif isinstance(fact, ErrorFile):
            self._part_of(None)
            self._errors.append(fact.error)
        elif isinstance(fact, Stopping):
            self._stop(fact, moment)
        elif isinstance(fact, Restarting):
            self._restart(fact, moment)
        elif isinstance(fact, Finished):
            self._part().finished = True
        elif isinstance(fact, ToldToStop):
            node.told_to_stop = node.told_to_stop or (fact.signal, moment)
        else:
            node.said = (fact, moment)
            if node.parts:
                node.parts[-1].ended = node.parts[-1].ended or moment

    def _part(self) -> Part:
        if not self._node.parts:
            self._begin_part()
        return self._node.parts[-1]

    def _part_of(self, pid: int | None) -> Part:
        """
        Return the part in which the end of a worker is told of.

        After a failure all that is left of a part is its restart, so that
        another worker is one of the next part, whose beginning is not told.
        """
        part = self._part()
        is_left = part.restarting is not None and part.restarting.failed
        if is_left and (pid is None or not part.has(pid)):
            return self._begin_part()
        return part

    def _begin_part(self) -> Part:
        self._errors = []
        self._has_met = self._is_over = False
        part = Part(self._node.id, waited=self._node.waiting)
        self._node.waiting = None
        self._node.rendezvous_failure = None
        self._node.parts.append(part)
        return part

    def _join(self, fact: Joined, moment: Moment) -> None:
        part = self._begin_part()
        part.round = fact.round
        part.group_rank = fact.group_rank
        part.group_size = fact.group_size
        part.joined = moment

    def _meet(self, fact: Met) -> None:
        if self._node.rendezvous_failure is not None:
            return
        parts = self._node.parts
        if not parts or self._has_met or parts[-1].workers:
            self._begin_part()
        part = self._part()
        self._has_met = True
        part.restart = fact.restart

    def _take_worker(self, fact: WorkerSaid, moment: Moment) -> None:
        part = self._part()
        if fact.state == "START":
            if self._is_over:
                part = self._begin_part()
            part.restart = _firstknown(part.restart, fact.restart)
            part.joined = part.joined or moment
        # Without a rendezvous over c10d nobody else tells of them.
        part.group_rank = _firstknown(part.group_rank, fact.group_rank)
        part.group_size = _firstknown(part.group_size, fact.group_size)
        worker = part.worker(fact.pid, fact.local_rank)
        worker.rank = _firstknown(fact.rank, worker.rank)
        worker.restart = _firstknown(fact.restart, worker.restart)
        worker.world_size = _firstknown(fact.world_size, worker.world_size)
        worker.lines.append(moment.line)
        if fact.state == "START":
            worker.started = moment
        elif fact.state in _STATES:
            self._is_over = True
            worker.state = _STATES[fact.state]
            worker.ended = worker.ended or moment
            worker.exit_code = _firstknown(fact.exit_code, worker.exit_code)
            worker.error = worker.error or fact.error

    def _take_exit(self, fact: WorkerExited, moment: Moment) -> None:
        part = self._part_of(fact.pid)
        self._is_over = True
        worker = part.worker(fact.pid, fact.local_rank)
        worker.exit_code = fact.exit_code
        worker.is_first_of_node = True
        worker.state = "failed"
        # The others may take half a minute to stop before this is told.
        worker.ended = worker.ended or part.stopping or moment
        worker.lines.append(moment.line)
        # What was killed has left no error file: it is another worker's.
        if self._errors and signal_of(fact.exit_code) != "SIGKILL":
            worker.error = worker.error or min(
                self._errors, key=lambda error: error.timestamp or 0
            )
        part.ended = moment

    def _stop(self, fact: Stopping, moment: Moment) -> None:
        part = self._part_of(fact.pid)
        part.stopping = part.stopping or moment
        worker = part.worker(fact.pid, None)
        worker.stopped_with = fact.signal
        worker.lines.append(moment.line)

    def _restart(self, fact: Restarting, moment: Moment) -> None:
        part = self._part()
        part.restarting = fact
        part.ended = moment
        self._is_over = True
        # torch tells the end of no worker that it starts again.
        for worker in part.workers:
            if worker.state == "running":
                worker.state = "stopped"
                worker.ended = moment


def _firstknown(first: int | None, second: int | None) -> int | None:
    return second if first is None else first
