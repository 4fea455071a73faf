"""
From what a record says to the cells of a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ..schema import KEYS


WHOLE: Final = (*KEYS, "context")
"""The columns of all that a record says: see `whole`."""

_MOST_PARTS: Final = 50
_as_json: Final = json.JSONEncoder(ensure_ascii=False).encode


def cells(said: dict[str, Any], fields: Iterable[str]) -> list[str]:
    """
    Return the values of *fields* as text, empty where there is none.

    They are left as they are. What begins with ``=`` is a formula to a
    spreadsheet: who opens records of strangers in one imports them as text.
    """
    return [as_text(value_at(said, field)) for field in fields]


def whole(said: dict[str, Any]) -> list[str]:
    """
    Return the cells of all that is *said*, as `WHOLE` names them.

    The last one has what the package does not own, as one object.
    """
    others = {key: said[key] for key in said if key not in KEYS}
    return [*cells(said, KEYS), as_text(others or None)]


def value_at(value: Any, path: str) -> Any:
    """
    Return what the dotted *path* leads to in *value*, `None` if nowhere.

    A key may hold dots itself: the longest that there is wins. A number is
    a place in a list.
    """
    if isinstance(value, dict) and (path in value or "." not in path):
        # As nearly all paths are.
        return value.get(path)
    parts = path.split(".", _MOST_PARTS)
    while parts:
        if isinstance(value, list):
            value = _item(value, parts.pop(0))
            continue
        if not isinstance(value, dict):
            return None
        for end in range(len(parts), 0, -1):
            key = ".".join(parts[:end])
            if key in value:
                value, parts = value[key], parts[end:]
                break
        else:
            return None
    return value


def as_text(value: Any) -> str:
    """
    Return a text as it is, nothing for null, and JSON for all else.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        if type(value) is int:
            return str(value)
        return _as_json(value)
    except (ValueError, RecursionError):
        # Python makes no text of an integer of thousands of digits.
        return "…"


def _item(values: list[Any], index: str) -> Any:
    is_number = index.isascii() and index.isdecimal() and len(index) < 10
    if is_number and int(index) < len(values):
        return values[int(index)]
    return None
