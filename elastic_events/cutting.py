"""
What is over the size of a line: strings are cut in the middle.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple


class Measure(NamedTuple):
    """
    The longest string, in characters, and the most items, that are left.
    """

    longest: int
    most: int = sys.maxsize


_SHORTEST_STRING: Final = 64
# More than the owned keys, which stand first in a line.
_ROOT_KEYS: Final = 24

SHORT_STRINGS: Final = Measure(_SHORTEST_STRING)
SMALLEST: Final = Measure(_SHORTEST_STRING, 0)


def string_measures(limit: int) -> Iterator[Measure]:
    """
    Yield ever shorter strings, for a line of at most *limit* bytes.
    """
    longest = limit // 2
    while longest > _SHORTEST_STRING:
        yield Measure(longest)
        longest //= 2
    yield SHORT_STRINGS


def item_measures() -> Iterator[Measure]:
    """
    Yield ever fewer items, where the shortest strings are not enough.
    """
    for most in (1000, 100, 10, 1, 0):
        yield Measure(_SHORTEST_STRING, most)


def cut(value: Any, measure: Measure, *, is_root: bool = True) -> Any:
    """
    Return a copy of *value*, made of JSON's types, cut to *measure*.

    Args:
        value: A line, or what is in it.

        measure: What is left.

        is_root: Whether it is the line itself, which keeps its own keys.
    """
    if isinstance(value, str):
        return _shortened(value, measure.longest)
    kept = measure.most + _ROOT_KEYS if is_root else measure.most
    left_out = len(value) - kept if isinstance(value, (dict, list)) else 0
    if isinstance(value, dict):
        items = itertools.islice(value.items(), min(kept, sys.maxsize))
        short = {
            _shortened(key, measure.longest): cut(item, measure, is_root=False)
            for key, item in items
        }
        return (
            {**short, "...": f"<{left_out} more>"} if left_out > 0 else short
        )
    if isinstance(value, list):
        part = [cut(item, measure, is_root=False) for item in value[:kept]]
        return [*part, f"<{left_out} more>"] if left_out > 0 else part
    return value


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}<{len(text) - 2 * half} cut>{text[-half:]}"
