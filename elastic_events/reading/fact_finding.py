"""
From one line to the fact that it states: from events, and torch's prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ..torchelastic import EVENT_PREFIX
from .facts import (
    AgentSaid,
    Assigned,
    Error,
    ErrorFile,
    Fact,
    Finished,
    Joined,
    Launched,
    Left,
    Met,
    Removed,
    RendezvousFailed,
    Restarting,
    Stopping,
    ToldToStop,
    Waited,
    WorkerExited,
    WorkerSaid,
)


_TORCH_LOGGERS: Final = "torch.distributed."


def fact_of(said: dict[str, Any]) -> Fact | None:
    """
    Return the fact that a line states, `None` if it states none.

    Args:
        said: The keys of the line; their types may be any.
    """
    kind = said.get("kind")
    if kind == "event":
        name = said.get("name")
        if isinstance(name, str) and name.startswith(EVENT_PREFIX):
            return _of_event(said)
    elif kind == "rdzv":
        return _of_rendezvous(said)
    elif kind == "log":
        logger = said.get("logger")
        if isinstance(logger, str) and logger.startswith(_TORCH_LOGGERS):
            return _of_log(said)
    return None


def _error_of_trace(trace: str) -> Error:
    """
    Return the exception that a traceback ends with.
    """
    last = trace.rstrip().rpartition("\n")[2]
    named = _EXCEPTION.fullmatch(last)
    if named is None:
        return Error(traceback=trace)
    kind = named["type"].rpartition(".")[2]
    return Error(kind, named["message"] or "", trace)


_EXCEPTION: Final = re.compile(
    r"(?P<type>[^\W\d][\w.]*)(?::\s?(?P<message>.*))?", re.DOTALL
)


def _of_event(said: dict[str, Any]) -> Fact | None:
    metadata = _mapping(said.get("metadata"))
    state = metadata.get("state")
    if not isinstance(state, str):
        state = str(said.get("name")).rpartition(".")[2]
    if said.get("source") == "WORKER":
        return _of_worker(said, state, _int(metadata.get("group_rank")))
    if state == "RENDEZVOUS":
        return Met(_int(said.get("restart")))
    if state == "ASSIGN_WORKER_RANKS":
        return Assigned()
    if state in {"FAILED", "SUCCEEDED"}:
        return AgentSaid(state, _error_of(said, {}))
    return None


def _of_worker(
    said: dict[str, Any], state: str, group_rank: int | None
) -> WorkerSaid:
    worker = _mapping(said.get("worker"))
    return WorkerSaid(
        state=state,
        rank=_int(said.get("rank")),
        local_rank=_int(said.get("local_rank", worker.get("local_rank"))),
        pid=_int(worker.get("pid")),
        restart=_int(said.get("restart")),
        world_size=_int(worker.get("role_world_size")),
        group_rank=group_rank,
        group_size=_int(worker.get("group_world_size")),
        exit_code=_int(worker.get("exit_code")),
        error=_error_of(said, worker),
    )


def _error_of(said: dict[str, Any], worker: dict[str, Any]) -> Error | None:
    """
    Return the error of a worker or agent that has one.
    """
    trace = _text(said.get("error_trace"))
    error = _mapping(worker.get("error"))
    if error:
        return Error(
            type=_text(error.get("type")),
            message=_text(error.get("message")),
            traceback=trace,
            timestamp=_int(error.get("timestamp")),
        )
    return _error_of_trace(trace) if trace else None


_NODE: Final = r"The node '(?P<node>[^']*)' "
_ROUNDS: Final[tuple[tuple[re.Pattern[str], Callable[..., Fact]], ...]] = (
    (
        re.compile(
            _NODE + r"has joined round (?P<round>\d{1,9}) of the rendezvous"
            r" '.*' as rank (?P<group_rank>\d{1,9}) in a world of size"
            r" (?P<group_size>\d{1,9})\.",
            re.DOTALL,
        ),
        lambda node, **numbers: Joined(
            node, **{key: int(text) for key, text in numbers.items()}
        ),
    ),
    (re.compile(_NODE + r"attempts to join the next round"), Waited),
    (
        re.compile(_NODE + r"removed itself from the participants"),
        lambda node: Left(),  # noqa: ARG005
    ),
    (
        re.compile(
            r"As part of the sync operation the node\(s\) (?P<nodes>'.*')"
            r" have been removed from the rendezvous",
            re.DOTALL,
        ),
        lambda nodes: Removed(tuple(re.findall(r"'([^']+)'", nodes))),
    ),
)
_NODE_AT_THE_BEGINNING: Final = re.compile(_NODE)
_SHUTDOWN: Final = ".shutdown"


def node_of(said: dict[str, Any]) -> str | None:
    """
    Return torch's id of the node that a line of a rendezvous is about.
    """
    named = _NODE_AT_THE_BEGINNING.match(_text(said.get("message")) or "")
    return named["node"] if named is not None else None


def _of_rendezvous(said: dict[str, Any]) -> Fact | None:
    message = _text(said.get("message")) or ""
    if said.get("node_state") == "FAILED":
        if str(said.get("name")).endswith(_SHUTDOWN):
            # The job is over by then, and the store may be gone with it.
            return None
        trace = _text(said.get("error_trace"))
        named = _EXCEPTION.fullmatch(message)
        error = Error(message=message, traceback=trace)
        if named is not None and named["message"] is not None:
            error = Error(named["type"], named["message"], trace)
        return RendezvousFailed(error)
    for pattern, make in _ROUNDS:
        found = pattern.match(message)
        if found is not None:
            return make(**found.groupdict())
    return None


_LAUNCHED: Final = "Starting elastic_operator with launch configs:"
_SETTING: Final = re.compile(r"^ *(\w+) +: (.*)$", re.MULTILINE)
_STOPPING: Final = re.compile(
    r"(?:Sending process (\d{1,9}) closing signal (\w+)"
    r"|Closing process (\d{1,9}) via signal (\w+))"
)
_STOPPING_HARDER: Final = re.compile(
    r"Unable to shutdown process (\d{1,9}) via \w+, forcefully exiting via"
    r" (\w+)"
)
_TOLD_TO_STOP: Final = re.compile(
    r"(?:Received (\d{1,3}) death signal|Got termination signal: (\d{1,3}))"
)
_RESTARTING: Final = re.compile(
    r"\[[^\]]*\] (?:Worker group (\w+)\. |Detected \d+ new nodes)"
    r".*will restart worker group"
)
_FINISHED: Final = re.compile(
    r"\[[^\]]*\] worker group successfully finished\."
)


def _of_log(said: dict[str, Any]) -> Fact | None:
    message = _text(said.get("message")) or ""
    worker = _mapping(said.get("worker"))
    if worker:
        return _of_worker_log(said, worker)
    if message.startswith(_LAUNCHED):
        return _launched(message)
    for pattern in _STOPPING, _STOPPING_HARDER:
        found = pattern.match(message)
        if found is not None:
            pid, signal = (each for each in found.groups() if each)
            return Stopping(int(pid), signal)
    told = _TOLD_TO_STOP.match(message)
    if told is not None:
        return ToldToStop(int(told[1] or told[2]))
    restarting = _RESTARTING.match(message)
    if restarting is not None:
        return Restarting(failed=restarting[1] is not None)
    return Finished() if _FINISHED.match(message) else None


def _of_worker_log(
    said: dict[str, Any], worker: dict[str, Any]
) -> Fact | None:
    exit_code, local_rank, pid = (
        _int(worker.get(key)) for key in ("exit_code", "local_rank", "pid")
    )
    if exit_code is not None and local_rank is not None and pid is not None:
        return WorkerExited(local_rank, pid, exit_code)
    error = _error_of(said, worker)
    return ErrorFile(error) if error is not None else None


def _launched(message: str) -> Launched:
    settings = dict(_SETTING.findall(message))
    return Launched(
        run_id=settings.get("run_id") or None,
        min_nodes=_int_in(settings.get("min_nodes")),
        endpoint=settings.get("rdzv_endpoint") or None,
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _int(value: object) -> int | None:
    return value if type(value) is int else None


def _int_in(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None
