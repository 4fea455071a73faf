"""
Clocks that step back, and nodes whose clocks are off.

Nothing is corrected; it is only said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Final, NamedTuple, TypeAlias

from .fact_finding import fact_of
from .facts import Joined
from .filters import is_keepalive
from .records import Finding, Record, is_time, time_of


# Less is what threads and processes do that write in another order.
_STEP: Final = 1000
# A round is complete for all of its nodes within about two seconds.
_OFF: Final = 5000


_Meeting: TypeAlias = "tuple[str, int, int]"
"""Run, round, and how many nodes there are."""


class _Joined(NamedTuple):
    """
    When a host said that it joined a round, and where.
    """

    host: str
    time: float
    file: str
    number: int


class _Off(NamedTuple):
    """
    A host whose clock is off, by milliseconds, and how to say it.
    """

    joined: _Joined
    ahead: float
    what: str


class ClockWatch:
    """
    What watches the times of records.

    It remembers each writer and each round of a rendezvous, and no record
    beside.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, int], float] = {}
        self._stepped: dict[tuple[str, int], Finding] = {}
        # For each round, by rank, who joined; and again in a later run of
        # the same name.
        self._rounds: dict[_Meeting, list[dict[int, _Joined]]] = {}
        self._times_joined: Counter[tuple[_Meeting, int]] = Counter()

    def see(self, record: Record) -> None:
        """
        Look at *record*, which comes after those of its writer seen before.
        """
        said = record.said
        time = time_of(said)
        host, pid = said.get("hostname"), said.get("pid")
        if not is_time(time):
            return
        if type(host) is not str or type(pid) is not int:
            return
        writer = (host, pid)
        latest = self._latest.get(writer, time)
        if time >= latest:
            self._latest[writer] = time
        elif latest - time > _STEP and writer not in self._stepped:
            self._stepped[writer] = Finding(
                record.file,
                record.number,
                f"time of {host} pid {pid} goes back by"
                f" {_seconds(latest - time)} (a clock that was set, or events"
                " that bring their own time)",
            )
        if said.get("kind") != "rdzv" or is_keepalive(said):
            return
        fact = fact_of(said)
        if isinstance(fact, Joined):
            joined = _Joined(host, time, record.file, record.number)
            self._see_joined(fact, str(said.get("run_id")), joined)

    def findings(self) -> list[Finding]:
        """
        Return what is odd: first the steps back, then the clocks that are off.
        """
        return [
            *self._stepped.values(),
            *(
                Finding(each.joined.file, each.joined.number, each.what)
                for each in self._off().values()
            ),
        ]

    def offsets(self) -> dict[str, float]:
        """
        Return the hosts whose clocks are off, and the seconds each is ahead.

        That is of the median of all hosts; where there are but two, of the
        other, for nobody knows which is right.
        """
        return {host: each.ahead / 1000 for host, each in self._off().items()}

    def _see_joined(self, fact: Joined, run_id: str, joined: _Joined) -> None:
        meeting = (run_id, fact.round, fact.group_size)
        again = self._rounds.setdefault(meeting, [])
        times = self._times_joined[meeting, fact.group_rank]
        self._times_joined[meeting, fact.group_rank] += 1
        if times == len(again):
            again.append({})
        again[times][fact.group_rank] = joined

    def _off(self) -> dict[str, _Off]:
        off: dict[str, _Off] = {}
        for again in self._rounds.values():
            for ranks in again:
                for each in _off_in(ranks.values()):
                    off.setdefault(each.joined.host, each)
        return off


def _off_in(joined: Iterable[_Joined]) -> list[_Off]:
    """
    Return the hosts that say of one round that it was at another time.
    """
    hosts: dict[str, _Joined] = {}
    for each in joined:
        hosts.setdefault(each.host, each)
    if len(hosts) == 2:
        return _apart(*sorted(hosts.values(), key=_time))
    middle = median(map(_time, hosts.values())) if hosts else 0
    return [
        _Off(
            each,
            each.time - middle,
            f"the clock of {each.host} is {_seconds(abs(each.time - middle))}"
            f" {'ahead of' if each.time > middle else 'behind'} those of the"
            " other nodes",
        )
        for each in hosts.values()
        if abs(each.time - middle) > _OFF
    ]


def _apart(earlier: _Joined, later: _Joined) -> list[_Off]:
    ahead = later.time - earlier.time
    if ahead <= _OFF:
        return []
    what = (
        f"the clocks of {later.host} and {earlier.host} differ by"
        f" {_seconds(ahead)}: {later.host} is ahead, or {earlier.host} behind"
    )
    return [_Off(later, ahead, what)]


def _time(joined: _Joined) -> float:
    return joined.time


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s"
