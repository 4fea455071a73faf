"""
What to call that which is no record.
"""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any, Final

from .prefilter import BEGINNING
from .salvage import Span


_TORCH_BEGINNING: Final = b'{"name": '
# How `{"` or a byte order mark before a letter looks in UTF-16 and UTF-32.
_WIDE: Final = (
    b'{\0"\0',
    b'\0{\0"',
    b'{\0\0\0"\0\0\0',
    b'\0\0\0{\0\0\0"',
    b"\0\0\xfe\xff",
)


def is_wide(beginning: bytes) -> bool:
    """
    Tell whether a file that begins so has more than one byte a character.
    """
    has_mark = beginning.startswith((b"\xff\xfe", b"\xfe\xff"))
    return beginning.startswith(_WIDE) or (
        has_mark and b"\0" in beginning[2:4]
    )


def name_of_damage(part: Span, error: ValueError, *, is_alone: bool) -> str:
    """
    Return what to call a part of a line that is no record.
    """
    length = len(part.raw)
    if not part.raw.strip(b"\0"):
        return f"{length} NUL bytes"
    if not is_alone or part.raw.startswith((BEGINNING, _TORCH_BEGINNING)):
        if "too deeply" in str(error):
            return "not JSON: nested too deeply"
        return f"torn record, {length} bytes"
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"not UTF-8: byte {error.start + 1} is 0x{byte:02x}"
    if isinstance(error, JSONDecodeError):
        return f"not JSON: {error.msg} (character {error.pos + 1})"
    return f"not JSON: {error}"


def name_of_type(value: Any) -> str:
    """
    Return the name of the type of a JSON value.
    """
    return "null" if value is None else type(value).__name__
