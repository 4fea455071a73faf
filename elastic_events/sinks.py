"""
Where finished bytes go.

A sink takes whole lines and never looks inside. What it cannot write it
raises; the outlet counts it. No sink waits for a lock or keeps a buffer, so
that nothing can deadlock in a forked process or a signal handler, and a line
that was written survives the death of the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol


class Sink(Protocol):
    """
    What a destination needs of a sink.
    """

    def write(self, line: bytes, /) -> None:
        """
        Write one whole *line*, or raise.
        """

    def after_fork(self) -> None:
        """
        Be a new process's.
        """


class CallableSink:
    """
    Hand each line to a function.

    Args:
        function: Takes one whole line, its line feed included.
    """

    def __init__(self, function: Callable[[bytes], object]) -> None:
        self._function = function

    def write(self, line: bytes, /) -> None:
        """
        Call the function with *line*; raise what it raises.
        """
        self._function(line)

    def after_fork(self) -> None:
        """
        Do nothing: the function is the caller's.
        """


class HandlerSink:
    """
    Hand each line to a `logging.Handler`, as the message of a record.
    """

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler

    def write(self, line: bytes, /) -> None:
        """
        Have the handler handle *line*, without its line feed.
        """
        self._handler.handle(
            logging.makeLogRecord(
                {
                    "name": "elastic_events",
                    "levelno": logging.INFO,
                    "levelname": "INFO",
                    "msg": line[:-1].decode(),
                }
            )
        )

    def after_fork(self) -> None:
        """
        Do nothing: `logging` looks after its handlers.
        """
