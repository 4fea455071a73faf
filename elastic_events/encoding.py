"""
One mapping to one line of JSON, and back.

This is the only room that makes JSON lines, and the only importer of orjson.
No value can stop a line: what orjson refuses, or takes without a word and
writes wrongly, is repaired on a copy.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from sys import getrefcount
from typing import Any, Final

from structlog.typing import EventDict, Processor, WrappedLogger

from .cutting import (
    SHORT_STRINGS,
    SMALLEST,
    Measure,
    cut_line,
    item_measures,
    string_measures,
)
from .levels import LEVELS
from .repairing import Repair
from .schema import KEYS
from .values import key_text, plain, type_name


# Asked before the import: see below.
_may_be_old_fragments: Final = "orjson" in sys.modules

import orjson  # noqa: E402
from orjson import Fragment, dumps, loads  # noqa: E402


_OPTIONS: Final = (
    orjson.OPT_APPEND_NEWLINE
    # A tzinfo that raises inside orjson ends the process.
    | orjson.OPT_PASSTHROUGH_DATETIME
    # Fields as `dataclasses.asdict` sees them, private ones included.
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
_LINE_FEED: Final = ord("\n")
_MOST_REPAIRED: Final = 1 << 20
_LONGEST_LEFT: Final = 10_000

# Each Fragment holds a reference to its type, but in old versions of orjson.
# As long as there are no more references than without any, no line can hold
# one, and none is looked for. Those of before this import count as none: they
# are told by a line feed in them, which JSON's texts cannot hold.
_fewest_references = getrefcount(Fragment)
_probe = Fragment(b"")
if getrefcount(Fragment) == _fewest_references:
    _fewest_references = -1
del _probe


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
            or (_may_be_old_fragments and _LINE_FEED in line[:-1])
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


def encode(line: Mapping[str, Any]) -> bytes:
    """
    Return *line* as `line_renderer` does, however long and whatever its keys.
    """
    try:
        encoded = dumps(line, None, _OPTIONS)
        is_right = not (_may_be_miswritten(encoded) and _is_miswritten(line))
    except Exception:
        # As in `line_renderer`.
        is_right = False
    return encoded if is_right else _encode_repaired(line, sys.maxsize)


def _encode_repaired(line: Mapping[str, Any], limit: int) -> bytes:
    try:
        # An item takes two bytes at least.
        repair = _repair(longest=limit, room=limit + 2, room_of_item=2)
        encoded = dumps(repair.of_line(line), None, _OPTIONS)
    except Exception as error:
        encoded = dumps(_minimal(line, error), None, _OPTIONS)
    if len(encoded) > limit:
        return encode_within(_marked(line), limit)
    return encoded


def _marked(line: Mapping[str, Any]) -> dict[str, Any]:
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
        repair = _repair(longest=limit, room=8 * limit, room_of_item=64)
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
    if _may_be_miswritten(encoded) and _is_line_miswritten(line):
        raise ValueError(line)
    return encoded


def repaired(line: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return *line* as it will be read back: made of JSON's types only.

    Of what is larger than any line should be, a part is left out.

    Raises:
        Exception: Where the line itself, not what is in it, is at fault.
    """
    repair = _repair(_MOST_REPAIRED, _MOST_REPAIRED, room_of_item=2)
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
        return loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _may_be_miswritten(encoded: bytes) -> bool:
    """
    Tell whether it is worth while to look: what `line_renderer` does at once.
    """
    return (
        encoded.rfind(b"null") >= 0
        or _are_fragments_about()
        or (_may_be_old_fragments and _LINE_FEED in encoded[:-1])
    )


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


def _is_any_miswritten(values: Iterable[Any]) -> bool:
    for value in values:
        # Most by far are of these types.
        kind = type(value)
        if (
            kind is not str
            and kind is not int
            and value is not None
            and _is_miswritten(value)
        ):
            return True
    return False


def _is_miswritten(value: Any) -> bool:
    # A subclass's own methods are not asked, as orjson does not ask them.
    if isinstance(value, dict):
        return _is_any_miswritten(dict.values(value))
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str):
        return False
    if isinstance(value, list):
        return _is_any_miswritten(list.__iter__(value))
    if isinstance(value, tuple):
        return _is_any_miswritten(tuple.__iter__(value))
    if isinstance(value, Enum):
        return _is_miswritten(value.value)
    return isinstance(value, Fragment)


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


def _opened(value: Any) -> Any:
    return decode(dumps(value)) if isinstance(value, Fragment) else value


_repair: Final = functools.partial(Repair, opened=_opened)
