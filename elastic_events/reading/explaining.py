"""
A run's account for people: the verdict first, on one screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timezone
from typing import Final

from .escaping import escaped
from .painting import Paint
from .runs import Attempt, pause_between
from .summary import summary
from .unknowns import unknowns
from .verdicts import AttemptAccount, Cause, Verdict, Victim
from .wording import counted, duration_text, ranks_text


_STYLES: Final = {
    "succeeded": "bold green",
    "failed": "bold red",
    "running": "bold yellow",
    "restarted": "yellow",
    "unknown": "bold yellow",
}
_WHY: Final = {
    "stopped_by_agent": "stopped by the agent",
    "peer_closed": "lost the connection to a peer",
    "rendezvous_closed": "found the rendezvous closed",
    "unknown": "ended too, why is not known",
}
_LONGEST_NAME: Final = 100
_MOST_NODES: Final = 8
_MOST_ATTEMPTS: Final = 8


def explained(
    verdict: Verdict,
    clocks: Mapping[str, float],
    *,
    paint: Paint,
    is_utc: bool = True,
    is_verbose: bool = False,
) -> Iterator[str]:
    """
    Yield the lines that tell people what came of a run, and why.

    Args:
        verdict: What came of the run.

        clocks: Hosts whose clocks are off, and by how many seconds.

        paint: Gives text the colours of a style.

        is_utc: Whether times are UTC, else those of this machine's zone.

        is_verbose:
            Whether the traceback, all attempts and the lines on which it
            rests are told too.
    """
    telling = _Telling(paint, timezone.utc if is_utc else None, is_verbose)
    yield from telling.headline(verdict)
    if verdict.cause is not None:
        yield ""
        yield from telling.cause("First cause", verdict.cause)
        if verdict.victims:
            yield ""
            yield from telling.victims(verdict.victims)
    yield from telling.lost_nodes(verdict)
    yield from telling.attempts(verdict)
    missing = unknowns(verdict, clocks)
    if missing:
        yield ""
        yield paint("Not known", "bold")
        yield from (f"  - {escaped(each)}" for each in missing)


def listed(
    verdicts: Iterable[Verdict], *, paint: Paint, is_utc: bool = True
) -> Iterator[str]:
    """
    Yield a line for each of several runs.
    """
    telling = _Telling(paint, timezone.utc if is_utc else None, False)
    for verdict in verdicts:
        yield from telling.headline(verdict)
        if verdict.cause is not None:
            yield f"  {summary(verdict.cause)}"


class _Telling:
    def __init__(
        self, paint: Paint, zone: timezone | None, is_verbose: bool
    ) -> None:
        self._paint = paint
        self._zone = zone
        self._is_verbose = is_verbose
        self._day: date | None = None

    def headline(self, verdict: Verdict) -> Iterator[str]:
        run = verdict.run
        self._day = None
        parts = [counted(len(run.attempts), "attempt")]
        if run.started is not None and run.last is not None:
            parts.append(duration_text(max(0, run.last - run.started)))
            parts.append(f"from {self._time(run.started)}")
        outcome = self._paint(
            verdict.outcome.upper(), _STYLES[verdict.outcome]
        )
        name = escaped(run.run_id, _LONGEST_NAME)
        yield f"{self._paint(f'Run {name}', 'bold')}: {outcome}"
        yield f"  {', '.join(parts)}"

    def cause(self, title: str, cause: Cause) -> Iterator[str]:
        sure = "" if cause.certain else " (not certain)"
        what = self._paint(summary(cause), "bold red")
        yield f"{self._paint(title, 'bold')}: {what}{sure}"
        place = [f"on {escaped(cause.node)}"] if _has_place(cause) else []
        if cause.local_rank is not None:
            place.append(f"local rank {cause.local_rank}")
        if cause.pid is not None:
            place.append(f"pid {cause.pid}")
        if cause.attempt is not None:
            place.append(f"attempt {cause.attempt}")
        if cause.time is not None:
            place.append(f"at {self._time_of_cause(cause, cause.time)}")
        if place:
            yield f"  {', '.join(place)}"
        if cause.lines:
            lines = cause.lines if self._is_verbose else cause.lines[-1:]
            yield "  " + self._paint(
                "see " + ", ".join(map(escaped, lines)), "dim"
            )
        yield from self._trace(cause)

    def victims(self, victims: tuple[Victim, ...]) -> Iterator[str]:
        if not victims:
            return
        title = self._paint("Victims", "bold")
        workers = sum(not _is_node(victim) for victim in victims)
        told = [counted(workers, "worker")] if workers else []
        if workers < len(victims):
            told.append(counted(len(victims) - workers, "agent"))
        yield f"{title}: {', '.join(told)}"
        for why, text in _WHY.items():
            hurt: dict[str, list[int]] = {}
            for victim in victims:
                if victim.why == why:
                    ranks = hurt.setdefault(victim.node, [])
                    ranks += [] if victim.rank is None else [victim.rank]
            if hurt:
                yield f"  {text}: {self._places(hurt)}"

    def lost_nodes(self, verdict: Verdict) -> Iterator[str]:
        if not verdict.lost_nodes:
            return
        yield ""
        yield self._paint("Lost nodes", "bold")
        for lost in verdict.lost_nodes:
            parts = [escaped(lost.id)]
            if lost.last is not None and lost.last.time is not None:
                parts.append(f"its last line at {self._time(lost.last.time)}")
            if lost.missed is not None and lost.missed.time is not None:
                given_up = self._time(lost.missed.time)
                parts.append(f"given up by the others at {given_up}")
            yield f"  {', '.join(parts)}"

    def attempts(self, verdict: Verdict) -> Iterator[str]:
        accounts = verdict.attempts
        if not accounts:
            return
        yield ""
        yield self._paint("Attempts", "bold")
        hidden = len(accounts) - _MOST_ATTEMPTS
        if hidden > 0 and not self._is_verbose:
            half = _MOST_ATTEMPTS // 2
            yield from self._rows(accounts[:half], verdict)
            yield f"  … {hidden} more (-v shows them)"
            yield from self._rows(accounts[-half:], verdict)
        else:
            yield from self._rows(accounts, verdict)

    def _rows(
        self, accounts: tuple[AttemptAccount, ...], verdict: Verdict
    ) -> Iterator[str]:
        for each in accounts:
            yield from self._row(each)
            if each.cause is not None and each.cause != verdict.cause:
                lines = self._reason(each.cause, each.victims)
                yield from (f"     {line}" for line in lines)
            number = each.attempt.number
            if number + 1 < len(verdict.attempts):
                yield from self._cost(
                    each.attempt, verdict.attempts[number + 1].attempt
                )

    def _reason(
        self, cause: Cause, victims: tuple[Victim, ...]
    ) -> Iterator[str]:
        """
        Yield why an attempt failed that was not the last.
        """
        if self._is_verbose:
            yield from self.cause("First cause", cause)
            yield from self.victims(victims)
            return
        where = f", on {escaped(cause.node)}" if _has_place(cause) else ""
        sure = "" if cause.certain else " (not certain)"
        yield f"{summary(cause)}{where}{sure}"
        counts = Counter(
            (_WHY[victim.why], "agent" if _is_node(victim) else "worker")
            for victim in sorted(victims, key=_order_of)
        )
        hurt = [
            f"{counted(number, thing)} {text}"
            for (text, thing), number in counts.items()
        ]
        if hurt:
            yield "; ".join(hurt)

    def _row(self, account: AttemptAccount) -> Iterator[str]:
        attempt = account.attempt
        parts = [self._paint(account.outcome, _STYLES[account.outcome])]
        if attempt.restart is not None:
            parts.append(f"restart {attempt.restart}")
        nodes = attempt.group_size or len(attempt.nodes)
        parts.append(counted(nodes, "node"))
        if attempt.world_size is not None:
            parts.append(counted(attempt.world_size, "worker"))
        if attempt.started is not None:
            parts.append(f"from {self._time(attempt.started)}")
            # Else a clock was set.
            if attempt.ended is not None and attempt.ended >= attempt.started:
                lasted = attempt.ended - attempt.started
                parts.append(f"for {duration_text(lasted)}")
        yield f"  {attempt.number}: {', '.join(parts)}"
        if self._is_verbose and attempt.wait is not None:
            # Who waited the shortest came last.
            late = min(
                (part for part in attempt.parts if part.wait is not None),
                key=lambda part: part.wait or 0,
            )
            last = f", {escaped(late.node)} came last"
            yield (
                f"     met in {duration_text(attempt.wait)}"
                f"{last if len(attempt.parts) > 1 else ''}"
            )

    def _cost(self, attempt: Attempt, later: Attempt) -> Iterator[str]:
        pause = pause_between(attempt, later)
        if pause is not None:
            yield (f"     {duration_text(pause)} until workers ran again")

    def _trace(self, cause: Cause) -> Iterator[str]:
        if self._is_verbose and cause.error and cause.error.traceback:
            for line in cause.error.traceback.rstrip("\n").split("\n"):
                yield "    " + self._paint(escaped(line), "red")

    def _places(self, hurt: Mapping[str, list[int]]) -> str:
        nodes = list(hurt.items())
        shown = nodes if self._is_verbose else nodes[:_MOST_NODES]
        text = "; ".join(
            f"{_ranks(ranks)} on {escaped(node)}".strip()
            for node, ranks in shown
        )
        more = len(nodes) - len(shown)
        return f"{text}; and on {counted(more, 'node')} more" if more else text

    def _time_of_cause(self, cause: Cause, time: int) -> str:
        """
        Return its time, in whole seconds where torch's error alone gives it.
        """
        text = self._time(time)
        if cause.error is None or cause.error.timestamp != time:
            return text
        return text.replace(".000", "", 1)

    def _time(self, milliseconds: int) -> str:
        """
        Return a time: the first with its date, a later one on another day.
        """
        try:
            moment = datetime.fromtimestamp(
                milliseconds // 1000, tz=timezone.utc
            ).astimezone(self._zone)
        except (ValueError, OverflowError, OSError):
            return f"{milliseconds} ms"
        text = f"{moment:%H:%M:%S}.{milliseconds % 1000:03}"
        if moment.date() == self._day:
            return text
        if self._day is not None:
            return f"{moment.date()} {text}"
        self._day = moment.date()
        zone = "UTC" if self._zone else f"{moment:UTC%z}"
        return f"{moment.date()} {text} {zone}"


def _has_place(cause: Cause) -> bool:
    # A lost node is named as what failed.
    return cause.node is not None and cause.kind != "node_lost"


def _order_of(victim: Victim) -> int:
    return list(_WHY).index(victim.why)


def _is_node(victim: Victim) -> bool:
    return (
        victim.why == "rendezvous_closed"
        and victim.rank is victim.exit_code is None
    )


def _ranks(ranks: list[int]) -> str:
    if not ranks:
        return ""
    return f"rank{'s' if len(ranks) > 1 else ''} {ranks_text(ranks)}"
