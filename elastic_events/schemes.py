"""
What each form of a destination's name stands for.

`SCHEMES` is all that has to be told of a further one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from .entrances import Destination
from .file_sink import FileSink
from .levels import LEVELS
from .options import parse_options
from .outlets import Outlet
from .paths import parse_path
from .pipeline import DEFAULT_MAX_LINE
from .sinks import Sink
from .stream_sink import StreamSink
from .values import error_text


if TYPE_CHECKING:
    from .formats import Format


STREAM_MAX_LINE: Final = 16_384
"""The most bytes of a line on a stream, unless its name says otherwise."""

_outlets: dict[str, Outlet] = {}


class UnknownDestination(KeyError):  # noqa: N818
    """
    No destination has this name, or the name is malformed.

    A `KeyError`, as in torch; its text says what is known.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class Scheme(NamedTuple):
    """
    A form of name.

    Args:
        form: How it is written, for people.

        options: What may follow the ``?``.

        make:
            Returns the destination of what stands after the colon, with these
            options. A `ValueError` says what is malformed.
    """

    form: str
    options: tuple[str, ...]
    make: Callable[[str, Mapping[str, str]], Destination]


def described(name: str) -> Destination | None:
    """
    Return the destination that *name* describes, `None` if it is no such form.

    Raises:
        ValueError: If it is malformed.

        UnknownDestination: If it cannot be had.
    """
    address, mark, query = name.partition("?")
    word, colon, rest = address.partition(":")
    scheme = SCHEMES.get(word)
    if scheme is None or (":" in scheme.form) != bool(colon):
        return None
    options = parse_options(query, scheme.options) if mark else {}
    return scheme.make(rest, options)


def _stream(
    name: str, stream: str, _: str, options: Mapping[str, str]
) -> Destination:
    return shared(
        lambda: name,
        lambda: StreamSink(stream),
        options,
        default_max_line=STREAM_MAX_LINE,
    )


def _file(template: str, options: Mapping[str, str]) -> Destination:
    path = parse_path(template)
    return shared(
        lambda: f"file:{os.path.realpath(path.here())}",
        lambda: FileSink(
            path.here,
            mode=int(options.get("mode", "666"), 8),
            check=float(options.get("check", "1")),
        ),
        options,
    )


def _otlp(url: str, options: Mapping[str, str]) -> Destination:
    try:
        # An extra, and slow to import.
        from .otlp.settings import endpoint_of  # noqa: PLC0415
        from .otlp.sink import OtlpOutlet, OtlpSink  # noqa: PLC0415
    except ImportError as error:
        raise UnknownDestination(
            f"destination 'otlp:{url}' needs OpenTelemetry ({error}):"
            " pip install 'elastic-events[otlp]'"
        ) from error
    except Exception as error:
        # It takes threads, which the end of a process has none of, and may
        # not go with another package's version.
        raise UnknownDestination(
            f"destination 'otlp:{url}' needs OpenTelemetry, which cannot be"
            f" imported: {error_text(error)}"
        ) from error
    endpoint = endpoint_of(url)
    return shared(
        lambda: f"otlp:{endpoint}",
        lambda: OtlpSink(
            endpoint,
            size=int(options.get("size", "0")) or None,
            timeout=float(options.get("timeout", "0")) or None,
        ),
        options,
        make_outlet=OtlpOutlet,
    )


def shared(
    find_name: Callable[[], str],
    make_sink: Callable[[], Sink],
    options: Mapping[str, str],
    default_max_line: int = DEFAULT_MAX_LINE,
    make_outlet: Callable[..., Outlet] = Outlet,
    outlets: dict[str, Outlet] = _outlets,
) -> Destination:
    """
    Return the destination of the outlet of that name, made at its first use.

    Args:
        find_name: Returns the name.

        make_sink: Returns its sink.

        options: What was asked for after the ``?``.

        default_max_line: The most bytes of a line, unless they say otherwise.

        make_outlet: Returns the outlet.

        outlets: Where it is looked for, and kept.

    Raises:
        ValueError: If it is in use with other options, or there is no such
            format.
    """
    form = _format(options.get("format", ""))
    name = find_name()
    outlet = outlets.get(name)
    if outlet is None:
        made = make_outlet(
            find_name,
            make_sink(),
            max_line=int(options.get("max_line", default_max_line)),
            urgent_from=LEVELS.get(options.get("fsync", "")),
            form=form,
            options=options,
        )
        outlet = outlets.setdefault(name, made)
    else:
        check_options(options, outlet.options)
    return Destination(outlet)


def check_options(
    options: Mapping[str, str], in_use: Mapping[str, str]
) -> None:
    """
    Check that what has the options *in_use* can be had with these.

    Raises:
        ValueError: If it cannot, for they are others.
    """
    if options and options != in_use:
        raise ValueError(
            f"it is in use with the options {in_use}, and cannot be had with"
            " others too: give them where it is named first"
        )


def _format(name: str) -> Format | None:
    if not name:
        return None
    # Few want one, and the import takes its time.
    from .formats import FORMATS, find  # noqa: PLC0415

    # So does a look at what is installed.
    return FORMATS.get(name) or find(name)


SCHEMES: Final = {
    "console": Scheme(
        "console",
        ("max_line", "format"),
        functools.partial(_stream, "console", "stderr"),
    ),
    "stdout": Scheme(
        "stdout",
        ("max_line", "format"),
        functools.partial(_stream, "stdout", "stdout"),
    ),
    "file": Scheme(
        "file:PATH",
        ("max_line", "mode", "check", "fsync", "format"),
        _file,
    ),
    "otlp": Scheme("otlp:URL", ("max_line", "size", "timeout"), _otlp),
}


def _rename_outlets() -> None:
    """
    Have each found by the name that it has in a forked process.
    """
    # Those with {pid} in them have changed.
    renamed = {each.name: each for each in _outlets.values()}
    _outlets.clear()
    _outlets.update(renamed)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rename_outlets)
