"""
What was bound, and where on a line it goes.

Bound keys go to the end of a line. They cannot take the place of a key that
the package owns, but for the four that place a line in a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import copy_context
from typing import Any, Final

import structlog

from .schema import JOB_KEYS, OWNED_KEYS


_OWNED: Final = frozenset(OWNED_KEYS)
_LARGEST_INT: Final = 2**63 - 1


def merged_context(bound: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    Return `structlog.contextvars` and what was *bound*, which goes before.
    """
    # An empty copy is cheaper than looking at the variables.
    if not copy_context():
        return bound
    return {**structlog.contextvars.get_contextvars(), **bound}


def place(
    own: Mapping[str, Any],
    context: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> tuple[Mapping[str, Any], tuple[tuple[str, Any], ...]]:
    """
    Return the place in the job, and the context that is not part of it.

    The event's *own* place goes before what was bound, which goes before the
    process's *environment*. A bound value that does not get its place is
    context like any other.
    """
    if not own and not context:
        return environment, ()
    job = {}
    placed = set()
    for key, kind in JOB_KEYS.items():
        bound = context.get(key)
        is_fit = fits(bound, kind)
        if fits(own.get(key), kind):
            job[key] = own[key]
        elif is_fit:
            job[key] = bound
        elif key in environment:
            job[key] = environment[key]
        if is_fit and job[key] == bound:
            placed.add(key)
    return job, tuple(
        (key, value) for key, value in context.items() if key not in placed
    )


def with_context(
    line: dict[str, Any], context: Iterable[tuple[str, Any]]
) -> dict[str, Any]:
    """
    Add *context* to the end of *line*, renamed where a name is taken.
    """
    context = tuple(context)
    wanted = _OWNED.union(key for key, _ in context)
    for key, value in context:
        name = key
        while name in line or (
            name in wanted if name != key else name in _OWNED
        ):
            name += "_"
        line[name] = value
    return line


def fits(value: object, kind: type) -> bool:
    """
    Tell whether *value* says something and is a *kind* that a line can hold.
    """
    if kind is int:
        return type(value) is int and -_LARGEST_INT <= value <= _LARGEST_INT
    return isinstance(value, kind) and value != ""
