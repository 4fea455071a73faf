"""
What is over the size of a line: strings are cut in the middle.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .schema import KEYS


if TYPE_CHECKING:
    from typing_extensions import Self


class Measure(NamedTuple):
    """
    The longest string, in characters, and the most items, that are left.
    """

    longest: int
    most: int = sys.maxsize


SHORTEST_STRING: Final = 64

SHORT_STRINGS: Final = Measure(SHORTEST_STRING)
# The longest that may not be cut is a line's time.
SMALLEST: Final = Measure(32, 0)

REST: Final = "..."
"""The key under which a mapping says that it is not all there."""


class LeftOut(str):
    """
    What stands for the items of a mapping or list that were left out.

    Args:
        number: How many.
    """

    __slots__ = ("number",)

    number: int

    def __new__(cls, number: int) -> Self:
        """
        Return the text that says so, and knows the number.
        """
        text = super().__new__(cls, f"<{number} more>")
        text.number = number
        return text


def string_measures(limit: int) -> Iterator[Measure]:
    """
    Yield ever shorter strings, for a line of at most *limit* bytes.
    """
    longest = limit // 2
    while longest > SHORTEST_STRING:
        yield Measure(longest)
        longest //= 2
    yield SHORT_STRINGS


def item_measures() -> Iterator[Measure]:
    """
    Yield ever fewer items, where the shortest strings are not enough.
    """
    for most in (1000, 100, 10, 1, 0):
        yield Measure(SHORTEST_STRING, most)
    # Characters that are escaped take six bytes each.
    yield SMALLEST


def cut_line(line: dict[str, Any], measure: Measure) -> dict[str, Any]:
    """
    Return a copy of *line*, made of JSON's types, cut to *measure*.

    It keeps the keys that the package owns, and so does its ``worker``.
    """
    short = {key: cut(line[key], measure) for key in KEYS if key in line}
    if "worker" in line:
        short["worker"] = cut(line["worker"], Measure(measure.longest))
    bound = {key: line[key] for key in line if key not in KEYS}
    return {**short, **cut(bound, measure)}


def cut(value: Any, measure: Measure) -> Any:
    """
    Return a copy of *value*, made of JSON's types, cut to *measure*.
    """
    if isinstance(value, LeftOut):
        return value
    if isinstance(value, str):
        return cut_in_the_middle(value, measure.longest)
    most = measure.most
    if isinstance(value, dict):
        kept = {
            cut_in_the_middle(key, measure.longest): cut(item, measure)
            for key, item in itertools.islice(value.items(), most)
        }
        if len(value) > most:
            rest = itertools.islice(value.values(), most, None)
            kept[REST] = _left_out(rest)
        return kept
    if isinstance(value, list):
        part = [cut(item, measure) for item in value[:most]]
        if len(value) > most:
            part.append(_left_out(value[most:]))
        return part
    return value


def cut_in_the_middle(text: str, longest: int) -> str:
    """
    Return *text* with what is over *longest* characters left out.
    """
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}<{len(text) - 2 * half} cut>{text[-half:]}"


def _left_out(items: Iterable[Any]) -> LeftOut:
    return LeftOut(
        sum(each.number if isinstance(each, LeftOut) else 1 for each in items)
    )
