"""
A name or URI to the one destination that it stands for.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from structlog.typing import Processor

from .complaints import complain
from .entrances import Destination
from .guarding import callables
from .options import parse_options
from .outlets import Outlet
from .providing import provided
from .queued_outlet import QueuedOutlet
from .schemes import (
    SCHEMES,
    UnknownDestination,
    check_options,
    described,
    shared,
)
from .sinks import CallableSink, HandlerSink, Sink


ENVIRONMENT_VARIABLE: Final = "ELASTIC_EVENTS_DESTINATION"
ENTRY_POINT_GROUP: Final = "elastic_events.destinations"

Target: TypeAlias = "str | logging.Handler | Callable[[bytes], object]"
_Find: TypeAlias = "Callable[[str, tuple[str, ...]], Destination | None]"
_T = TypeVar("_T")

FORMS: Final = (
    "null",
    *(each.form for each in SCHEMES.values()),
    "queue:DESTINATION",
)
"""The names that are not registered, as they are written."""

BUILT_IN: Final = (*FORMS, "dynamic_rendezvous")
"""The names that no other distribution can provide."""

QUEUE_OPTIONS: Final = ("size", "full")
REGISTERED_OPTIONS: Final = ("max_line", "format")
"""What may follow the name of a callable or a handler."""


class ByName(dict[str, _T]):
    """
    What was made for each destination name, until a name changes its meaning.

    Args:
        make: Called with the name at its first use.
    """

    def __init__(self, make: Callable[[str], _T]) -> None:
        super().__init__()
        self._make = make
        _made_by_name.append(self)

    def __missing__(self, name: str) -> _T:
        return self.setdefault(name, self._make(name))


nowhere: Final[list[Destination]] = []
"""Where goes what goes nowhere: empty, but while that is diverted."""

_made_by_name: list[ByName[Any]] = []
_queues: dict[Outlet, QueuedOutlet] = {}
_registered: dict[str, _Find] = {}
"""
What returns the destination of each name, given the ``?`` and what follows,
and the names that led there.
"""


def resolve(name: str) -> Destination | None:
    """
    Return the destination that *name* stands for, `None` for nowhere.

    Raises:
        UnknownDestination: If there is none.
    """
    return _resolved[name] or next(iter(nowhere), None)


def divert_nowhere(to: Destination | None) -> None:
    """
    Have what goes nowhere go *to* a destination; `None` ends that.
    """
    nowhere[:] = [] if to is None else [to]
    resolve_anew()


def register_destination(
    name: str, target: Target, *, processors: Sequence[Processor] = ()
) -> None:
    """
    Let *name* stand for *target*, from now on and in this process.

    Args:
        name:
            A new name, one registered before, or ``"dynamic_rendezvous"``,
            where rendezvous events go.

        target:
            Another destination, a `logging.Handler` that is given each line
            as a message, or a callable that is given each line as bytes.

        processors:
            structlog processors for all that is recorded under this name.
            They may raise `structlog.DropEvent`.

    Raises:
        UnknownDestination: If the target names no destination.

        ValueError: If the name is not free to be given a meaning.

        TypeError:
            If the target is none of these, or *processors* no list of
            callables.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[^:?]+", name):
        raise ValueError(
            f"a destination cannot be named {name!r}: expected text"
            " without ':' and '?'"
        )
    if name in FORMS:
        raise ValueError(
            f"the destination {name!r} is built in: register another name"
            + (f", or set {ENVIRONMENT_VARIABLE}" if name == "null" else "")
        )
    _registered[name] = _finder(name, target, callables(processors))
    resolve_anew()


def resolve_anew() -> None:
    """
    Have every name resolved again at its next use.
    """
    for made in _made_by_name:
        made.clear()


def _find(name: str, seen: tuple[str, ...] = ()) -> Destination | None:
    if not isinstance(name, str):
        raise UnknownDestination(
            f"a destination is named by a string, not {type(name).__name__}"
        )
    address, mark, query = name.partition("?")
    if address in seen:
        raise UnknownDestination(
            f"destination {seen[0]!r} stands for itself: "
            + " -> ".join((*seen, address))
        )
    try:
        return _find_address(address, mark + query, (*seen, address))
    except ValueError as error:
        raise UnknownDestination(
            f"malformed destination {name!r}: {error}"
        ) from error


def _find_address(
    address: str, asked: str, seen: tuple[str, ...]
) -> Destination | None:
    """
    Return the destination of *address*, *asked* being the rest from its ``?``.
    """
    if address == "null":
        return _find_null(asked, seen)
    if address in _registered:
        return _registered[address](asked, seen)
    if address == "dynamic_rendezvous":
        return _find(f"null{asked}", seen)
    if address.startswith("queue:"):
        return _queue(address, asked, seen)
    return described(address + asked) or _find_provided(address, asked, seen)


