"""
What a line may say of a job.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Error(NamedTuple):
    """
    An exception, as far as it is known.
    """

    type: str | None = None
    message: str | None = None
    traceback: str | None = None
    timestamp: int | None = None
    """When it was raised, by its host's clock, in ms; torch's are whole s."""


class Launched(NamedTuple):
    """
    An agent was started with this configuration.
    """

    run_id: str | None
    min_nodes: int | None
    endpoint: str | None
    """Where the nodes meet, as ``HOST:PORT``."""


class Waited(NamedTuple):
    """
    A node came to the rendezvous, and waits for the others.
    """

    node: str


class Joined(NamedTuple):
    """
    A node has joined a completed round.
    """

    node: str
    round: int
    group_rank: int
    group_size: int


class Left(NamedTuple):
    """
    A node took itself out of a round.
    """


class Removed(NamedTuple):
    """
    Nodes were removed by another one that had heard nothing of them.
    """

    nodes: tuple[str, ...]


class RendezvousFailed(NamedTuple):
    """
    A node could not meet the others.
    """

    error: Error


class Met(NamedTuple):
    """
    The agent left the rendezvous, well or not.
    """

    restart: int | None


class Assigned(NamedTuple):
    """
    The ranks of a completed round were assigned.
    """


class WorkerSaid(NamedTuple):
    """
    The agent, or the worker itself, tells the state of a worker.
    """

    state: str
    """``START``, ``SUCCEEDED``, ``FAILED``, or one of a newer torch."""
    rank: int | None
    local_rank: int | None
    pid: int | None
    restart: int | None
    world_size: int | None
    group_rank: int | None
    group_size: int | None
    exit_code: int | None
    error: Error | None


class WorkerExited(NamedTuple):
    """
    The first worker of a node that failed in an attempt.
    """

    local_rank: int
    pid: int
    exit_code: int


class ErrorFile(NamedTuple):
    """
    What a worker left in its error file; which worker is not said.
    """

    error: Error


class Stopping(NamedTuple):
    """
    The agent sends a signal to a worker that is alive.
    """

    pid: int
    signal: str


class Restarting(NamedTuple):
    """
    The agent will start its workers again.
    """

    failed: bool
    """Whether for a failure; else because nodes came or went."""


class Finished(NamedTuple):
    """
    The workers of this node are done, and well.
    """


class ToldToStop(NamedTuple):
    """
    The agent got a signal.
    """

    signal: int


class AgentSaid(NamedTuple):
    """
    An agent's last state.
    """

    state: str
    error: Error | None


Fact: TypeAlias = (
    "Launched | Waited | Joined | Left | Removed | RendezvousFailed | Met"
    " | Assigned | WorkerSaid | WorkerExited | ErrorFile | Stopping"
    " | Restarting | Finished | ToldToStop | AgentSaid"
)
