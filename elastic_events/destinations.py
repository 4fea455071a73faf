"""
A name or URI to the one destination that it stands for.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakSet

from structlog.typing import Processor

from . import process
from .api import EventSource
from .drafts import draft_log
from .pipeline import build_chain
from .sinks import CallableSink, FileSink, HandlerSink, Sink, StreamSink


ENVIRONMENT_VARIABLE: Final = "ELASTIC_EVENTS_DESTINATION"
ENTRY_POINT_GROUP: Final = "elastic_events.destinations"

Target: TypeAlias = "str | logging.Handler | Callable[[bytes], object]"
_T = TypeVar("_T")

_STREAMS: Final = {"console": "stderr", "stdout": "stdout"}
_BUILT_IN: Final = ("null", "console", "stdout")
_FORMS: Final = (*_BUILT_IN, "file:PATH")
_COMPLAINT_INTERVAL: Final = 60.0


class UnknownDestination(KeyError):  # noqa: N818
    """
    No destination has this name, or the name is malformed.

    A `KeyError`, as in torch; its text says what is known.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class Outlet:
    """
    One sink, the numbers of its lines, and the account of what was lost.

    Args:
        name: How `health` names it.

        sink: Where the lines go.

        options: What was asked for after the ``?``.
    """

    def __init__(
        self, name: str, sink: Sink, options: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.options = dict(options or {})
        self._sink = sink
        self._start()
        _outlets_in_use.add(self)

    def _start(self) -> None:
        self._numbers = itertools.count()
        self._counting = threading.RLock()
        self._reporting = threading.Lock()
        self._dropped: dict[str, int] = {}
        self._unreported: dict[str, int] = {}
        self._unreported_since = 0
        self._reserved: int | None = None

    def next_number(self) -> int:
        """
        Return the next line's ``seq``.
        """
        return next(self._numbers)

    def write(self, line: bytes) -> None:
        """
        Write *line*. What fails is counted and never raised.
        """
        if self._unreported:
            self._report_drops()
        try:
            self._sink.write(line)
        except Exception as error:
            self.drop(error)

    def drop(self, error: Exception) -> None:
        """
        Count a line that *error* kept from being written.
        """
        reason = type(error).__name__
        if isinstance(error, OSError) and error.errno is not None:
            reason = errno.errorcode.get(error.errno, reason)
        with self._counting:
            if not self._unreported:
                self._unreported_since = time.time_ns() // 1_000_000
            for counts in self._dropped, self._unreported:
                counts[reason] = counts.get(reason, 0) + 1
        complain(f"{self.name}: an event was not written: {error}")

    def health(self) -> dict[str, Any]:
        """
        Return what became of the lines of this process.
        """
        with self._counting:
            dropped = dict(self._dropped)
            # A count's repr is the one way to read it without taking a number.
            recorded = int(repr(self._numbers)[len("count(") : -1])
            recorded -= self._reserved is not None
        return {
            "recorded": recorded,
            "written": recorded - sum(dropped.values()),
            "dropped": dropped,
            "queued": 0,
        }

    def after_fork(self) -> None:
        """
        Begin anew: numbers and losses are the parent's.
        """
        self._start()
        self._sink.after_fork()

    def _report_drops(self) -> None:
        """
        Write the line that says what was dropped, if the sink takes it.
        """
        # Whoever comes second, be it a signal handler, does not wait.
        if not self._reporting.acquire(blocking=False):
            return
        try:
            with self._counting:
                reasons = dict(self._unreported)
                since = self._unreported_since
            if reasons:
                self._sink.write(self._drop_line(reasons, since))
                self._settle(reasons)
        except Exception as error:
            complain(f"{self.name}: {error}")
        finally:
            self._reporting.release()

    def _drop_line(self, reasons: dict[str, int], since: int) -> bytes:
        if self._reserved is None:
            self._reserved = self.next_number()
        # A report that fails is made again, under the same number.
        reserved = self._reserved
        total = sum(reasons.values())
        line: Any = draft_log(
            f"dropped {total} events",
            level="warning",
            logger="elastic_events",
            metadata={"dropped": total, "reasons": reasons, "since": since},
        )
        for step in build_chain(lambda: reserved):
            line = step(None, "warning", line)
        return line  # type: ignore[no-any-return]

    def _settle(self, reported: dict[str, int]) -> None:
        with self._counting:
            self._reserved = None
            for reason, count in reported.items():
                self._unreported[reason] -= count
                if not self._unreported[reason]:
                    del self._unreported[reason]


class Destination:
    """
    An outlet, and the steps that make its lines.

    Args:
        outlet: Where the lines go, shared by all who write there.

        processors: The user's own.
    """

    def __init__(
        self, outlet: Outlet, processors: Sequence[Processor] = ()
    ) -> None:
        self.outlet = outlet
        self.processors = tuple(processors)
        self.chain = build_chain(outlet.next_number, self.processors, complain)

    def with_processors(self, processors: Sequence[Processor]) -> Destination:
        """
        Return the same destination with further *processors*.
        """
        if not processors:
            return self
        return Destination(self.outlet, (*self.processors, *processors))


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


_made_by_name: list[ByName[Any]] = []
_outlets_in_use: WeakSet[Outlet] = WeakSet()
_outlets: dict[str, Outlet] = {}
_registered: dict[str, Destination | str | None] = {}
_last_complaint = -_COMPLAINT_INTERVAL


def resolve(name: str) -> Destination | None:
    """
    Return the destination that *name* stands for, `None` for nowhere.

    Raises:
        UnknownDestination: If there is none.
    """
    return _resolved[name]


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

        TypeError: If the target is none of these.
    """
    if not isinstance(name, str) or not name or ":" in name:
        raise ValueError(
            f"a destination cannot be named {name!r}: expected text"
            " without ':'"
        )
    if name in _BUILT_IN:
        raise ValueError(
            f"the destination {name!r} is built in: register another name"
            + (f", or set {ENVIRONMENT_VARIABLE}" if name == "null" else "")
        )
    before = _registered.get(name)
    _registered[name] = _destination_of(name, target, processors)
    try:
        _find(name)
    except UnknownDestination:
        _registered[name] = before
        if before is None:
            del _registered[name]
        raise
    for made in _made_by_name:
        made.clear()


def health() -> dict[str, dict[str, Any]]:
    """
    Return what became of the lines that this process recorded.

    Returns:
        For each destination in use, under its full name (a file under its
        absolute path): ``recorded``, ``written``, ``dropped`` (a number for
        each reason, such as ``ENOSPC``) and ``queued``, where *recorded =
        written + dropped + queued*.
    """
    return {
        outlet.name: outlet.health()
        for outlet in sorted(_outlets_in_use, key=lambda each: each.name)
    }


def complain(text: str) -> None:
    """
    Say *text* on standard error, unless something was said a minute ago.
    """
    global _last_complaint  # noqa: PLW0603
    now = time.monotonic()
    if now - _last_complaint < _COMPLAINT_INTERVAL:
        return
    _last_complaint = now
    # Where nobody is left to be told, nobody is.
    with contextlib.suppress(Exception):
        sys.stderr.write(f"elastic_events: {text}\n")
        sys.stderr.flush()


def _find(name: str, seen: tuple[str, ...] = ()) -> Destination | None:
    if name in seen:
        raise UnknownDestination(
            f"destination {seen[0]!r} stands for itself: "
            + " -> ".join((*seen, name))
        )
    seen = (*seen, name)
    if name == "null":
        return _find_null(seen)
    if name in _registered:
        target = _registered[name]
        return _find(target, seen) if isinstance(target, str) else target
    if name == "dynamic_rendezvous":
        return _find("null", seen)
    if not isinstance(name, str):
        raise UnknownDestination(
            f"a destination is named by a string, not {type(name).__name__}"
        )
    if name in _STREAMS:
        return _shared(name, lambda: StreamSink(_STREAMS[name]))
    if name.startswith("file:"):
        return _file(name)
    return _entry_point(name, seen)


def _find_null(seen: tuple[str, ...]) -> Destination | None:
    """
    Return where the environment sends what has no destination.
    """
    elsewhere = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if elsewhere in ("", *seen):
        return None
    try:
        return _find(elsewhere, seen)
    except UnknownDestination as error:
        # Set outside the program: no reason for it to end.
        complain(f"{ENVIRONMENT_VARIABLE}: {error}; nothing is recorded")
        return None


def _shared(
    name: str,
    make_sink: Callable[[], Sink],
    options: Mapping[str, str] | None = None,
) -> Destination:
    """
    Return the destination of the outlet *name*, made at its first use.
    """
    outlet = _outlets.get(name)
    if outlet is None:
        outlet = _outlets.setdefault(name, Outlet(name, make_sink(), options))
    elif options and dict(options) != outlet.options:
        raise UnknownDestination(
            f"{name!r} is in use with the options {outlet.options}, and"
            f" cannot be had with {dict(options)} too"
        )
    return Destination(outlet)


def _destination_of(
    name: str, target: Target, processors: Sequence[Processor]
) -> Destination | str | None:
    if isinstance(target, str):
        if not processors:
            return target
        found = _find(target, (name,))
        return found.with_processors(processors) if found else None
    if isinstance(target, logging.NullHandler):
        return None
    if isinstance(target, logging.Handler):
        return Destination(Outlet(name, HandlerSink(target)), processors)
    if callable(target):
        return Destination(Outlet(name, CallableSink(target)), processors)
    raise TypeError(
        f"destination {name!r} cannot be a {type(target).__name__}: expected"
        " a destination's name, a logging.Handler or a callable taking bytes"
    )


def _entry_point(name: str, seen: tuple[str, ...]) -> Destination | None:
    for found in entry_points(group=ENTRY_POINT_GROUP, name=name):
        try:
            target = found.load()
            if isinstance(target, type):
                target = target()
            made = _destination_of(name, target, ())
        except Exception as error:
            raise UnknownDestination(
                f"destination {name!r}, provided by {found.value!r}, cannot"
                f" be had: {type(error).__name__}: {error}"
            ) from error
        if isinstance(made, str):
            return _find(made, seen)
        return _registered.setdefault(name, made)  # type: ignore[return-value]
    provided = {each.name for each in entry_points(group=ENTRY_POINT_GROUP)}
    names = sorted({"dynamic_rendezvous", *_registered, *provided})
    raise UnknownDestination(
        f"unknown destination {name!r}: expected one of"
        f" {', '.join((*_FORMS, *names))}"
    )


_PLACEHOLDER: Final = re.compile(r"\{(.*?)\}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]|^\.")
_LONGEST_NAME: Final = 128
_MODE: Final = re.compile(r"[0-7]{3,4}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def _file(uri: str) -> Destination:
    path, mark, query = uri.removeprefix("file:").partition("?")
    path = path.replace("%3F", "?").replace("%3f", "?")
    if not path or path.endswith("/") or path[0] == "~" or "\0" in path:
        raise UnknownDestination(
            f"malformed destination {uri!r}: expected file:PATH with the path"
            " of a file, its folders written out"
        )
    options = _options(uri, query) if mark else {}
    # The working directory may change; the file does not.
    template = os.path.join(os.getcwd(), path)
    mode, check = options.get("mode", "666"), options.get("check", "1")
    if not _MODE.fullmatch(mode) or not _SECONDS.fullmatch(check):
        raise UnknownDestination(
            f"malformed destination {uri!r}: mode= takes octal permissions"
            " such as 640, check= takes seconds such as 0.5"
        )
    return _shared(
        f"file:{os.path.realpath(_filled_in(template, uri))}",
        lambda: FileSink(
            lambda: _filled_in(template, uri),
            mode=int(mode, 8),
            check=float(check),
        ),
        options,
    )


def _options(uri: str, query: str) -> dict[str, str]:
    options = {}
    for item in query.split("&"):
        key, equals, value = item.partition("=")
        if key not in ("mode", "check") or not equals or not value:
            raise UnknownDestination(
                f"malformed destination {uri!r}: {item!r} is no option of a"
                " file, expected mode=OCTAL or check=SECONDS"
            )
        options[key] = value
    return options


def _filled_in(template: str, uri: str) -> str:
    """
    Return the path that *template* gives in this process.
    """
    who = process.current()
    known: dict[str, Any] = {
        "hostname": who.hostname,
        "pid": who.pid,
        **who.job,
    }
    unknown = {"run_id": "none", "restart": "none"}
    unknown["rank"] = unknown["local_rank"] = (
        "agent" if who.source is EventSource.AGENT else "none"
    )

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        if name not in known and name not in unknown:
            raise UnknownDestination(
                f"malformed destination {uri!r}: {match[0]} is no"
                " placeholder, expected {hostname}, {pid}, {rank},"
                " {local_rank}, {run_id} or {restart}"
            )
        value = str(known.get(name, unknown.get(name)))
        return _UNSAFE.sub("_", value)[:_LONGEST_NAME]

    return os.path.abspath(_PLACEHOLDER.sub(value_of, template))


_resolved: ByName[Destination | None] = ByName(_find)


def _after_fork() -> None:
    for outlet in tuple(_outlets_in_use):
        outlet.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
