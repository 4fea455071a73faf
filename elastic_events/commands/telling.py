"""
What a command says beside its output: on standard error, escaped.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

from ..reading.escaping import escaped


PROGRAM: Final = "elastic-events"


def tell(text: str) -> None:
    """
    Print *text* on standard error, in one line.
    """
    if sys.stderr is not None:
        # Who cannot be told still gets the exit status.
        with suppress(OSError):
            sys.stderr.write(f"{escaped(text)}\n")


def complain(text: str) -> None:
    """
    Print *text* on standard error, as said by the program.
    """
    tell(f"{PROGRAM}: {text}")
