"""
From records to the story of each run.

Memory grows with runs, attempts and workers, never with lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, starmap
from typing import Any

from .attempts import attempts_of, jobs_of
from .fact_finding import fact_of, node_of
from .facts import Launched, WorkerSaid
from .filters import is_keepalive
from .nodes import node_built
from .own_words import add_own_words
from .processes import Noted, Process, Processes, moment_of
from .records import Record
from .runs import Run, earliest, latest


class Story:
    """
    Collect what lines say of runs, in any order of nodes.

    The lines of one process may come in another order where they are
    numbered.

    Args:
        is_whole: Whether no line was left out.
    """

    def __init__(self, *, is_whole: bool = True) -> None:
        self._is_whole = is_whole
        self._processes = Processes()
        self._arrived = 0

    def see(self, record: Record) -> None:
        """
        Take in one line.
        """
        said = record.said
        process = self._processes.of(record)
        process.live(record)
        kind = said.get("kind")
        if kind == "event":
            if type(said.get("name")) is not str:
                return
            if not said["name"].startswith("torchelastic."):
                if process.run_id is None:
                    _place(process, said)
                return
        elif kind == "rdzv" and is_keepalive(said):
            return
        self._note(process, record)

    def runs(self) -> list[Run]:
        """
        Return the runs, by the time of their beginning, when all was seen.

        Where agents or workers tell of any, one that is told of by others
        alone is none: a script of the scheduler may have an id of its own.
        """
        self._processes.settle()
        found: dict[str, list[Process]] = {}
        for process in self._processes.all:
            if process.run_id is not None:
                found.setdefault(process.run_id, []).append(process)
        told = {
            run_id: [each for each in processes if each.is_of_job]
            for run_id, processes in found.items()
        }
        if any(told.values()):
            found = {run_id: mine for run_id, mine in told.items() if mine}
        runs = starmap(_runs, found.items())
        found_runs = [*chain.from_iterable(runs)]
        for run in found_runs:
            run.is_whole = self._is_whole
        return sorted(found_runs, key=lambda run: run.started or 0)

    def _note(self, process: Process, record: Record) -> None:
        said = record.said
        if process.run_id is None or process.rank is None:
            _place(process, said)
        if said.get("source") == "AGENT" and said.get("kind") != "log":
            process.is_agent = True
        if said.get("kind") == "rdzv":
            process.node = node_of(said) or process.node
        fact = fact_of(said)
        if fact is None:
            return
        if said.get("kind") == "log":
            process.is_agent = process.has_logs = True
        elif isinstance(fact, WorkerSaid) and fact.pid not in (
            None,
            process.pid,
        ):
            # Of another process only an agent tells.
            process.is_agent = True
        if isinstance(fact, Launched) and process.run_id is None:
            process.run_id = fact.run_id
        seq = said.get("seq")
        self._arrived += 1
        order = seq if type(seq) is int else self._arrived
        process.noted.append(Noted(order, moment_of(record), fact))


def _place(process: Process, said: dict[str, Any]) -> None:
    run_id, rank, restart = (
        said.get(key) for key in ("run_id", "rank", "restart")
    )
    if type(run_id) is str:
        process.run_id = run_id
    if type(rank) is int and said.get("source") == "WORKER":
        process.rank = rank
    if type(restart) is int:
        process.restart = restart


def _runs(run_id: str, processes: list[Process]) -> Iterator[Run]:
    """
    Yield the runs of one id: several, if jobs had the same at one time.
    """
    nodes = [node_built(each) for each in processes if each.is_agent]
    add_own_words(nodes, [each for each in processes if not each.is_agent])
    started = earliest(moment_of(each.first) for each in processes)
    last = latest(moment_of(each.last) for each in processes)
    jobs = jobs_of(nodes)
    if len(jobs) < 2:
        yield Run(run_id, nodes, attempts_of(nodes), started, last)
        return
    for mine in jobs:
        yield Run(
            run_id,
            mine,
            attempts_of(mine),
            earliest(node.first for node in mine),
            latest(node.last for node in mine),
            shares_id=True,
        )
