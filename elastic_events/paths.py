"""
A ``file:`` URI to the path and options that it stands for.
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
_OPTIONS: Final = {
    "mode": re.compile(r"[0-7]{3,4}"),
    "check": re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?"),
}


class FileURI(NamedTuple):
    """
    What a ``file:`` URI says.

    Args:
        folder: Where a relative path begins.

        template: The path as given, its placeholders as they stand.

        options: What stands after the ``?``.

        mode: The permissions of a new file.

        check: The seconds between two looks at the file.
    """

    folder: str
    template: str
    options: dict[str, str]
    mode: int
    check: float

    def path(self) -> str:
        """
        Return the path in this process.
        """
        values = _values()
        path = _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)
        return os.path.normpath(os.path.join(self.folder, path))


def parse_file_uri(uri: str) -> FileURI:
    """
    Return what *uri*, ``file:PATH[?OPTIONS]``, says.

    Raises:
        ValueError: If it is malformed.
    """
    path, mark, query = uri.removeprefix("file:").partition("?")
    path = path.replace("%3F", "?").replace("%3f", "?")
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
    options = _options(query) if mark else {}
    return FileURI(
        # The working directory may change; the file does not.
        folder="" if os.path.isabs(path) else _working_directory(),
        template=path,
        options=options,
        mode=int(options.get("mode", "666"), 8),
        check=float(options.get("check", "1")),
    )


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise ValueError(f"there is no working directory: {error}") from error


def _options(query: str) -> dict[str, str]:
    options = {}
    for item in query.split("&"):
        key, _, value = item.partition("=")
        form = _OPTIONS.get(key)
        if form is None or not form.fullmatch(value):
            raise ValueError(
                f"{item!r} is no option of a file, expected mode=OCTAL, such"
                " as 640, or check=SECONDS, such as 0.5"
            )
        options[key] = value
    return options


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
