"""
The account of a run as JSON: what ``explain -o json`` promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .unknowns import unknowns
from .verdicts import AttemptAccount, Cause, Verdict, Victim


def account(
    verdict: Verdict, clocks: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """
    Return what is known of a run; what is not known is `None`.

    Args:
        verdict: What came of the run.

        clocks: Hosts whose clocks are off, and by how many seconds.
    """
    run = verdict.run
    is_over = verdict.outcome in ("succeeded", "failed")
    return {
        "run_id": run.run_id,
        "outcome": verdict.outcome,
        "started": run.started,
        "ended": run.last if is_over else None,
        "cause": _cause(verdict.cause),
        "victims": _victims(verdict.victims),
        "lost_nodes": [lost.id for lost in verdict.lost_nodes],
        "attempts": [_attempt(each) for each in verdict.attempts],
        "unknown": unknowns(verdict, clocks or {}),
    }


def _attempt(account: AttemptAccount) -> dict[str, Any]:
    attempt = account.attempt
    return {
        "attempt": attempt.number,
        "round": attempt.round,
        "restart": attempt.restart,
        "outcome": account.outcome,
        "started": attempt.started,
        "ended": attempt.ended,
        "world_size": attempt.world_size,
        "nodes": attempt.nodes,
        "cause": _cause(account.cause),
        "victims": _victims(account.victims),
    }


def _cause(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    error = cause.error
    return {
        **cause._asdict(),
        "error": None
        if error is None
        else {
            "type": error.type,
            "message": error.message,
            "traceback": error.traceback,
        },
        "lines": list(cause.lines),
    }


def _victims(victims: tuple[Victim, ...]) -> list[dict[str, Any]]:
    return [victim._asdict() for victim in victims]
