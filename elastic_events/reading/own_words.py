"""
What workers recorded of their own end, beside what their agents know.
"""

from __future__ import annotations

from .facts import WorkerSaid
from .hosts import host_label
from .processes import Process, moment_of
from .runs import Moment, Node, Part, Worker


def add_own_words(nodes: list[Node], processes: list[Process]) -> None:
    """
    Add what workers recorded of their own end to what their agents know.

    Args:
        nodes:
            Those of the agents. A host whose workers recorded, but not their
            agent, is added.

        processes: The workers.
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
    node: Node, process: Process, fact: WorkerSaid, moment: Moment
) -> Worker:
    for part in node.parts:
        if part.restart == process.restart:
            break
    else:
        part = Part(node.id, restart=process.restart, joined=moment)
        node.parts.append(part)
    worker = part.worker(process.pid, fact.local_rank)
    worker.rank = process.rank
    worker.started = moment_of(process.first)
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
