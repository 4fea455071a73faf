"""
From records to the story of each run.

Memory grows with runs, attempts and workers, never with lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from .facts import (
    Assigned,
    Error,
    ErrorFile,
    Fact,
    Finished,
    Joined,
    Launched,
    Met,
    Removed,
    RendezvousFailed,
    Restarting,
    Stopping,
    ToldToStop,
    Waited,
    WorkerExited,
    WorkerSaid,
    fact_of,
    node_of,
)
from .filters import is_keepalive
from .records import Record, time_of
from .runs import (
    Attempt,
    Moment,
    Node,
    Part,
    Run,
    State,
    Worker,
    earliest,
    host_label,
    known,
    latest,
)


_STATES: Final[dict[str, State]] = {
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
}


class _Noted(NamedTuple):
    """
    A fact, and when it was recorded.
    """

    order: int
    moment: Moment
    fact: Fact


class _Process:
    """
    What one process recorded; of raw lines, what one file has of one run.
    """

    def __init__(self, host: str, pid: int | None, record: Record) -> None:
        self.host = host
        self.pid = pid
        self.node: str | None = None
        self.run_id: str | None = None
        self.rank: int | None = None
        self.restart: int | None = None
        self.is_agent = False
        self.has_logs = False
        self.first = self.last = record
        self._earliest = 1 << 62
        self._latest = 0
        self.noted: list[_Noted] = []

    def live(self, record: Record) -> None:
        """
        Note that the process recorded *record*, whatever it says.
        """
        time = record.said.get("timestamp")
        if type(time) is not int:
            self.last = record
            return
        if time < self._earliest:
            self._earliest, self.first = time, record
        if time >= self._latest:
            self._latest, self.last = time, record


class Story:
    """
    Collect what lines say of runs, in any order of nodes.

    The lines of one process may come in another order where they are
    numbered.
    """

    def __init__(self) -> None:
        self._processes: list[_Process] = []
        self._named: dict[tuple[Any, Any], _Process] = {}
        self._raw: dict[tuple[str, Any], _Process] = {}
        self._in_file: dict[tuple[str, int], list[_Process]] = {}
        self._arrived = 0

    def see(self, record: Record) -> None:
        """
        Take in one line.
        """
        said = record.said
        try:
            process = self._named[said["hostname"], said["pid"]]
        except (KeyError, TypeError):
            process = self._new_process(record)
        process.live(record)
        kind = said.get("kind")
        if kind == "event":
            if type(said.get("name")) is not str:
                return
            if not said["name"].startswith("torchelastic."):
                if process.run_id is None:
                    self._place(process, said)
                return
        elif kind == "rdzv" and is_keepalive(said):
            return
        self._note(process, record)

    def runs(self) -> list[Run]:
        """
        Return the runs, by the time of their beginning.
        """
        found: dict[str, list[_Process]] = {}
        for process in self._processes:
            if process.run_id is not None:
                found.setdefault(process.run_id, []).append(process)
        runs = [_run(run_id, mine) for run_id, mine in found.items()]
        return sorted(runs, key=lambda run: run.started or 0)

    def _note(self, process: _Process, record: Record) -> None:
        said = record.said
        if process.run_id is None or process.rank is None:
            self._place(process, said)
        if said.get("source") == "AGENT" and said.get("kind") != "log":
            process.is_agent = True
        if said.get("kind") == "rdzv":
            process.node = node_of(said) or process.node
            process.pid = _firstknown(process.pid, _pid_of(said))
        fact = fact_of(said)
        if fact is None:
            return
        if said.get("kind") == "log":
            process.is_agent = process.has_logs = True
        if isinstance(fact, Launched) and process.run_id is None:
            process.run_id = fact.run_id
        seq = said.get("seq")
        self._arrived += 1
        order = seq if type(seq) is int else self._arrived
        process.noted.append(_Noted(order, _moment_of(record), fact))

    def _place(self, process: _Process, said: dict[str, Any]) -> None:
        run_id, rank, restart = (
            said.get(key) for key in ("run_id", "rank", "restart")
        )
        if type(run_id) is str:
            process.run_id = run_id
        if type(rank) is int and said.get("source") == "WORKER":
            process.rank = rank
        if type(restart) is int:
            process.restart = restart

    def _new_process(self, record: Record) -> _Process:
        """
        Return the process of *record*, which may be known by another name.
        """
        said = record.said
        host, pid = said.get("hostname"), said.get("pid")
        host = host if type(host) is str else ""
        if "time" not in said or type(pid) is not int:
            return self._process_of_raw(record, host)
        process = self._named.get((host_label(host), pid))
        if process is None:
            process = self._alias(record.file, host, pid, said)
        if process is None:
            process = self._add(_Process(host, pid, record))
            self._in_file.setdefault((record.file, pid), []).append(process)
        self._named[host_label(host), pid] = process
        self._named[host, pid] = process
        return process

    def _process_of_raw(self, record: Record, host: str) -> _Process:
        run_id = record.said.get("run_id")
        key = (record.file, run_id if type(run_id) is str else None)
        if key not in self._raw:
            self._raw[key] = self._add(_Process(host, None, record))
        return self._raw[key]

    def _alias(
        self, file: str, host: str, pid: int, said: dict[str, Any]
    ) -> _Process | None:
        """
        Return the process that a rendezvous calls by another host's name.

        With ``--standalone``, and where the host's name resolves to it, that
        is ``localhost``.
        """
        here = self._in_file.get((file, pid), [])
        if len(here) != 1:
            return None
        if said.get("kind") == "rdzv":
            return here[0]
        if host_label(here[0].host) == "localhost":
            here[0].host = host
            return here[0]
        return None

    def _add(self, process: _Process) -> _Process:
        self._processes.append(process)
        return process


def _moment_of(record: Record) -> Moment:
    time = time_of(record.said)
    return Moment(int(time) if time else None, record.place)


def _run(run_id: str, processes: list[_Process]) -> Run:
    nodes = [_NodeBuilder(each).build() for each in processes if each.is_agent]
    _add_own_words(nodes, [each for each in processes if not each.is_agent])
    return Run(
        run_id=run_id,
        nodes=nodes,
        attempts=_attempts(nodes),
        started=earliest(_moment_of(each.first) for each in processes),
        last=latest(_moment_of(each.last) for each in processes),
    )


class _NodeBuilder:
    """
    Tell one agent's story from its facts.
    """

    def __init__(self, process: _Process) -> None:
        self._process = process
        host = host_label(process.host) or "?"
        pid = process.pid
        name = f"{host}_{pid}" if pid is not None else process.first.file
        self._node = Node(
            id=process.node or name,
            host=process.host,
            pid=pid,
            first=_moment_of(process.first),
            last=_moment_of(process.last),
            has_logs=process.has_logs,
        )
        self._has_met = False
        self._errors: list[Error] = []

    def build(self) -> Node:
        """
        Return the node.
        """
        for _, moment, fact in sorted(
            self._process.noted, key=lambda noted: noted.order
        ):
            self._take(fact, moment)
        # A rendezvous that was left without ranks was not completed.
        self._node.parts = [
            part
            for part in self._node.parts
            if part.joined or part.workers or part.round is not None
        ]
        return self._node

    def _take(self, fact: Fact, moment: Moment) -> None:
        node = self._node
        if isinstance(fact, Launched):
            node.launched = fact
        elif isinstance(fact, Waited):
            node.waiting = moment
        elif isinstance(fact, Joined):
            self._join(fact, moment)
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
            self._errors.append(fact.error)
        elif isinstance(fact, Stopping):
            worker = self._part().worker(fact.pid, None)
            worker.stopped_with = fact.signal
            worker.lines.append(moment.line)
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

    def _begin_part(self) -> Part:
        self._errors = []
        self._has_met = False
        waited, self._node.waiting = self._node.waiting, None
        self._node.rendezvous_failure = None
        part = Part(self._node.id, waited=waited)
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
            if any(each.state != "running" for each in part.workers):
                part = self._begin_part()
            part.restart = _firstknown(part.restart, fact.restart)
            part.joined = part.joined or moment
        worker = part.worker(fact.pid, fact.local_rank)
        worker.rank = _firstknown(fact.rank, worker.rank)
        worker.local_rank = _firstknown(fact.local_rank, worker.local_rank)
        worker.restart = _firstknown(fact.restart, worker.restart)
        worker.world_size = _firstknown(fact.world_size, worker.world_size)
        worker.lines.append(moment.line)
        if fact.state == "START":
            worker.started = moment
        elif fact.state in _STATES:
            worker.state = _STATES[fact.state]
            worker.ended = moment
            worker.exit_code = _firstknown(fact.exit_code, worker.exit_code)
            worker.error = worker.error or fact.error

    def _take_exit(self, fact: WorkerExited, moment: Moment) -> None:
        worker = self._part().worker(fact.pid, fact.local_rank)
        worker.local_rank = fact.local_rank
        worker.exit_code = fact.exit_code
        worker.is_first_of_node = True
        worker.state = "failed"
        worker.ended = worker.ended or moment
        worker.lines.append(moment.line)
        if self._errors:
            worker.error = worker.error or min(
                self._errors, key=lambda error: error.timestamp or 0
            )
        self._part().ended = moment

    def _restart(self, fact: Restarting, moment: Moment) -> None:
        part = self._part()
        part.restarting = fact
        part.ended = moment
        # torch tells the end of no worker that it starts again.
        for worker in part.workers:
            if worker.state == "running":
                worker.state = "stopped"
                worker.ended = moment


def _pid_of(said: dict[str, Any]) -> int | None:
    pid = said.get("pid")
    return pid if type(pid) is int else None


def _firstknown(first: int | None, second: int | None) -> int | None:
    return second if first is None else first


def _add_own_words(nodes: list[Node], processes: list[_Process]) -> None:
    """
    Add what workers recorded of their own end to what their agents know.
    """
    workers = {
        (host_label(node.host), worker.pid): worker
        for node in nodes
        for part in node.parts
        for worker in part.workers
        if worker.pid is not None
    }
    hosts: dict[str, Node] = {}
    for process in processes:
        label = host_label(process.host)
        for _, moment, fact in process.noted:
            if not isinstance(fact, WorkerSaid):
                continue
            worker = workers.get((label, process.pid or 0))
            if worker is None:
                node = hosts.get(label) or Node(
                    label, process.host, None, is_agent=False
                )
                if label not in hosts:
                    hosts[label] = node
                    nodes.append(node)
                worker = _worker_without_agent(node, process, fact, moment)
            _add_error(worker, fact, moment)


def _worker_without_agent(
    node: Node, process: _Process, fact: WorkerSaid, moment: Moment
) -> Worker:
    for part in node.parts:
        if part.restart == process.restart:
            break
    else:
        part = Part(node.id, restart=process.restart, joined=moment)
        node.parts.append(part)
    worker = part.worker(process.pid, None)
    worker.rank = process.rank
    worker.local_rank = fact.local_rank
    worker.started = _moment_of(process.first)
    return worker


def _add_error(worker: Worker, fact: WorkerSaid, moment: Moment) -> None:
    worker.lines.append(moment.line)
    if fact.state != "FAILED" or fact.error is None:
        return
    # Its own words are more than what its agent heard.
    worker.error = fact.error
    worker.failed_at = moment.time
    worker.state = "failed"
    worker.ended = worker.ended or moment


def _attempts(nodes: list[Node]) -> list[Attempt]:
    """
    Return what the nodes did together, in the order of time.

    The number of a round tells which nodes met; without one, the first time
    of each is one attempt, and so on. When a job was started again under the
    same run id, all begins anew.
    """
    grouped: dict[tuple[int, int], list[Part]] = {}
    for node in sorted(nodes, key=_first_time):
        launch = _launch_of(node, grouped)
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


def _launch_of(node: Node, grouped: dict[tuple[int, int], list[Part]]) -> int:
    """
    Return the first launch in which no other node has the place of *node*.
    """
    for launch in range(len(grouped) + 1):
        if not any(
            part.group_rank is not None and part.group_rank == other.group_rank
            for key, part in _keyed(node)
            for other in grouped.get((launch, key), ())
        ):
            break
    return launch
