"""
The five levels, and the methods that are named after them.
"""

from __future__ import annotations

import logging
from typing import Any, Final


LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


def level_name(level: int) -> str:
    """
    Return the standard name of *level*, rounded down.
    """
    if level >= logging.ERROR:
        return "critical" if level >= logging.CRITICAL else "error"
    if level >= logging.WARNING:
        return "warning"
    return "info" if level >= logging.INFO else "debug"


def level_number(level: int | str) -> int:
    """
    Return the number of *level*, which may be a standard name in any case.

    Raises:
        ValueError: If there is no such level.
    """
    if isinstance(level, int):
        return level
    number = LEVELS.get(str(level).lower())
    if number is None:
        raise ValueError(
            f"unknown level {level!r}: expected a number or one of"
            f" {', '.join(LEVELS)}"
        )
    return number


class LevelMethods:
    """
    The methods of a logger, for whoever can `_log`.

    Each takes a message, ``%`` arguments for it, and fields. The fields
    ``exc_info`` and ``stack_info`` mean what they mean in `logging`. A message
    that is an event is recorded as such.
    """

    def _log(
        self,
        level: int,
        message: object,
        args: tuple[Any, ...],
        fields: dict[str, Any],
    ) -> None:
        raise NotImplementedError

    def debug(self, message: object, /, *args: Any, **fields: Any) -> None:
        """
        Log *message* at level debug.
        """
        self._log(logging.DEBUG, message, args, fields)

    def info(self, message: object, /, *args: Any, **fields: Any) -> None:
        """
        Log *message* at level info.
        """
        self._log(logging.INFO, message, args, fields)

    def warning(self, message: object, /, *args: Any, **fields: Any) -> None:
        """
        Log *message* at level warning.
        """
        self._log(logging.WARNING, message, args, fields)

    def error(self, message: object, /, *args: Any, **fields: Any) -> None:
        """
        Log *message* at level error.
        """
        self._log(logging.ERROR, message, args, fields)

    def critical(self, message: object, /, *args: Any, **fields: Any) -> None:
        """
        Log *message* at level critical.
        """
        self._log(logging.CRITICAL, message, args, fields)

    def exception(self, message: object, /, *args: Any, **fields: Any) -> None:
        """
        Log *message* at level error, with the exception being handled.
        """
        fields.setdefault("exc_info", True)
        self._log(logging.ERROR, message, args, fields)

    def log(
        self, level: int | str, message: object, /, *args: Any, **fields: Any
    ) -> None:
        """
        Log *message* at *level*, a number as in `logging` or a name.

        Raises:
            ValueError: If there is no such level.
        """
        self._log(level_number(level), message, args, fields)

    warn = warning
    fatal = critical
