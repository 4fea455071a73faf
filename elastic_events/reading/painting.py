"""
What gives a text its colours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias


Paint: TypeAlias = Callable[[str, str], str]
"""Text and the name of its style to what the terminal is given."""


def plain(text: str, _: str) -> str:
    """
    Return *text* without a colour.
    """
    return text
