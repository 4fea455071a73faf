"""
Drawing of nodes and their workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..escaping import escaped
from ..hosts import host_label
from ..runs import Moment, Node, Part, Worker
from ..signals import signal_name
from ..summary import summary
from ..verdicts import Cause, LostNode, Verdict
from ..wording import counted, duration_text, ranks_text
from .canvas import Canvas, Row
from .pieces import SPAN_KINDS
from .places import Clock
from .words import LONGEST_NAME, Words, workers_text


class NodeDrawer:
    """
    What draws the nodes of a run.

    Args:
        verdict: What came of the run.

        canvas: Where they are drawn.

        clock: Where in the picture a moment stands.

        words: How things are called.
    """

    def __init__(
        self, verdict: Verdict, canvas: Canvas, clock: Clock, words: Words
    ) -> None:
        self._verdict = verdict
        self._canvas = canvas
        self._clock = clock
        self._words = words
        self._lost = {lost.id: lost for lost in verdict.lost_nodes}
        causes = [verdict.cause, *(each.cause for each in verdict.attempts)]
        self._culprits = [cause.node for cause in causes if cause]
        """The nodes of first causes, that of the run's before the others."""
        self._attempts = {
            id(part): each.attempt.number
            for each in verdict.attempts
            for part in each.attempt.parts
        }

    def draw(self) -> None:
        """
        Draw each node and its workers, those that failed first.
        """
        nodes = {node.id: node for node in self._verdict.run.nodes}
        gone = {
            lost: Node(lost, "", None, is_agent=False)
            for lost in self._lost
            if lost not in nodes
        }
        for node in sorted([*nodes.values(), *gone.values()], key=self._order):
            self._draw_node(node)

    def _order(self, node: Node) -> tuple[int, int, str]:
        ranks = [part.group_rank for part in node.parts]
        known = [rank for rank in ranks if rank is not None]
        return self._gravity(node), min(known, default=1 << 31), node.id

    def _gravity(self, node: Node) -> int:
        if node.id in self._culprits[:1]:
            return 0
        if node.id in self._culprits:
            return 1
        if node.id in self._lost:
            return 2
        ends = {
            self._words.end_of(worker, node)
            for part in node.parts
            for worker in part.workers
        }
        return 3 if ends & {"failed", "killed"} else 4

    def _draw_node(self, node: Node) -> None:
        lane = self._canvas.add_row(node.id, None, node.host)
        self._canvas.nodes[node.id] = lane
        if node.pid is not None:
            self._canvas.rows[lane].pids.add(node.pid)
            self._canvas.processes[host_label(node.host), node.pid] = lane
        workers = self._worker_rows(node, lane)
        for part in node.parts:
            self._draw_part(node, part, lane, workers)
        for part in node.parts:
            joined = self._joined(part)
            self._draw_wait(part.waited, joined, node, lane)
            self._draw_pause(joined, self._start_of(part), lane)
        self._draw_wait(node.waiting, None, node, lane)
        self._draw_idle(node, lane)
        self._mark_node(node, lane)

    def _worker_rows(
        self, node: Node, lane: int
    ) -> dict[tuple[str, int | None], int]:
        """
        Return the lane of each worker, which keeps it when it is restarted.
        """
        workers = [worker for part in node.parts for worker in part.workers]
        rows: dict[tuple[str, int | None], int] = {}
        for worker in sorted(workers, key=_order_of_worker):
            key = _place_on_node(worker)
            if key not in rows:
                rows[key] = self._canvas.add_row("", lane, node.host)
            row = self._canvas.rows[rows[key]]
            if worker.rank is not None:
                row.ranks.add(worker.rank)
                self._canvas.rows[lane].ranks.add(worker.rank)
            if worker.pid is not None:
                row.pids.add(worker.pid)
                pid = (host_label(node.host), worker.pid)
                self._canvas.processes[pid] = rows[key]
        for (what, number), each in rows.items():
            self._canvas.rows[each].name = _name_of(
                self._canvas.rows[each], what, number
            )
        return rows

    def _draw_part(
        self,
        node: Node,
        part: Part,
        lane: int,
        rows: Mapping[tuple[str, int | None], int],
    ) -> None:
        attempt = self._attempts.get(id(part))
        start = self._start_of(part)
        kinds = []
        for worker in part.workers:
            kinds.append(self._words.end_of(worker, node))
            row = rows[_place_on_node(worker)]
            self._draw_worker(worker, node, part, row, attempt)
        if start is None:
            return
        end = self._over(part)
        if end is None:
            end = self._last_of(node)
        kind = min(kinds, key=SPAN_KINDS.index, default="running")
        text = workers_text(kinds)
        places = _lines((part.joined, part.ended))
        self._canvas.add_span(lane, kind, start, end, attempt, text, places)

    def _draw_worker(
        self,
        worker: Worker,
        node: Node,
        part: Part,
        row: int,
        attempt: int | None,
    ) -> None:
        kind = self._words.end_of(worker, node)
        start = self._clock.at(worker.started)
        start = self._start_of(part) if start is None else start
        end = self._clock.at(worker.ended)
        if end is None:
            end = self._clock.at(part.ended)
        if end is None:
            end = self._last_of(node)
        start = end if start is None else start
        places = tuple(worker.lines)
        text = self._words.of_worker(worker, kind)
        self._canvas.add_span(row, kind, start, end, attempt, text, places)
        if kind not in ("failed", "killed", "stopped"):
            return
        mark = {"failed": "failure"}.get(kind, kind)
        at = self._clock.of_worker(worker)
        number = self._canvas.add_mark(
            row, mark, end if at is None else at, text, places, attempt
        )
        self._canvas.name_mark(
            number, attempt, worker.node, rank=worker.rank, pid=worker.pid
        )

    def _draw_wait(
        self, since: Moment | None, until: int | None, node: Node, lane: int
    ) -> None:
        """
        Draw a time in which *node* waited for the others.
        """
        start = self._clock.at(since)
        if start is None:
            return
        end = self._last_of(node) if until is None else until
        text = f"waited for the rendezvous, {self._length(start, end)}"
        self._canvas.add_span(
            lane, "waiting", start, end, None, text, _lines((since,))
        )

    def _draw_idle(self, node: Node, lane: int) -> None:
        """
        Draw each time after workers in which the node did not wait.
        """
        begins = [*self._begins(node)]
        for part in node.parts:
            start = self._over(part)
            if start is None:
                continue
            later = [begin for begin in begins if begin >= start]
            end = min(later, default=self._last_of(node))
            self._draw_pause(start, end, lane)

    def _draw_pause(
        self, start: int | None, end: int | None, lane: int
    ) -> None:
        """
        Draw a time in which no worker ran, if it is worth it.
        """
        if start is None or end is None or end - start < self._clock.shortest:
            return
        text = f"no worker ran, for {self._length(start, end)}"
        self._canvas.add_span(lane, "idle", start, end, None, text)

    def _begins(self, node: Node) -> Iterator[int]:
        """
        Yield when *node* began to wait for others, or to start workers.
        """
        moments = [node.waiting, *(part.waited for part in node.parts)]
        places = [
            *(self._clock.at(each) for each in moments),
            *(self._joined(part) for part in node.parts),
        ]
        return (each for each in places if each is not None)

    def _mark_node(self, node: Node, lane: int) -> None:
        for part in node.parts:
            if part.restarting is not None:
                why = (
                    "a worker failed"
                    if part.restarting.failed
                    else "nodes came or went"
                )
                self._at(
                    lane,
                    "restart",
                    part.ended,
                    f"workers are restarted: {why}",
                    self._attempts.get(id(part)),
                )
        if node.told_to_stop is not None:
            number, moment = node.told_to_stop
            text = f"the agent was told to stop ({signal_name(number)})"
            self._at(lane, "signal", moment, text)
        if node.rendezvous_failure is not None:
            error, moment = node.rendezvous_failure
            cause = Cause("rendezvous", error=error)
            self._at(lane, "rendezvous", moment, summary(cause))
        elif node.said is not None and node.said[0].error is not None:
            cause = Cause("agent", error=node.said[0].error)
            self._at(lane, "agent", node.said[1], summary(cause))
        for other, moment in node.removed:
            text = f"gave up {escaped(other, LONGEST_NAME)}"
            self._at(lane, "removed", moment, text)
        if node.id in self._lost:
            self._mark_lost(self._lost[node.id], lane)

    def _mark_lost(self, lost: LostNode, lane: int) -> None:
        text = summary(Cause("node_lost", node=lost.id))
        last, missed = self._clock.at(lost.last), self._clock.at(lost.missed)
        places = _lines((lost.last, lost.missed))
        at = missed if last is None else last
        if at is None:
            return
        self._canvas.add_mark(lane, "lost", at, text, places)
        if last is not None and missed is not None and missed > last:
            text = f"silent for {self._length(last, missed)}, then given up"
            self._canvas.add_span(
                lane, "silent", last, missed, None, text, places
            )

    def _joined(self, part: Part) -> int | None:
        joined = self._clock.at(part.joined)
        return self._first_start(part) if joined is None else joined

    def _start_of(self, part: Part) -> int | None:
        """
        Return when the first worker of *part* started, as far as is known.
        """
        start = self._first_start(part)
        return self._clock.at(part.joined) if start is None else start

    def _first_start(self, part: Part) -> int | None:
        starts = [self._clock.at(worker.started) for worker in part.workers]
        return min((each for each in starts if each is not None), default=None)

    def _over(self, part: Part) -> int | None:
        """
        Return when no worker of *part* ran any more.
        """
        if any(worker.state == "running" for worker in part.workers):
            return self._clock.at(part.ended)
        moments = [part.ended, *(worker.ended for worker in part.workers)]
        ends = [self._clock.at(moment) for moment in moments]
        return max((each for each in ends if each is not None), default=None)

    def _last_of(self, node: Node) -> int:
        last = self._clock.at(node.last)
        return self._clock.start if last is None else last

    def _length(self, start: int, end: int) -> str:
        if not self._clock.is_known:
            return counted(max(0, end - start), "line")
        return duration_text(max(0, end - start))

    def _at(
        self,
        lane: int,
        kind: str,
        moment: Moment | None,
        text: str,
        attempt: int | None = None,
    ) -> None:
        at = self._clock.at(moment)
        if at is None:
            at = self._clock.start
        self._canvas.add_mark(lane, kind, at, text, _lines((moment,)), attempt)


def _place_on_node(worker: Worker) -> tuple[str, int | None]:
    if worker.local_rank is not None:
        return "local rank", worker.local_rank
    if worker.rank is not None:
        return "rank", worker.rank
    return "pid", worker.pid


def _order_of_worker(worker: Worker) -> tuple[str, int]:
    what, number = _place_on_node(worker)
    return what, -1 if number is None else number


def _name_of(row: Row, what: str, number: int | None) -> str:
    if row.ranks:
        some = "ranks" if len(row.ranks) > 1 else "rank"
        return f"{some} {ranks_text(row.ranks)}"
    return "a worker" if number is None else f"{what} {number}"


def _lines(moments: Iterable[Moment | None]) -> tuple[str, ...]:
    lines = [moment.line for moment in moments if moment and moment.line]
    return tuple(dict.fromkeys(lines))
