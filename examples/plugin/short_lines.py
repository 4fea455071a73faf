"""
A format and a destination, named in pyproject.toml.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def short(line: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return a line with three keys, for ``?format=short``.
    """
    return {
        "at": line["time"],
        "level": line["level"],
        "text": line["message"],
    }


def printed(line: bytes) -> None:
    """
    Print a finished line, for the destination ``printed``.
    """
    sys.stdout.write(line.decode())
