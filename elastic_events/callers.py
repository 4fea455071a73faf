"""
Whose code called the package.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from types import FrameType


def calling_module() -> str:
    """
    Return the name of the module that asked for a logger.
    """
    frame = _calling_frame("elastic_events", "structlog")
    return str(frame.f_globals.get("__name__", "")) if frame else ""


def stack_text() -> str:
    """
    Return the stack of the call that is being logged.
    """
    lines = traceback.format_stack(_calling_frame("elastic_events"))
    return "Stack (most recent call last):\n" + "".join(lines).rstrip("\n")


def _calling_frame(*packages: str) -> FrameType | None:
    """
    Return the innermost frame that is in none of *packages*.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in packages:
            break
        frame = frame.f_back
    return frame
