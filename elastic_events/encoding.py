"""
One mapping to one line of JSON, and back.

This is the only room that makes JSON lines, and the only importer of orjson.
No value can stop a line: what orjson refuses, or takes without a word and
writes wrongly, is repaired on a copy.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Set as AbstractSet
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

import orjson

from .cutting import (
    SHORT_STRINGS,
    SMALLEST,
    Measure,
    cut,
    item_measures,
    string_measures,
)


_OPTIONS = (
    orjson.OPT_APPEND_NEWLINE
    # A tzinfo that raises inside orjson ends the process.
    | orjson.OPT_PASSTHROUGH_DATETIME
    # Fields as `dataclasses.asdict` sees them, private ones included.
    | orjson.OPT_PASSTHROUGH_DATACLASS
)

_DEEPEST = 100
_LONGEST_DESCRIPTION = 10_000
_MOST_ELEMENTS = 10_000
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1

Ancestors: TypeAlias = "tuple[int, ...]"


class UrgentLine(bytes):
    """
    A line that is to reach the disk at once, not only the kernel.
    """


def encode(line: Mapping[str, Any]) -> bytes:
    r"""
    Return *line* as one JSON object in UTF-8 that ends in one ``\n``.

    Never raises an `Exception`, whatever the values: what JSON lacks is
    written in a documented form or as text, what cannot be read is marked.
    """
    try:
        encoded = orjson.dumps(line, option=_OPTIONS)
        if _is_faithful(encoded, line):
            return encoded
    except Exception:  # noqa: S110
        # A type that JSON lacks, or another thread that changes a value.
        pass
    try:
        return orjson.dumps(_repaired(line), option=_OPTIONS)
    except Exception as error:
        return orjson.dumps(_minimal(line, error), option=_OPTIONS)


def encode_within(line: Mapping[str, Any], limit: int) -> bytes:
    """
    Return *line* in at most *limit* bytes, like `encode` in all else.

    The longest strings are cut in the middle; where that is not enough, so
    are mappings and lists.
    """
    try:
        plain = _repaired(line)
        encoded = _encode_cut(plain, SHORT_STRINGS)
        is_strings = len(encoded) <= limit
        for measure in (
            string_measures(limit) if is_strings else item_measures()
        ):
            encoded = _encode_cut(plain, measure)
            if len(encoded) <= limit:
                break
    except Exception as error:
        encoded = _encode_cut(_minimal(line, error), SMALLEST)
    return encoded


def _encode_cut(plain: Any, measure: Measure) -> bytes:
    return orjson.dumps(cut(plain, measure), option=_OPTIONS)


def decode(data: bytes | str) -> Any:
    """
    Return the value that the JSON text *data* stands for.

    What `json` writes and orjson refuses (``NaN``, lone surrogates) is read
    too.

    Raises:
        ValueError: If *data* is not JSON.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def text_of(value: object) -> str:
    """
    Return *value* as text, also where its own ``__str__`` raises.
    """
    if isinstance(value, str):
        return value
    try:
        return _described(str(value))
    except BaseException as error:
        return _unprintable(value, error)


def _is_faithful(encoded: bytes, line: Mapping[str, Any]) -> bool:
    """
    Tell whether orjson wrote what was meant.

    It writes a float that is not finite as ``null``, and a `Fragment` as it
    stands, line breaks included.
    """
    if encoded.find(b"\n") != len(encoded) - 1:
        return False
    # `find` takes two thirds of the time of `in`.
    return encoded.find(b"null") < 0 or not _has_odd_float(line)


def _has_odd_float(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Enum):
        return _has_odd_float(value.value)
    if isinstance(value, dict):
        return any(map(_has_odd_float, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_odd_float, value))
    return False


def _minimal(line: Mapping[str, Any], error: Exception) -> dict[str, Any]:
    """
    Return what is left of *line* when it cannot even be repaired.
    """
    kept = {
        _key(key): _plain(value)
        for key, value in line.items()
        if isinstance(value, (str, int))
    }
    if "metadata" in line:
        kept["metadata"] = {}
    return {**kept, "encoding_error": type(error).__name__}


def _repaired(value: Any, ancestors: Ancestors = ()) -> Any:
    """
    Return a copy of *value* that JSON can hold.
    """
    if id(value) in ancestors:
        return f"<cycle: {type(value).__name__}>"
    if len(ancestors) >= _DEEPEST:
        return f"<too deep: {type(value).__name__}>"
    try:
        plain = _plain(value)
        # Another thread may be adding keys: take them all at once.
        items = list(plain.items()) if isinstance(plain, Mapping) else None
    except BaseException as error:
        return _unprintable(value, error)
    below = (*ancestors, id(value))
    if items is not None:
        return _repaired_items(items, below)
    if isinstance(plain, list):
        return [_repaired(item, below) for item in plain]
    return plain


def _repaired_items(
    items: Iterable[tuple[Any, Any]], ancestors: Ancestors
) -> dict[str, Any]:
    repaired: dict[str, Any] = {}
    for key, value in items:
        name = _key(key)
        while name in repaired:
            name += "_"
        repaired[name] = _repaired(value, ancestors)
    return repaired


def _key(key: Any) -> str:
    """
    Return *key* as `json.dumps` names it, and any other key as text.
    """
    if isinstance(key, str):
        return _text(str.__str__(key))
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    try:
        return str(_plain(key))
    except BaseException as error:
        return _unprintable(key, error)


def _plain(value: Any) -> Any:
    """
    Return *value* as a JSON scalar, a list or a mapping, items untouched.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return _real(float(value))
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple, AbstractSet)):
        return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return _object(value)


def _object(value: Any) -> Any:
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, BaseException):
        return _described(f"{type(value).__name__}: {value}")
    if isinstance(value, orjson.Fragment):
        return decode(orjson.dumps(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: getattr(value, field.name) for field in fields}
    if isinstance(getattr(value, "shape", None), tuple) and hasattr(
        value, "tolist"
    ):
        return _array(value)
    if isinstance(value, deque):
        return list(value)
    return _described(str(value))


def _array(value: Any) -> Any:
    """
    Return a scalar of numpy or torch as a number, an array as a list.

    They are known by their shape; neither library is imported.
    """
    if math.prod(value.shape) > _MOST_ELEMENTS:
        return f"<{type(value).__name__} of shape {tuple(value.shape)}>"
    plain = value.tolist() if value.shape else value.item()
    return str(value) if type(plain) is type(value) else _plain(plain)


def _integer(value: int) -> int | str:
    if _INT_MIN <= value <= _INT_MAX:
        return value
    # `str` refuses more than 4 300 digits; Decimal does not.
    return format(Decimal(value), "f")


def _real(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _text(value: str) -> str:
    r"""
    Return *value* with lone surrogates spelled out, as in ``\udc80``.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        value = value.encode("utf-8", "backslashreplace").decode()
    return value


def _described(text: str) -> str:
    """
    Return an object's own description, cut where it is out of proportion.
    """
    if len(text) > _LONGEST_DESCRIPTION:
        text = text[:_LONGEST_DESCRIPTION] + "..."
    return _text(text)


def _unprintable(value: Any, error: BaseException) -> str:
    """
    Return what stands for *value*, of which *error* kept us from more.

    Raises:
        KeyboardInterrupt, SystemExit: If that is the error.
    """
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    return f"<unprintable {type(value).__name__}: {type(error).__name__}>"
