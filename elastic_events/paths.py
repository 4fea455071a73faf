"""
The path of a file destination: placeholders, and what fills them.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from . import process
from .api import EventSource


_PLACEHOLDER: Final = re.compile(r"\{(.*?)\}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]|^\.")
_LONGEST_VALUE: Final = 128
_PLACEHOLDERS: Final = (
    "hostname",
    "pid",
    "rank",
    "local_rank",
    "run_id",
    "restart",
)


class FilePath(NamedTuple):
    """
    A path that may be another in each process.

    Args:
        folder: Where a relative path begins.

        template: The path as given, its placeholders as they stand.
    """

    folder: str
    template: str

    def here(self) -> str:
        """
        Return the path in this process.
        """
        values = _values()
        path = _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)
        # Not made simpler: `..` behind a symbolic link is not where it seems.
        return os.path.join(self.folder, path)


def parse_path(text: str) -> FilePath:
    """
    Return the path that *text*, as in a ``file:`` destination, stands for.

    Raises:
        ValueError: If it is none.
    """
    path = text.replace("%3F", "?").replace("%3f", "?")
    if not path or path.endswith("/") or path[0] == "~" or "\0" in path:
        raise ValueError(
            "expected file:PATH with the path of a file, its folders written"
            " out"
        )
    for name in _PLACEHOLDER.findall(path):
        if name not in _PLACEHOLDERS:
            raise ValueError(
                f"{{{name}}} is no placeholder, expected one of"
                f" {', '.join(f'{{{each}}}' for each in _PLACEHOLDERS)}"
            )
    # The working directory may change; the file does not.
    folder = "" if os.path.isabs(path) else _working_directory()
    return FilePath(folder, path)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise ValueError(f"there is no working directory: {error}") from error


def _values() -> dict[str, str]:
    """
    Return what each placeholder stands for in this process.
    """
    who = process.current()
    no_rank = "agent" if who.source is EventSource.AGENT else "none"
    known = {
        "run_id": "none",
        "restart": "none",
        "rank": no_rank,
        "local_rank": no_rank,
        "hostname": who.hostname,
        "pid": who.pid,
        **who.job,
    }
    return {
        name: _UNSAFE.sub("_", str(known[name]))[:_LONGEST_VALUE]
        for name in _PLACEHOLDERS
    }
