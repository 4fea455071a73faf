"""
What torchelastic says of a worker in JSON strings and prose, typed.

Its events carry JSON inside JSON, every number of a worker in a list of one;
why an attempt failed that was restarted stands in its log messages only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from .encoding import decode
from .schema import JOB_KEYS, LARGEST_INT, fits


EVENT_PREFIX: Final = "torchelastic."
FAILED_EVENT: Final = "torchelastic.worker.status.FAILED"
LOGGER_PREFIX: Final = "torch.distributed.elastic.multiprocessing."

_WORKER_KEYS: Final = (
    ("local_rank", "local_rank", int),
    ("role_rank", "role_rank", int),
    ("role_world_size", "role_world_size", int),
    ("group_world_size", "group_world_size", int),
    ("exit_code", "exit_code", int),
    ("pid", "worker_pid", int),
    ("entry_point", "entry_point", str),
)
_NOTHING_SAID: Final = "<NONE>"
_EXITED: Final = re.compile(
    r"failed \(exitcode: (?P<exit_code>-?\d{1,9})\)"
    r" local_rank: (?P<local_rank>\d{1,9}) \(pid: (?P<pid>\d{1,9})\)"
)
_ERROR_DATA: Final = "User process failed with error data: "
_EXCEPTION: Final = re.compile(
    r"(?P<type>[^\W\d][\w.]*):(?: (?P<message>.*))?", re.DOTALL
)


Account: TypeAlias = "tuple[bool, dict[str, Any], dict[str, Any], str]"


def account_of_event(metadata: Mapping[str, Any]) -> Account:
    """
    Return what the *metadata* of a ``torchelastic.*`` event says.

    Returns:
        Whether it failed, its place in the job, what it says of the worker,
        and the traceback.
    """
    worker = _worker(_object(metadata.get("metadata")))
    if not worker.get("pid"):
        pid = _digits(metadata.get("worker_id"))
        if pid is not None:
            worker["pid"] = pid
    job: dict[str, Any] = {
        "run_id": metadata.get("run_id"),
        "rank": metadata.get("global_rank"),
        "local_rank": worker.get("local_rank"),
        "restart": metadata.get("agent_restarts"),
    }
    for key, kind in JOB_KEYS.items():
        if not fits(job[key], kind):
            del job[key]
    error_trace = ""
    raw_error = metadata.get("raw_error")
    if raw_error is not None:
        error, error_trace = _error_of(_object(raw_error))
        if error:
            worker["error"] = error
        elif not error_trace and isinstance(raw_error, str):
            error_trace = _trace_in(raw_error)
    failed = _is_text(metadata.get("state"), "FAILED")
    return failed, job, worker, error_trace


def usual_line(
    blank: dict[str, Any], metadata: Mapping[str, Any]
) -> dict[str, Any] | None:
    """
    Return *blank* filled in with what `account_of_event` returns, at once.

    `None` unless all is as torch says it of a worker without an error.

    Args:
        blank: A line with ``level``, the keys of the job, and ``worker``.

        metadata: Of a ``torchelastic.*`` event of a worker.
    """
    try:
        run_id = metadata["run_id"]
        rank = metadata["global_rank"]
        restart = metadata["agent_restarts"]
        state = metadata["state"]
        raw_error = metadata["raw_error"]
        nested = metadata["metadata"]
        said = decode(nested)
        (local,) = said["local_rank"]
        (role,) = said["role_rank"]
        (size,) = said["role_world_size"]
        group = said["group_world_size"]
        (code,) = said["exit_code"]
        (pid,) = said["worker_pid"]
        entry = said["entry_point"]
    except (KeyError, TypeError, ValueError):
        return None
    if (
        raw_error is not None
        or not (
            type(rank)
            is type(restart)
            is type(local)
            is type(role)
            is type(size)
            is type(group)
            is type(code)
            is type(pid)
            is int
        )
        # None of them is negative or too large, in one test.
        or not 0
        <= rank | restart | local | role | size | group | pid
        <= LARGEST_INT
        or not -LARGEST_INT <= code <= LARGEST_INT
        or not type(run_id)
        is type(state)
        is type(entry)
        is type(nested)
        is str
        or not (pid and run_id and entry)
    ):
        return None
    line = blank.copy()
    if state == "FAILED":
        line["level"] = "error"
    line["run_id"] = run_id
    line["rank"] = rank
    line["local_rank"] = local
    line["restart"] = restart
    line["worker"] = {
        "local_rank": local,
        "role_rank": role,
        "role_world_size": size,
        "group_world_size": group,
        "exit_code": code,
        "pid": pid,
        "entry_point": entry,
    }
    return line


def worker_of_log(message: str) -> tuple[dict[str, Any], str]:
    """
    Return the failed worker of which a log *message* tells, and its trace.

    Both are empty for any other message.
    """
    exited = _EXITED.match(message)
    if exited is not None:
        return {key: int(text) for key, text in exited.groupdict().items()}, ""
    if message.startswith(_ERROR_DATA):
        error, trace = _error_of(_object(message[len(_ERROR_DATA) :]))
        return ({"error": error} if error else {}), trace
    return {}, ""


def _worker(nested: dict[str, Any]) -> dict[str, Any]:
    """
    Return what is said of a worker, every number in a list of one.
    """
    worker = {}
    value: Any
    for key, name, kind in _WORKER_KEYS:
        value = nested.get(name)
        if type(value) is list and len(value) == 1:
            value = value[0]
        if fits(value, kind):
            worker[key] = value
    return worker


def _error_of(raw_error: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Return type, message and time of the error, and its traceback.

    torchelastic's error file is either ``{"message": text}`` or
    ``{"message": {"message": text, "extraInfo": {…}}}``.
    """
    said = raw_error.get("message")
    extra: dict[str, Any] = {}
    if isinstance(said, dict):
        extra = said.get("extraInfo") or extra
        said = said.get("message")
    if not isinstance(said, str) or said == _NOTHING_SAID:
        return {}, ""
    error: dict[str, Any] = {"message": said}
    named = _EXCEPTION.fullmatch(said)
    if named is not None:
        error = {"type": named["type"], "message": named["message"] or ""}
    if not isinstance(extra, dict):
        return error, ""
    timestamp = _milliseconds(extra.get("timestamp"))
    if timestamp is not None:
        error["timestamp"] = timestamp
    trace = extra.get("py_callstack")
    return error, trace if isinstance(trace, str) else ""


def _object(text: object) -> dict[str, Any]:
    """
    Return the object whose JSON *text* is, or an empty one.
    """
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        value = decode(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _digits(text: object) -> int | None:
    if isinstance(text, str) and text.isascii() and text.isdecimal():
        return int(text[:18])
    return None


def _milliseconds(seconds: object) -> int | None:
    try:
        milliseconds = round(float(seconds) * 1000)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return milliseconds if fits(milliseconds, int) else None


def _is_text(value: object, text: str) -> bool:
    # Not every value can be compared and give a bool.
    return isinstance(value, str) and value == text


def _trace_in(text: str) -> str:
    return text if text.startswith("Traceback (most recent call last)") else ""
