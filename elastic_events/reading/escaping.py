"""
Text that cannot act on a terminal.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final


# They are printable to Python, yet nothing of them is seen: joiners, fillers
# and variation selectors can hide text in text.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def escaped(value: object, longest: int | None = None) -> str:
    r"""
    Return *value* as text that cannot act on a terminal, ``\x1b`` for ESC.

    Only what is seen stays as it is. Characters that this Python does not
    know are escaped too: to a newer terminal they may be control characters.

    Args:
        value: Anything; what is no text is shown as ``str`` has it.

        longest: So many characters of it are shown, the rest is ``…``.
    """
    text = value if isinstance(value, str) else str(value)
    if longest is not None and len(text) > longest:
        return escaped(text[:longest]) + "…"
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    is_seen = character.isprintable() and not _UNSEEN.match(character)
    if is_seen or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()
