"""
Who is recording: the host, the process, and its place in an elastic job.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .api import EventSource
from .schema import JOB_KEYS, fits


_ENVIRONMENT: Final = {
    "run_id": "TORCHELASTIC_RUN_ID",
    "rank": "RANK",
    "local_rank": "LOCAL_RANK",
    "restart": "TORCHELASTIC_RESTART_COUNT",
}
"""Where torchrun tells a worker its place in the job."""


class Process(NamedTuple):
    """
    The recording process, as every line of it states it.
    """

    hostname: str
    pid: int
    source: EventSource
    job: Mapping[str, Any]


here: Process | None = None
"""
This process, if it was looked up already. Where a call takes too long:
``process.here or process.current()``.
"""


def current() -> Process:
    """
    Return the process that this is: looked up once, and again after a fork.
    """
    global here  # noqa: PLW0603
    here = here or _looked_up()
    return here


def is_worker() -> bool:
    """
    Tell whether torchrun started this process as a worker.
    """
    return "RANK" in os.environ and "TORCHELASTIC_RUN_ID" in os.environ


def _looked_up() -> Process:
    return Process(
        # Not the fully qualified name: that may ask DNS, and wait.
        hostname=socket.gethostname(),
        pid=os.getpid(),
        source=EventSource.WORKER if is_worker() else EventSource.AGENT,
        job=_job(),
    )


def _job() -> dict[str, Any]:
    job = {}
    for key, variable in _ENVIRONMENT.items():
        try:
            value = JOB_KEYS[key](os.environ[variable])
        except (KeyError, ValueError):
            continue
        if fits(value, JOB_KEYS[key]):
            job[key] = value
    return job


def forget() -> None:
    """
    Have the next `current` look everything up again.
    """
    global here  # noqa: PLW0603
    here = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
