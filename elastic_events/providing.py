"""
What other distributions provide under names of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from .complaints import complain


if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def provided(group: str, built_in: Collection[str]) -> dict[str, EntryPoint]:
    """
    Return the entry points of *group* by their names.

    Those whose name is *built_in* are left out, and complained of.
    """
    # Takes longer to import than the whole package.
    from importlib.metadata import entry_points  # noqa: PLC0415

    found: dict[str, EntryPoint] = {}
    for each in entry_points(group=group):
        if each.name in built_in:
            complain(
                f"{each.name!r}, provided by {each.value!r} in {group}, is not"
                " used: the name is built in, so give it another"
            )
        else:
            found.setdefault(each.name, each)
    return found
