"""
A worker's last words: the event of the exception that ends it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, TypeVar

from . import process
from .api import Event, EventMetadataValue, EventSource
from .destinations import resolve
from .encoding import json_text
from .messages import error_trace
from .recording import record
from .torchelastic import FAILED_EVENT
from .values import error_text


_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK: Final = "_elastic_events_recorded"


class record_failures:  # noqa: N801
    """
    Record the exception that leaves a block or a function, and let it go on.

    ::

        @record_failures()
        def main(): ...


        with record_failures():
            main()

    One event of the name that torch gives to a failed worker is recorded,
    with type, message, traceback, rank and restart. `SystemExit` counts
    unless its code is zero or none, `KeyboardInterrupt` counts. An exception
    that passes several of these is recorded once. Coroutine and generator
    functions can be decorated too.

    Args:
        destination: The name or URI of a destination.

    Raises:
        UnknownDestination: If there is none. Raised at once.
    """

    def __init__(self, destination: str = "null") -> None:
        if callable(destination):
            raise TypeError(
                "record_failures was given a function: write"
                " @record_failures() with parentheses"
            )
        self._destination = destination
        # A wrong name must not come up while another exception is on its way.
        resolve(destination)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and _is_failure(error):
            record(_event_of(error), self._destination)

    def __call__(self, function: _Function) -> _Function:
        """
        Return *function*, watched.
        """
        if inspect.isasyncgenfunction(function):
            raise TypeError(
                "record_failures cannot watch an async generator function:"
                " use it as a context manager inside"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def watched(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def watched(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return (yield from function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def watched(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return watched  # type: ignore[return-value]


def _is_failure(error: BaseException) -> bool:
    if isinstance(error, GeneratorExit):
        return False
    if isinstance(error, SystemExit):
        # Anything else may be a code, and not all of it can be compared.
        is_fine = error.code is None or type(error.code) in (int, bool)
        if is_fine and not error.code:
            return False
    # One that cannot be marked may be recorded twice; nothing that it does
    # may take its own place.
    with contextlib.suppress(Exception):
        marks = vars(error)
        if _MARK in marks:
            return False
        marks[_MARK] = True
    return True


def _event_of(error: BaseException) -> Event:
    """
    Return the event that torch's agent would make of an error file.
    """
    who = process.current()
    now = time.time_ns() // 1_000_000
    said = {
        "message": error_text(error),
        "extraInfo": {
            "py_callstack": error_trace(error),
            "timestamp": f"{now // 1000}.{now % 1000:03}",
        },
    }
    metadata: dict[str, EventMetadataValue] = {
        "run_id": who.job.get("run_id"),
        "global_rank": who.job.get("rank"),
        "worker_id": str(who.pid),
        "hostname": who.hostname,
        "state": "FAILED",
        "raw_error": json_text({"message": said}),
        "metadata": json_text(
            {
                "local_rank": [who.job.get("local_rank")],
                "worker_pid": [who.pid],
            }
        ),
        "agent_restarts": who.job.get("restart"),
    }
    return Event(FAILED_EVENT, EventSource.WORKER, now, metadata)
