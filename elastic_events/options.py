"""
What stands after the ``?`` of a destination.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple


class _Option(NamedTuple):
    """
    What the value of an option looks like.

    Args:
        form: A regular expression that all of it matches.

        example: For people.
    """

    form: str
    example: str


_OPTIONS: Final = {
    "max_line": _Option(
        r"409[6-9]|4[1-9]\d\d|[5-9]\d{3}|[1-9]\d{4,8}",
        "max_line=BYTES, 4096 or more",
    ),
    "mode": _Option(r"[0-7]{3,4}", "mode=OCTAL, such as 640"),
    "check": _Option(r"\d{1,9}(\.\d{1,9})?", "check=SECONDS, such as 0.5"),
    "size": _Option(r"[1-9]\d{0,8}", "size=LINES, such as 10000"),
    "full": _Option(r"drop|block", "full=drop or full=block"),
    "fsync": _Option(
        r"debug|info|warning|error|critical",
        "fsync=LEVEL, such as error",
    ),
    "timeout": _Option(
        r"(?=.*[1-9])\d{1,6}(\.\d{1,6})?",
        "timeout=SECONDS, such as 5",
    ),
    # Which there are is known to `formats`.
    "format": _Option(r".+", "format=NAME, such as ecs"),
}


def parse_options(query: str, allowed: Sequence[str]) -> dict[str, str]:
    """
    Return the options of *query*, ``key=value`` with ``&`` in between.

    Args:
        query: What stands after the ``?``.

        allowed: The names of those that can be given here.

    Raises:
        ValueError:
            If another one is given, or one twice, or a value cannot be.
    """
    options = {}
    for item in query.split("&"):
        key, _, value = item.partition("=")
        if key not in allowed or not re.fullmatch(_OPTIONS[key].form, value):
            examples = "; ".join(_OPTIONS[each].example for each in allowed)
            raise ValueError(f"{item!r} is no option here: {examples}")
        if key in options:
            raise ValueError(f"{key!r} is given twice: expected it once")
        options[key] = value
    return options
