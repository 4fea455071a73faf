"""
How workers ended, and what failed, in words.
"""

from __future__ import annotations

from typing import Final

from ..escaping import escaped
from ..runs import Node, Worker
from ..signals import signal_of
from ..summary import summary
from ..verdicts import Cause, Verdict
from ..wording import counted
from .pieces import SPAN_KINDS


LONGEST_NAME: Final = 100


class Words:
    """
    The words of ``explain`` for what is drawn of one run.

    Args:
        verdict: What came of the run.
    """

    def __init__(self, verdict: Verdict) -> None:
        self._lost = {lost.id for lost in verdict.lost_nodes}

    def of_worker(self, worker: Worker, kind: str) -> str:
        """
        Return how *worker* ended, which is drawn as *kind*.
        """
        who = "a worker" if worker.rank is None else f"rank {worker.rank}"
        if kind in ("failed", "killed"):
            return summary(
                Cause(
                    "worker",
                    rank=worker.rank,
                    exit_code=worker.exit_code,
                    error=worker.error,
                )
            )
        if kind == "stopped":
            with_signal = worker.stopped_with or signal_of(worker.exit_code)
            how = f" ({escaped(with_signal)})" if with_signal else ""
            return f"{who} was stopped by its agent{how}"
        if kind == "lost":
            return f"{who} was lost with its node"
        return f"{who} {kind}"

    def end_of(self, worker: Worker, node: Node) -> str:
        """
        Return how a worker ended, as far as it is drawn.
        """
        if worker.state == "running" and worker.stopped_with is None:
            return "lost" if node.id in self._lost else "running"
        if worker.state == "succeeded":
            return "succeeded"
        if worker.stopped_with is not None and not worker.is_first_of_node:
            return "failed" if worker.error is not None else "stopped"
        if worker.state == "stopped":
            return "stopped"
        signal = signal_of(worker.exit_code)
        if signal is None:
            return "failed"
        is_known = worker.is_first_of_node or node.has_logs
        return "stopped" if signal == "SIGTERM" and not is_known else "killed"


def workers_text(kinds: list[str]) -> str:
    """
    Return how many workers ended how.
    """
    counts = [
        f"{kinds.count(kind)} {kind}" for kind in SPAN_KINDS if kind in kinds
    ]
    return f"{counted(len(kinds), 'worker')}" + (
        f" ({', '.join(counts)})" if counts else ""
    )
