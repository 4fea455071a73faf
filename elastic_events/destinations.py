"""
A name or URI to the one destination that it stands for.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from structlog.typing import Processor

from .complaints import complain
from .entrances import Destination, Entrance
from .file_sink import FileSink
from .levels import LEVELS
from .options import (
    FILE_OPTIONS,
    LINE_OPTIONS,
    OTLP_OPTIONS,
    QUEUE_OPTIONS,
    parse_options,
)
from .outlets import Outlet
from .paths import parse_path
from .pipeline import DEFAULT_MAX_LINE
from .queued_outlet import QueuedOutlet
from .sinks import CallableSink, HandlerSink, Sink
from .stream_sink import StreamSink
from .values import error_text


if TYPE_CHECKING:
    from .formats import Format


ENVIRONMENT_VARIABLE: Final = "ELASTIC_EVENTS_DESTINATION"
ENTRY_POINT_GROUP: Final = "elastic_events.destinations"

Target: TypeAlias = "str | logging.Handler | Callable[[bytes], object]"
_T = TypeVar("_T")
_Named = TypeVar("_Named", bound=Entrance)

_STREAMS: Final = {"console": "stderr", "stdout": "stdout"}
_STREAM_MAX_LINE: Final = 16_384
_BUILT_IN: Final = ("null", "console", "stdout")
_FORMS: Final = (*_BUILT_IN, "file:PATH", "otlp:URL", "queue:DESTINATION")


class UnknownDestination(KeyError):  # noqa: N818
    """
    No destination has this name, or the name is malformed.

    A `KeyError`, as in torch; its text says what is known.
    """

    def __str__(self) -> str:
        return str(self.args[0])


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
_outlets: dict[str, Outlet] = {}
_queues: dict[str, QueuedOutlet] = {}
_registered: dict[str, Destination | str | None] = {}


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
    before = dict(_registered)
    _registered[name] = _destination_of(name, target, processors)
    try:
        _find(name)
    except UnknownDestination:
        _registered.clear()
        _registered.update(before)
        raise
    resolve_anew()


def resolve_anew() -> None:
    """
    Have every name resolved again at its next use.
    """
    for made in _made_by_name:
        made.clear()


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
    try:
        return _made(name, seen)
    except ValueError as error:
        raise UnknownDestination(
            f"malformed destination {name!r}: {error}"
        ) from error


def _made(name: str, seen: tuple[str, ...]) -> Destination | None:
    """
    Return the destination that *name* describes.

    Raises:
        ValueError: If it is malformed.
    """
    address, mark, query = name.partition("?")
    if address.startswith("queue:"):
        return _queue(address, query, seen)
    if address in _STREAMS:
        return _stream(address, query if mark else None)
    if address.startswith("file:"):
        return _file(address, query if mark else None)
    if address.startswith("otlp:"):
        return _otlp(address, query if mark else None)
    return _entry_point(name, seen)


def _queue(
    address: str, query: str, seen: tuple[str, ...]
) -> Destination | None:
    items = query.split("&") if query else []
    own = [each for each in items if each.partition("=")[0] in QUEUE_OPTIONS]
    inward = "&".join(each for each in items if each not in own)
    options = parse_options("&".join(own), QUEUE_OPTIONS) if own else {}
    inner_name = address.removeprefix("queue:") + (inward and f"?{inward}")
    inner = _find(inner_name, seen)
    if inner is None:
        return None
    is_otlp = inner.outlet.name.startswith("otlp:")
    if is_otlp or not isinstance(inner.outlet, Outlet):
        raise ValueError("it is a queue already")
    queued = _queues.get(inner.outlet.name)
    if queued is None:
        made = QueuedOutlet(
            inner.outlet,
            size=int(options.get("size", "10000")),
            blocks=options.get("full") == "block",
        )
        queued = _queues.setdefault(inner.outlet.name, made)
        # Another thread may have made one too, which nobody uses.
        inner.outlet.queued = queued.queued
    return Destination(queued, inner.processors)


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


def _stream(name: str, query: str | None) -> Destination:
    options = _parsed(query, LINE_OPTIONS)
    return _shared(
        lambda: name,
        lambda: StreamSink(_STREAMS[name]),
        options,
        default_max_line=_STREAM_MAX_LINE,
    )


def _file(address: str, query: str | None) -> Destination:
    path = parse_path(address.removeprefix("file:"))
    options = _parsed(query, FILE_OPTIONS)
    return _shared(
        lambda: f"file:{os.path.realpath(path.here())}",
        lambda: FileSink(
            path.here,
            mode=int(options.get("mode", "666"), 8),
            check=float(options.get("check", "1")),
        ),
        options,
    )


def _otlp(address: str, query: str | None) -> Destination:
    try:
        # An extra, and slow to import.
        from .otlp.settings import endpoint_of  # noqa: PLC0415
        from .otlp.sink import OtlpOutlet, OtlpSink  # noqa: PLC0415
    except ImportError as error:
        raise UnknownDestination(
            f"destination {address!r} needs OpenTelemetry ({error}):"
            " pip install 'elastic-events[otlp]'"
        ) from error
    except Exception as error:
        # It takes threads, which the end of a process has none of, and may
        # not go with another package's version.
        raise UnknownDestination(
            f"destination {address!r} needs OpenTelemetry, which cannot be"
            f" imported: {error_text(error)}"
        ) from error
    options = _parsed(query, OTLP_OPTIONS)
    endpoint = endpoint_of(address.removeprefix("otlp:"))
    return _shared(
        lambda: f"otlp:{endpoint}",
        lambda: OtlpSink(
            endpoint,
            size=int(options.get("size", "0")) or None,
            timeout=float(options.get("timeout", "0")) or None,
        ),
        options,
        make_outlet=OtlpOutlet,
    )


def _parsed(query: str | None, allowed: Sequence[str]) -> dict[str, str]:
    return {} if query is None else parse_options(query, allowed)


def _shared(
    find_name: Callable[[], str],
    make_sink: Callable[[], Sink],
    options: Mapping[str, str],
    default_max_line: int = DEFAULT_MAX_LINE,
    make_outlet: Callable[..., Outlet] = Outlet,
) -> Destination:
    """
    Return the destination of the outlet of that name, made at its first use.

    Raises:
        ValueError: If it is in use with other options, or there is no such
            format.
    """
    form = _format(options.get("format", ""))
    name = find_name()
    outlet = _outlets.get(name)
    if outlet is None:
        made = make_outlet(
            find_name,
            make_sink(),
            max_line=int(options.get("max_line", default_max_line)),
            urgent_from=LEVELS.get(options.get("fsync", "")),
            form=form,
            options=options,
        )
        outlet = _outlets.setdefault(name, made)
    elif options and dict(options) != outlet.options:
        raise ValueError(
            f"it is in use with the options {outlet.options}, and cannot be"
            " had with others too"
        )
    return Destination(outlet)


def _format(name: str) -> Format | None:
    if not name:
        return None
    # Few want one, and the import takes its time.
    from .formats import find  # noqa: PLC0415

    return find(name)


def _destination_of(
    name: str, target: Target, processors: Sequence[Processor]
) -> Destination | str | None:
    if isinstance(target, logging.Handler):
        # One of ours stands for its destination.
        target = getattr(target, "destination", target)
    if isinstance(target, str):
        if not processors:
            return target
        found = _find(target, (name,))
        return found.with_processors(processors) if found else None
    if isinstance(target, logging.NullHandler):
        return None
    sink: Sink
    if isinstance(target, logging.Handler):
        sink = HandlerSink(target)
    elif callable(target):
        sink = CallableSink(target)
    else:
        raise TypeError(
            f"destination {name!r} cannot be a {type(target).__name__}:"
            " expected a destination's name, a logging.Handler or a callable"
            " taking bytes"
        )
    return Destination(Outlet(lambda: name, sink), processors)


def _entry_point(name: str, seen: tuple[str, ...]) -> Destination | None:
    # Takes longer to import than the whole package.
    from importlib.metadata import entry_points  # noqa: PLC0415

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


_resolved: ByName[Destination | None] = ByName(_find)


def _rename(named: dict[str, _Named]) -> None:
    renamed = {each.name: each for each in named.values()}
    named.clear()
    named.update(renamed)


def _after_fork() -> None:
    # Names with {pid} in them have changed.
    _rename(_outlets)
    _rename(_queues)
    resolve_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
