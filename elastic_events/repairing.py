"""
What JSON cannot hold, copied to what it can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
    Set as AbstractSet,
    ValuesView,
)
from enum import Enum
from itertools import islice
from typing import Any, Final, TypeAlias

from .cutting import REST, SHORTEST_STRING, LeftOut
from .values import INT_MAX, INT_MIN, key_text, plain, type_name, unprintable


_DEEPEST: Final = 100
_ALIKE: Final = 8

Ancestors: TypeAlias = "tuple[int, ...]"


class Repair:
    """
    Copy what JSON cannot hold to what it can.

    What is over its measures is left out, for nobody should wait for it.

    Args:
        longest: The most characters of a string.

        room: The most characters of all strings together.

        room_of_item: What each item of a mapping or list takes of it.

        opened:
            Returns what a value stands for that is JSON already, and any
            other as it is.
    """

    def __init__(
        self,
        longest: int,
        room: int,
        room_of_item: int,
        opened: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._longest = longest
        self._room = room
        self._room_of_item = room_of_item
        self._opened = opened

    def of_line(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return a copy of *line* that JSON can hold.

        Raises:
            Exception: Where the line itself, not what is in it, is at fault.
        """
        copy = self._mapping(list(line.items()), (id(line),))
        # What could not even be looked at must stay of its type.
        if type(copy.get("metadata", {})) is not dict:
            copy["metadata"] = {REST: copy["metadata"]}
        if type(copy.get("worker", {})) is not dict:
            del copy["worker"]
        return copy

    def of(self, value: Any, ancestors: Ancestors = ()) -> Any:
        """
        Return a copy of *value* that JSON can hold.
        """
        if issubclass(type(value), Enum):
            value = value._value_
        # Without a call, for the stack may be at its end: what every line has
        # must stay of its type.
        if value is None or type(value) is bool:
            return value
        if type(value) is int and INT_MIN <= value <= INT_MAX:
            return value
        if (
            type(value) is str
            and value.isascii()
            and len(value) <= self._longest
            and len(value) <= self._room
        ):
            self._room -= len(value)
            return value
        if id(value) in ancestors:
            return f"<cycle: {type_name(value)}>"
        if len(ancestors) >= _DEEPEST:
            return f"<too deep: {type_name(value)}>"
        try:
            value = self._opened(value)
            copy = plain(value, self._longest_now())
            taken = self._taken(copy)
        except BaseException as error:
            return unprintable(value, error)
        if taken is None:
            self._room -= len(copy) if isinstance(copy, str) else 0
            return copy
        items, left_out = taken
        below = (*ancestors, id(value))
        if isinstance(copy, Mapping):
            mapping = self._mapping(items, below)
            return {**mapping, REST: left_out} if left_out else mapping
        listed = [self.of(item, below) for item in items]
        return [*listed, left_out] if left_out else listed

    def _mapping(
        self, items: list[Any], ancestors: Ancestors
    ) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in items:
            name = _free_name(key_text(key), mapping)
            mapping[name] = self.of(value, ancestors)
        return mapping

    def _taken(self, value: Any) -> tuple[list[Any], LeftOut | None] | None:
        """
        Return the items of *value* there is room for, `None` for a scalar.
        """
        contents = _contents(value)
        if contents is None:
            return None
        items, length = contents
        most = max(0, self._room // self._room_of_item)
        # All at once: another thread may be changing them, and may come
        # between the making of an `islice` and its use. (What is not built in
        # may have more items than it says.)
        is_all = length <= most and isinstance(value, dict)
        taken = list(items if is_all else islice(items, most))
        if isinstance(value, Mapping):
            taken = [(key, item) for key, item in taken]
        self._room -= len(taken) * self._room_of_item
        left_out = length - len(taken)
        return taken, LeftOut(left_out) if left_out > 0 else None

    def _longest_now(self) -> int:
        return min(self._longest, max(SHORTEST_STRING, self._room))


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """
    Return *name*, or one like it, that is not *taken*.
    """
    for _ in range(_ALIKE):
        if name not in taken:
            return name
        name += "_"
    # Of very many that are alike each is found at once.
    while (numbered := f"{name}<{len(taken)}>") in taken:
        name += "_"
    return numbered


Contents: TypeAlias = "tuple[Iterable[Any], int] | None"


def _contents(value: Any) -> Contents:
    """
    Return what a container holds, and how much; `None` for a scalar.
    """
    # A subclass's own methods are not asked, as orjson does not ask them.
    if isinstance(value, str):
        return None
    if isinstance(value, dict):
        return dict.items(value), dict.__len__(value)
    kind: Any
    for kind in (list, tuple, set, frozenset, deque):
        if isinstance(value, kind):
            return kind.__iter__(value), kind.__len__(value)
    if isinstance(value, Mapping):
        return value.items(), len(value)
    if isinstance(value, (Sequence, AbstractSet, ValuesView)):
        return value, len(value)
    return None
