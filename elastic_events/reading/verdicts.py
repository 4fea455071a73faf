"""
What is told of a run: what came of it, the first cause, and its victims.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from .facts import Error
from .runs import Attempt, Moment, Run


Kind: TypeAlias = Literal[
    "worker", "signal", "agent", "rendezvous", "node_lost", "unknown"
]
Why: TypeAlias = Literal[
    "stopped_by_agent", "peer_closed", "rendezvous_closed", "unknown"
]
Outcome: TypeAlias = Literal[
    "succeeded", "failed", "restarted", "running", "unknown"
]
"""``restarted`` is an attempt that ended because nodes came or went."""


class Cause(NamedTuple):
    """
    What failed first.
    """

    kind: Kind
    attempt: int | None = None
    node: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    error: Error | None = None
    time: int | None = None
    certain: bool = False
    lines: tuple[str, ...] = ()


class LostNode(NamedTuple):
    """
    A node that was gone without a word.
    """

    id: str
    last: Moment | None
    """Its own last line, if there is one."""
    missed: Moment | None
    """When another node gave it up, if one did."""
    is_guess: bool
    """Whether nobody said so: it is silent while the others have ended."""
    is_seen: bool
    """Whether its own lines tell in which rounds it took part."""


class Victim(NamedTuple):
    """
    Who failed only because something else had.
    """

    node: str
    rank: int | None
    exit_code: int | None
    why: Why


class AttemptAccount(NamedTuple):
    """
    What came of an attempt, and why.
    """

    attempt: Attempt
    outcome: Outcome
    cause: Cause | None
    victims: tuple[Victim, ...]


class Verdict(NamedTuple):
    """
    What came of a run, and why.
    """

    run: Run
    outcome: Outcome
    cause: Cause | None
    victims: tuple[Victim, ...]
    lost_nodes: tuple[LostNode, ...]
    attempts: tuple[AttemptAccount, ...]
