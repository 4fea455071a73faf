"""
What was bound, and where on a line it goes.

Bound keys go to the end of a line. They cannot take the place of a key that
the package owns, but for the four that place a line in a job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import copy_context
from typing import Any, Final

import structlog

from .schema import JOB_KEYS, KEYS, fits
from .values import text_of


VARIABLES: Final[Collection[object]] = getattr(
    structlog.contextvars, "_CONTEXT_VARS", (None,)
)
"""
Empty as long as nothing was bound to a context variable in this process.

Where a call takes too long: *bound* is `merged_context` of it as long as this
is empty.
"""


def merged_context(bound: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    Return `structlog.contextvars` and what was *bound*, which goes before.
    """
    # An empty copy is cheaper than looking at the variables.
    if not VARIABLES or not copy_context():
        return bound
    return {**structlog.contextvars.get_contextvars(), **bound}


def place(
    own: Mapping[str, Any],
    context: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    Return the place in the job, and the context that is not part of it.

    The event's *own* place goes before what was bound, which goes before the
    process's *environment*. A bound value that does not get its place is
    context like any other.

    Args:
        own: Of `JOB_KEYS` those that the event states, in their order.

        context: What was bound, of any name and type.

        environment: Like *own*.
    """
    if not _JOB_KEYS.isdisjoint(context):
        return _place_with_bound(own, context, environment)
    if own and environment:
        both = {**environment, **own}
        return {key: both[key] for key in JOB_KEYS if key in both}, context
    return own or environment, context


def _place_with_bound(
    own: Mapping[str, Any],
    context: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    job = {}
    placed = set()
    for key, kind in JOB_KEYS.items():
        bound = context.get(key)
        is_fit = fits(bound, kind)
        if key in own:
            job[key] = own[key]
        elif is_fit:
            job[key] = bound
        elif key in environment:
            job[key] = environment[key]
        if is_fit and job[key] == bound:
            placed.add(key)
    return job, {k: v for k, v in context.items() if k not in placed}


def with_context(
    line: dict[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Add *context* to the end of *line*, renamed where a name is taken.
    """
    if (
        _TEXT.issuperset(map(type, context))
        and _KEYS.isdisjoint(context)
        and line.keys().isdisjoint(context)
    ):
        line.update(context)
        return line
    pairs = [(_exact(key), value) for key, value in context.items()]
    wanted = _KEYS | {key for key, _ in pairs}
    for key, value in pairs:
        name = key
        while name in line or name in (_KEYS if name == key else wanted):
            name += "_"
        line[name] = value
    return line


_KEYS: Final = frozenset(KEYS)
_JOB_KEYS: Final = frozenset(JOB_KEYS)
# A subclass may say of itself that it equals nothing.
_TEXT: Final = frozenset((str,))


def _exact(key: object) -> str:
    """
    Return *key* as plain text, so that it equals what it is written as.
    """
    if type(key) is str:
        return key
    return str.__str__(key) if isinstance(key, str) else text_of(key)
