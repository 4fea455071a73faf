"""
Values in the forms that JSON has.

What JSON lacks is written in a documented form or as text; what cannot be
read is marked. Only the outermost value is looked at, not what it holds.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Mapping, Sequence, Set as AbstractSet, ValuesView
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from .cutting import cut_in_the_middle


INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
# A wider one, of some 10 000 digits, takes longer to spell out than anybody
# should wait.
_WIDEST_INT: Final = 1 << 15
_LONGEST_DESCRIPTION: Final = 10_000
_MOST_ELEMENTS: Final = 10_000


def plain(value: Any, longest: int) -> Any:
    """
    Return *value* as a JSON scalar, a mapping, or what its items come from.

    Args:
        value: Anything.

        longest: The most characters of a string; a longer one is cut.

    Raises:
        BaseException: Whatever *value* raises.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Enum):
        return plain(value.value, longest)
    if isinstance(value, str):
        return _encodable(cut_in_the_middle(str.__str__(value), longest))
    if isinstance(value, int):
        return _integer(int(value), longest)
    if isinstance(value, float):
        return _real(float(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _decoded(bytes(value), longest)
    if isinstance(value, (Mapping, Sequence, AbstractSet, ValuesView)):
        return value
    return _of_object(value, longest)


def key_text(key: Any) -> str:
    """
    Return *key* as `json.dumps` names it, and any other key as text.
    """
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    try:
        named = plain(key, _LONGEST_DESCRIPTION)
        return named if isinstance(named, str) else _description(named)
    except BaseException as error:
        return unprintable(key, error)


def text_of(value: object) -> str:
    """
    Return *value* as text, also where its own ``__str__`` raises.
    """
    if isinstance(value, str):
        return value
    try:
        return _description(value)
    except BaseException as error:
        return unprintable(value, error)


def unprintable(value: object, error: BaseException) -> str:
    """
    Return what stands for *value*, of which *error* kept us from more.

    Raises:
        KeyboardInterrupt, SystemExit: If that is the error.
    """
    reraise_interrupt(error)
    return f"<unprintable {type_name(value)}: {type_name(error)}>"


def reraise_interrupt(error: BaseException) -> None:
    """
    Raise *error* again if it is to end the program.

    Whatever else a value raises when it is looked at, an `Exception` or not,
    is its own affair and must not reach who records it.

    Raises:
        KeyboardInterrupt, SystemExit: If that is the error.
    """
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error


def error_text(error: BaseException) -> str:
    """
    Return the type and the text of *error*, as a traceback ends with.
    """
    text = text_of(error)
    return f"{type_name(error)}: {text}" if text else type_name(error)


def type_name(value: object) -> str:
    """
    Return the name of the type of *value*, whatever its metaclass says.
    """
    name: str = _NAME_OF_TYPE(type(value))
    return name


_NAME_OF_TYPE: Final = type.__dict__["__name__"].__get__


def _of_object(value: Any, longest: int) -> Any:
    if isinstance(value, (dt.date, dt.time)):
        return _shortened(value.isoformat())
    if isinstance(value, BaseException):
        return error_text(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: getattr(value, field.name) for field in fields}
    if isinstance(getattr(value, "shape", None), tuple) and hasattr(
        value, "tolist"
    ):
        return _array(value, longest)
    return _description(value)


def _array(value: Any, longest: int) -> Any:
    """
    Return a scalar of numpy or torch as a number, an array as a list.

    They are known by their shape; neither library is imported.
    """
    if math.prod(value.shape) > _MOST_ELEMENTS:
        return f"<{type_name(value)} of shape {tuple(value.shape)}>"
    listed = value.tolist()
    if type(listed) is type(value):
        return _description(value)
    return plain(listed, longest)


def _integer(value: int, longest: int) -> int | str:
    if INT_MIN <= value <= INT_MAX:
        return value
    # A digit takes some three bits.
    if value.bit_length() > min(_WIDEST_INT, 3 * longest):
        return f"<int of {value.bit_length()} bits>"
    # `str` refuses more than 4 300 digits; Decimal does not.
    return format(Decimal(value), "f")


def _real(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _decoded(value: bytes, longest: int) -> str:
    # Cut first: to spell out what is no UTF-8 takes long.
    parts = [value]
    if len(value) > longest:
        parts = [value[: longest // 2], value[-(longest // 2) :]]
    left_out = len(value) - sum(map(len, parts))
    texts = [part.decode("utf-8", "backslashreplace") for part in parts]
    return f"<{left_out} cut>".join(texts)


def _encodable(text: str) -> str:
    r"""
    Return *text* with lone surrogates spelled out, as in ``\udc80``.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


def _description(value: object) -> str:
    return _shortened(str(value))


def _shortened(text: str) -> str:
    """
    Return *text*, cut where it is out of proportion.
    """
    if len(text) > _LONGEST_DESCRIPTION:
        text = text[:_LONGEST_DESCRIPTION] + "..."
    # What says that it is text may be of a class of its own.
    return _encodable(str.__str__(text))
