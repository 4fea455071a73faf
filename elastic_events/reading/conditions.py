"""
Conditions on any key of a record: ``KEY OP VALUE``.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from ..encoding import decode
from ..schema import KEYS
from .filters import Filter, needles, regular_expression


OPERATOR: Final = re.compile("==|!=|<=|>=|!~|=|<|>|~")
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST: Final = 50
_EXAMPLES: Final = "worker.exit_code=-9, metadata.loss > 0.5, message ~ disk"
# Their value stands so in torch's own lines, too.
_SAID_AS_IT_IS: Final = ("run_id", "name")

# Whether a value that was found meets the condition.
Check: TypeAlias = Callable[[Any], bool]


class Wanted(NamedTuple):
    """
    The value of a condition: the text that was given, and what JSON it is.
    """

    text: str
    typed: Any
    is_quoted: bool


def where(condition: str) -> Filter:
    """
    Keep the records that meet *condition*: ``KEY OP VALUE``.

    Dots in KEY lead into objects, a number into a list, and both into JSON
    inside a string. A list of one stands for what is in it.

    OP is one of ``= == != < <= > >= ~ !~``, the last two for a regular
    expression that is found in the value, or is not. Numbers are compared
    exactly, texts by their characters; values of different types are neither
    less nor greater.

    VALUE ``5`` is the number and the text, ``"5"`` only the text, and
    likewise true, false and null. A key that a record lacks, or that
    holds an object or a list, meets nothing, not even ``!=``.

    Raises:
        ValueError: If *condition* is not written so.
    """
    found = OPERATOR.search(condition)
    key = condition[: found.start()].strip() if found else ""
    if found is None or not key:
        raise ValueError(
            f"unknown condition {condition!r}: expected KEY OP VALUE with one"
            f" of = != < <= > >= ~ !~ as OP, e.g. {_EXAMPLES}"
        )
    sign, value = found[0], condition[found.end() :].strip()
    parts = key.split(".")
    if len(parts) > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} parts in the key {key!r}")
    is_negated = sign in {"!=", "!~"}
    check = _check(sign.lstrip("!"), value)

    def test(said: dict[str, Any]) -> bool:
        found = list(_found(said, parts))
        return found != [] and any(map(check, found)) is not is_negated

    return Filter((test,), _needles(key, sign, value))


def _check(sign: str, value: str) -> Check:
    if sign == "~":
        search = regular_expression(_unquoted(value)).search

        def is_found(given: Any) -> bool:
            text = _spelled(given)
            return text is not None and search(text) is not None

        return is_found
    wanted = _wanted(value)
    if sign in {"=", "=="}:
        return lambda given: _is_equal(given, wanted)
    compare = _ORDERS[sign]
    kind = _order_of(wanted.typed)
    if kind is None:
        raise ValueError(f"{sign} needs a number or a text, got {wanted.text}")
    return lambda given: (
        _order_of(given) is kind and compare(given, wanted.typed)
    )


def _wanted(value: str) -> Wanted:
    """
    Return what *value* stands for; what is no JSON scalar is a text.
    """
    is_quoted = value.startswith('"')
    try:
        typed = json.loads(value)
    except (ValueError, RecursionError) as error:
        if is_quoted:
            raise ValueError(
                f"no JSON text {value}: expected one, e.g."
                f' "a \\"quoted\\" word"'
            ) from error
        typed = value
    if isinstance(typed, (dict, list)):
        typed = value
    if isinstance(typed, float) and not math.isfinite(typed):
        # 1e400 is a number; lines have NaN and the like as texts.
        typed = typed if value[-1].isdigit() else value
    return Wanted(typed if is_quoted else value, typed, is_quoted)


def _is_equal(given: Any, wanted: Wanted) -> bool:
    if isinstance(given, str):
        return given == wanted.text
    if wanted.is_quoted:
        return False
    if _is_number(given) and _is_number(wanted.typed):
        return bool(given == wanted.typed)
    if isinstance(given, float) and not math.isfinite(given):
        return json.dumps(given) == wanted.text
    # The only ones left are the constants.
    return given is wanted.typed


def _found(value: Any, parts: list[str], start: int = 0) -> Iterator[Any]:
    """
    Yield what *parts*, from *start* on, lead to in *value*.

    A key may hold dots itself: the longest that there is comes first.
    """
    is_end = start == len(parts)
    while isinstance(value, list) and len(value) == 1:
        if not is_end and _is_index(parts[start]):
            break
        value = value[0]
    if is_end:
        if not isinstance(value, (dict, list)):
            yield value
        return
    if isinstance(value, str):
        value = _unfolded(value)
    if isinstance(value, dict):
        for end in range(len(parts), start, -1):
            key = ".".join(parts[start:end])
            if key in value:
                yield from _found(value[key], parts, end)
    elif isinstance(value, list) and _is_index(parts[start]):
        for item in value[int(parts[start]) :][:1]:
            yield from _found(item, parts, start + 1)


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 10


def _unfolded(text: str) -> Any:
    """
    Return the object or list whose JSON *text* is, if it is one.
    """
    if text[:1] not in {"{", "["}:
        return None
    try:
        return decode(text)
    except ValueError:
        return None


def _needles(key: str, sign: str, value: str) -> tuple[bytes, ...]:
    """
    Return what the line of a record that meets the condition has in it.
    """
    # Keys below another may be in JSON inside a string, quotes escaped, and
    # of torch's own lines some of ours are made.
    is_sure = "." not in key and (key in _SAID_AS_IT_IS or key not in KEYS)
    if not is_sure or sign not in {"=", "=="}:
        return ()
    wanted = _wanted(value)
    return needles(wanted.text) if isinstance(wanted.typed, str) else ()


def _order_of(value: Any) -> type | None:
    if isinstance(value, str):
        return str
    return float if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _spelled(value: Any) -> str | None:
    """
    Return a value as a line spells it, a text without its quotes.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except ValueError:
        # An integer of more digits than Python makes text of.
        return None


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1] if is_quoted else value
