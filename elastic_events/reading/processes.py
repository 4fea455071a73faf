"""
The processes that recorded lines, by whatever names they call their hosts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .facts import Fact
from .hosts import host_label
from .records import Record, time_of
from .runs import Moment


class Noted(NamedTuple):
    """
    A fact, and when it was recorded.
    """

    order: int
    moment: Moment
    fact: Fact


class Process:
    """
    What one process recorded; of raw lines, what one file has of one run.
    """

    def __init__(self, host: str, pid: int | None, record: Record) -> None:
        self.host = host
        self.pid = pid
        self.has_own_name = False
        """Whether its host was stated by a line not of a rendezvous."""
        self.node: str | None = None
        """The id that its rendezvous gave it."""
        self.run_id: str | None = None
        self.rank: int | None = None
        self.restart: int | None = None
        self.is_agent = False
        self.has_logs = False
        self.first = self.last = record
        self.names: list[tuple[str, int]] = []
        """Host, as it is stated, and process id."""
        self.begun: dict[str, object] = {}
        """The times of its first lines in each file."""
        self.is_absorbed = False
        self.is_mixed = False
        """Whether raw lines of others stand between its own."""
        self._earliest = (1 << 62, 0)
        self._latest = (0, 0)
        self.noted: list[Noted] = []

    @property
    def is_of_job(self) -> bool:
        """
        Whether it is an agent or a worker, not a script beside them.
        """
        return self.is_agent or self.rank is not None or bool(self.noted)

    def live(self, record: Record) -> None:
        """
        Note that the process recorded *record*, whatever it says.
        """
        said = record.said
        if not self.has_own_name and said.get("kind") != "rdzv":
            self.has_own_name = True
            self.host = _host_of(said) or self.host
        time = said.get("timestamp")
        if type(time) is not int:
            self.last = record
            return
        seq = said.get("seq")
        moment = (time, seq if type(seq) is int else 0)
        if moment < self._earliest:
            self._earliest, self.first = moment, record
        if moment >= self._latest:
            self._latest, self.last = moment, record

    def absorb(self, other: Process) -> None:
        """
        Take over what the same process recorded under another name.
        """
        other.is_absorbed = True
        self.is_agent |= other.is_agent
        self.node = self.node or other.node
        self.run_id = self.run_id or other.run_id
        self.noted += other.noted
        self.names += other.names
        if other._earliest < self._earliest:
            self._earliest, self.first = other._earliest, other.first
        if other._latest > self._latest:
            self._latest, self.last = other._latest, other.last


class Processes:
    """
    Tell the processes apart that recorded lines.
    """

    def __init__(self) -> None:
        self.all: list[Process] = []
        self._named: dict[tuple[str, int], Process] = {}
        self._raw: dict[tuple[str, Any], list[Process]] = {}
        self._in_file: dict[tuple[str, int], list[Process]] = {}

    def of(self, record: Record) -> Process:
        """
        Return the process that recorded *record*.
        """
        said = record.said
        try:
            process = self._named[said["hostname"], said["pid"]]
        except (KeyError, TypeError):
            process = self._new(record)
        if said.get("seq") == 0 and process.names:
            process = self._begin(process, record)
        return process

    def settle(self) -> None:
        """
        Bring together what is one process under two names.

        The lines of a rendezvous state the host as torch calls it: with
        ``--standalone`` it is ``localhost``, and it may be an address. They
        stand in the same file as the others of their process.
        """
        for here in self._in_file.values():
            self._settle(here)
        self.all = [each for each in self.all if not each.is_absorbed]

    def _settle(self, here: list[Process]) -> None:
        """
        Do so with those of one process id in one file.
        """
        strangers = [each for each in here if not each.has_own_name]
        agents = [
            each
            for each in here
            if each.has_own_name
            and each.node is None
            and (each.is_agent or each.rank is None)
        ]
        if len(strangers) == len(agents) == 1:
            agents[0].absorb(strangers[0])
            here.remove(strangers[0])

    def _begin(self, process: Process, record: Record) -> Process:
        """
        Return the process whose first line *record* is.

        In a container, each has the same id as the one before it.
        """
        time = record.said.get("timestamp")
        if process.begun.setdefault(record.file, time) == time:
            return process
        self._settle(self._in_file.get((record.file, process.pid or 0), []))
        for name in process.names:
            self._named.pop(name, None)
        process = self._new(record)
        process.begun[record.file] = time
        return process

    def _new(self, record: Record) -> Process:
        """
        Return the process of *record*, which may be known by another name.
        """
        said = record.said
        host, pid = _host_of(said), said.get("pid")
        if "time" not in said or type(pid) is not int:
            return self._of_raw(record, host)
        label = host_label(host)
        process = self._named.get((label, pid))
        if process is None:
            process = self._add(Process(host, pid, record))
            self._in_file.setdefault((record.file, pid), []).append(process)
        for name in {(label, pid), (host, pid)}:
            self._named[name] = process
            process.names.append(name)
        return process

    def _of_raw(self, record: Record, host: str) -> Process:
        """
        Return the process of a line that torch wrote itself.

        Only the lines of a rendezvous say whose they are: the others are
        taken for lines of whoever said so last.
        """
        said = record.said
        run_id, pid = said.get("run_id"), said.get("pid")
        key = (record.file, run_id if type(run_id) is str else None)
        # The one that recorded last stands last.
        here = self._raw.setdefault(key, [])
        if type(pid) is not int or said.get("kind") != "rdzv":
            pid = here[-1].pid if here else None
        for process in here[::-1]:
            if process.pid in {None, pid}:
                break
        else:
            process = self._add(Process(host, pid, record))
            here.append(process)
        if process is not here[-1]:
            for each in here:
                each.is_mixed = True
            here.remove(process)
            here.append(process)
        process.pid = pid
        return process

    def _add(self, process: Process) -> Process:
        self.all.append(process)
        return process


def moment_of(record: Record) -> Moment:
    """
    Return when something was recorded, and where it stands.
    """
    time = time_of(record.said)
    return Moment(int(time) if time else None, record.place)


def _host_of(said: dict[str, Any]) -> str:
    host = said.get("hostname")
    return host if type(host) is str else ""