def _queue(
    address: str, asked: str, seen: tuple[str, ...]
) -> Destination | None:
    items = asked[1:].split("&") if asked[1:] else []
    own = [each for each in items if each.partition("=")[0] in QUEUE_OPTIONS]
    inward = "&".join(each for each in items if each not in own)
    options = parse_options("&".join(own), QUEUE_OPTIONS) if own else {}
    inner_address = address.removeprefix("queue:")
    if not inner_address:
        raise ValueError("expected queue:DESTINATION, such as queue:console")
    inner_name = inner_address + (inward and f"?{inward}")
    inner = _find(inner_name, seen)
    if inner is None:
        return None
    is_otlp = inner.outlet.name.startswith("otlp:")
    if is_otlp or not isinstance(inner.outlet, Outlet):
        raise ValueError("it is a queue already")
    queued = _queues.get(inner.outlet)
    if queued is None:
        made = QueuedOutlet(
            inner.outlet,
            size=int(options.get("size", "10000")),
            blocks=options.get("full") == "block",
            options=options,
        )
        queued = _queues.setdefault(inner.outlet, made)
        # Another thread may have made one too, which nobody uses.
        inner.outlet.queued = queued.queued
    else:
        check_options(options, queued.options)
    return Destination(queued, inner.processors)


def _find_null(asked: str, seen: tuple[str, ...]) -> Destination | None:
    """
    Return where the environment sends what has no destination.
    """
    if asked:
        raise ValueError(
            f"'null' takes no options: {ENVIRONMENT_VARIABLE}, which says"
            " where it goes, can have them"
        )
    elsewhere = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if elsewhere in ("", *seen):
        return None
    try:
        return _find(elsewhere, seen)
    except UnknownDestination as error:
        # Set outside the program: no reason for it to end.
        complain(f"{ENVIRONMENT_VARIABLE}: {error}; nothing is recorded")
        return None


def _finder(
    name: str, target: Target, processors: Sequence[Processor]
) -> _Find:
    """
    Return what returns the destination of *target*, to be had as *name*.
    """
    if isinstance(target, logging.Handler):
        # One of ours stands for its destination.
        target = getattr(target, "destination", target)
    if isinstance(target, str):
        return _finder_by_name(name, target, processors)
    sink: Sink | None
    if isinstance(target, logging.NullHandler):
        sink = None
    elif isinstance(target, logging.Handler):
        sink = HandlerSink(target)
    elif callable(target):
        sink = CallableSink(target)
    else:
        raise TypeError(
            f"destination {name!r} cannot be a {type(target).__name__}:"
            " expected a destination's name, a logging.Handler or a callable"
            " taking bytes"
        )
    outlets: dict[str, Outlet] = {}

    def find(asked: str, _: object) -> Destination | None:
        options = parse_options(asked[1:], REGISTERED_OPTIONS) if asked else {}
        if sink is None:
            return None
        found = shared(lambda: name, lambda: sink, options, outlets=outlets)
        return found.with_processors(processors)

    return find


def _finder_by_name(
    name: str, target: str, processors: Sequence[Processor]
) -> _Find:
    # What cannot be found is said now.
    _find(target, (name,))

    def find(asked: str, seen: tuple[str, ...]) -> Destination | None:
        if asked:
            raise ValueError(
                f"{name!r} stands for {target!r}: give the options there"
            )
        found = _find(target, seen)
        return found.with_processors(processors) if found else None

    return find


def _find_provided(
    name: str, asked: str, seen: tuple[str, ...]
) -> Destination | None:
    """
    Return the destination of that name that another distribution provides.
    """
    others = provided(ENTRY_POINT_GROUP, BUILT_IN)
    if name not in others:
        more = sorted({"dynamic_rendezvous", *_registered, *others})
        names = (*FORMS, *more)
        raise UnknownDestination(
            f"unknown destination {name!r}: expected one of"
            f" {', '.join(names)}{_guess(name, asked, names)}"
        )
    found = others[name]
    try:
        target = found.load()
        if isinstance(target, type):
            target = target()
        find = _finder(name, target, ())
    except Exception as error:
        raise UnknownDestination(
            f"destination {name!r}, provided by {found.value!r}, cannot be"
            f" had: {type(error).__name__}: {error}"
        ) from error
    return _registered.setdefault(name, find)(asked, seen)


def _guess(name: str, asked: str, names: Sequence[str]) -> str:
    """
    Return what may have been meant by a *name* that is none of *names*.
    """
    word, colon, _ = name.partition(":")
    if colon and word in names:
        return f"; {word!r} stands alone, with no ':' after it"
    looks_like_path = ":" not in name and ("/" in name or "." in name)
    meant = f"file:{name}{asked}"
    return f"; did you mean {meant!r}?" if looks_like_path else ""


_resolved: ByName[Destination | None] = ByName(_find)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=resolve_anew)
