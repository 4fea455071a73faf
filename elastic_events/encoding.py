"""
One mapping to one line of JSON, and back.

This is the only room that makes JSON lines, and the only importer of orjson.
No value can stop a line: what orjson refuses, or takes without a word and
writes wrongly, is repaired on a copy.
"""

from __future__ import annotations

import json
import math
import sys
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
from sys import getrefcount
from typing import Any, Final, TypeAlias

import orjson
from orjson import Fragment, dumps
from structlog.typing import EventDict, Processor, WrappedLogger

from .cutting import (
    REST,
    SHORT_STRINGS,
    SHORTEST_STRING,
    SMALLEST,
    LeftOut,
    Measure,
    cut_line,
    item_measures,
    string_measures,
)
from .levels import LEVELS
from .schema import KEYS
from .values import INT_MAX, INT_MIN, key_text, plain, type_name, unprintable


_OPTIONS: Final = (
    orjson.OPT_APPEND_NEWLINE
    # A tzinfo that raises inside orjson ends the process.
    | orjson.OPT_PASSTHROUGH_DATETIME
    # Fields as `dataclasses.asdict` sees them, private ones included.
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
_DEEPEST: Final = 100
_ALIKE: Final = 8
_MOST_REPAIRED: Final = 1 << 20
_LONGEST_LEFT: Final = 10_000

# Each Fragment holds a reference to its type, but in old versions of orjson.
# As long as there are no more references than without any, no line can hold
# one, and none is looked for.
_fewest_references = getrefcount(Fragment)
_probe = Fragment(b"")
if getrefcount(Fragment) == _fewest_references:
    _fewest_references = -1
del _probe

Ancestors: TypeAlias = "tuple[int, ...]"


class UrgentLine(bytes):
    """
    A line that is to reach the disk at once, not only the kernel.
    """


def line_renderer(
    max_line: int = sys.maxsize,
    *,
    urgent_from: int | None = None,
    head: int = 0,
) -> Processor:
    r"""
    Return the step that makes the line: one JSON object in UTF-8 and a ``\n``.

    It never raises an `Exception`, whatever the values: what JSON lacks is
    written in a documented form or as text, what cannot be read is marked.

    Args:
        max_line:
            The most bytes of a line. One that would be longer is cut, and has
            the key ``truncated``.

        urgent_from:
            The level, as a number, from which lines are urgent. (default:
            none is)

        head:
            So many bytes at the beginning of each line are texts and
            integers, whatever was recorded.
    """

    def render_line(_: WrappedLogger, __: str, event_dict: EventDict) -> bytes:
        try:
            line = dumps(event_dict, None, _OPTIONS)
        except Exception:
            # A type that JSON lacks, or another thread that changes a value.
            return _encode_repaired(event_dict, max_line)
        if len(line) > max_line:
            return encode_within(_marked(event_dict), max_line)
        # What orjson wrote as something else than was meant: a float that is
        # not finite, as null, and a Fragment, as it stands, be it JSON or not.
        # (`rfind` takes half of the time of `in`.)
        if (
            line.rfind(b"null", head) >= 0
            or (
                getrefcount(Fragment) != _fewest_references
                and _are_fragments_about()
            )
        ) and _is_line_miswritten(event_dict):
            return _encode_repaired(event_dict, max_line)
        return line

    if urgent_from is None:
        return render_line
    return marking_urgent(render_line, urgent_from)


def marking_urgent(
    render: Callable[[WrappedLogger, str, EventDict], bytes], least: int
) -> Processor:
    """
    Return *render*, its lines of the level *least* and above marked.
    """

    def render_urgent_line(
        logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> bytes:
        line = render(logger, method_name, event_dict)
        is_urgent = LEVELS[event_dict["level"]] >= least
        return UrgentLine(line) if is_urgent else line

    return render_urgent_line


_render_any: Final = line_renderer()


def encode(line: Mapping[str, Any]) -> bytes:
    """
    Return *line* as `line_renderer` does, however long and whatever its keys.
    """
    encoded: bytes = _render_any(None, "", line)  # type: ignore[arg-type,assignment]
    return encoded


def _encode_repaired(line: EventDict, limit: int) -> bytes:
    try:
        # An item takes two bytes at least.
        repair = _Repair(longest=limit, room=limit + 2, room_of_item=2)
        encoded = dumps(repair.of_line(line), None, _OPTIONS)
    except Exception as error:
        encoded = dumps(_minimal(line, error), None, _OPTIONS)
    if len(encoded) > limit:
        return encode_within(_marked(line), limit)
    return encoded


def _marked(line: EventDict) -> EventDict:
    """
    Return *line* with the key that says that it was cut, in its place.
    """
    marked: dict[str, Any] = {}
    for key, value in line.items():
        marked[key] = value
        if key == "seq":
            marked["truncated"] = True
    return marked


def encode_within(line: Mapping[str, Any], limit: int) -> bytes:
    """
    Return *line* in at most *limit* bytes, like `encode` in all else.

    The longest strings are cut in the middle; where that is not enough, so
    are mappings and lists.
    """
    try:
        # More than is wanted, for what is too much is cut fairly.
        repair = _Repair(longest=limit, room=8 * limit, room_of_item=64)
        copy = repair.of_line(line)
        encoded = _encode_cut(copy, SHORT_STRINGS)
        is_strings = len(encoded) <= limit
        for measure in (
            string_measures(limit) if is_strings else item_measures()
        ):
            encoded = _encode_cut(copy, measure)
            if len(encoded) <= limit:
                break
    except Exception as error:
        encoded = _encode_cut(_minimal(line, error), SMALLEST)
    return encoded


def json_text(value: Any) -> str:
    """
    Return *value* as JSON in one line of text, without a line feed.
    """
    # Something may stand around it that is no mapping.
    return encode({"": value})[len('{"":') : -len("}\n")].decode()


def encode_moved(moved: Mapping[str, Any], line: EventDict) -> bytes:
    """
    Return *moved*, to which the values of *line* were moved as they are.

    Raises:
        Exception: If JSON lacks one of them.
    """
    encoded = dumps(moved, None, _OPTIONS)
    if (
        encoded.rfind(b"null") >= 0
        or (
            getrefcount(Fragment) != _fewest_references
            and _are_fragments_about()
        )
    ) and _is_line_miswritten(line):
        raise ValueError(line)
    return encoded


def repaired(line: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return *line* as it will be read back: made of JSON's types only.

    Of what is larger than any line should be, a part is left out.

    Raises:
        Exception: Where the line itself, not what is in it, is at fault.
    """
    repair = _Repair(_MOST_REPAIRED, _MOST_REPAIRED, room_of_item=2)
    return repair.of_line(line)


def _encode_cut(copy: Any, measure: Measure) -> bytes:
    return dumps(cut_line(copy, measure), None, _OPTIONS)


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


def _are_fragments_about() -> bool:
    global _fewest_references  # noqa: PLW0603
    references = getrefcount(Fragment)
    if references > _fewest_references:
        return True
    # Some that there were when this was imported are gone.
    _fewest_references = references
    return False


def _is_line_miswritten(line: EventDict) -> bool:
    """
    Tell whether orjson wrote something of *line* as something else.
    """
    try:
        # At the end stand metadata and what was bound, which may be anything.
        # What the package owns before them is of the right type.
        for key in reversed(line):  # type: ignore[arg-type,var-annotated]
            if key in KEYS:
                return key == "metadata" and _is_miswritten(line[key])
            if _is_miswritten(line[key]):
                return True
    except RuntimeError:
        # Another thread is changing it: a copy is looked at.
        return True
    return False


def _is_miswritten(value: Any) -> bool:
    if type(value) is dict:
        # Most by far are of these types.
        for item in value.values():
            kind = type(item)
            if (
                kind is not str
                and kind is not int
                and item is not None
                and _is_miswritten(item)
            ):
                return True
        return False
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str):
        return False
    items: Iterable[Any]
    if isinstance(value, dict):
        items = dict.values(value)
    elif isinstance(value, list):
        items = list.__iter__(value)
    elif isinstance(value, tuple):
        items = tuple.__iter__(value)
    elif isinstance(value, Enum):
        items = (value.value,)
    else:
        return isinstance(value, Fragment)
    for item in items:
        if type(item) not in _ALWAYS_RIGHT and _is_miswritten(item):
            return True
    return False


_ALWAYS_RIGHT: Final = frozenset((str, int, bool, type(None)))


def _minimal(line: Mapping[str, Any], error: Exception) -> dict[str, Any]:
    """
    Return what is left of *line* when it cannot even be repaired.
    """
    kept = {
        key_text(key): plain(value, _LONGEST_LEFT)
        for key, value in line.items()
        # What its class says of itself may be a lie, or an error.
        if issubclass(type(value), (str, int))
    }
    if "metadata" in line:
        kept["metadata"] = {}
    return {**kept, "encoding_error": type_name(error)}


class _Repair:
    """
    Copy what JSON cannot hold to what it can.

    What is over its measures is left out, for nobody should wait for it.

    Args:
        longest: The most characters of a string.

        room: The most characters of all strings together.

        room_of_item: What each item of a mapping or list takes of it.
    """

    def __init__(self, longest: int, room: int, room_of_item: int) -> None:
        self._longest = longest
        self._room = room
        self._room_of_item = room_of_item

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
            if isinstance(value, Fragment):
                value = decode(dumps(value))
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
