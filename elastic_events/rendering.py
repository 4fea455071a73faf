"""
The step that makes lines in another form than our own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from structlog.typing import EventDict, Processor, WrappedLogger

from .encoding import (
    decode,
    encode,
    encode_moved,
    line_renderer,
    marking_urgent,
)
from .schema import SHORTEST_HEAD
from .templates import Templates


Form: TypeAlias = "Callable[[Mapping[str, Any]], Mapping[str, Any]]"

_MOST_TRIES: Final = 20


def form_renderer(
    form: Form,
    max_line: int = sys.maxsize,
    *,
    urgent_from: int | None = None,
    mover: Form | None = None,
    decisive: Collection[str] | None = None,
) -> Processor:
    """
    Return the step that makes the line in another form, a JSON object too.

    It is the form of what `line_renderer` writes, repaired and cut as there.
    If there is none, or none that is short enough, it is that line itself.

    Args:
        form: Returns the form of what is read from a finished line.

        max_line: The most bytes of what is written.

        urgent_from: As with `line_renderer`.

        mover:
            Returns the same of a line that is not finished, which it does not
            change: with its values as they are. Or it raises.

        decisive:
            The keys whose values decide the form. (default: they may all)
    """
    render_line = line_renderer(max_line, head=SHORTEST_HEAD)
    formed = _maker(form)
    formed_alike = (
        (lambda native, _: formed(native))
        if decisive is None
        else Templates(form, decisive).encode
    )

    def render_finished(
        logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> bytes:
        native: bytes = render_line(logger, method_name, event_dict)  # type: ignore[assignment]
        try:
            line = formed_alike(native, event_dict)
            if len(line) > max_line:
                line = _shortened(line, native, event_dict, formed, max_line)
        except Exception:
            return native
        return line

    def render_moved(
        logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> bytes:
        try:
            line = encode_moved(mover(event_dict), event_dict)  # type: ignore[misc]
        except Exception:
            return render_finished(logger, method_name, event_dict)
        if len(line) > max_line:
            return render_finished(logger, method_name, event_dict)
        return line

    render = render_finished if mover is None else render_moved
    if urgent_from is None:
        return render
    return marking_urgent(render, urgent_from)


def _maker(form: Form) -> Callable[[bytes], bytes]:
    """
    Return what returns the *form* of a finished line as bytes.
    """
    return lambda line: encode(form(decode(line)))


class _TooLong(Exception):  # noqa: N818
    """
    The form cannot be made short enough.
    """


def _shortened(
    encoded: bytes,
    native: bytes,
    line: EventDict,
    formed: Callable[[bytes], bytes],
    limit: int,
) -> bytes:
    """
    Return the form of as much of *line* as it has room for.

    Args:
        encoded: The form of all of it, which is too long.

        native: The line that this is the form of.

        line: What it says.

        formed: Returns the form of a finished line.

        limit: The most bytes.

    Raises:
        Exception: If there is none that is short enough.
    """
    room = limit
    for _ in range(_MOST_TRIES):
        # What the form adds is not known: a bit less than seems to be right.
        least = min(room, len(native))
        room = max(1, min(least * limit // len(encoded), least * 15 // 16))
        native = line_renderer(room)(None, "", line)  # type: ignore[assignment]
        encoded = formed(native)
        if len(encoded) <= limit:
            return encoded
    raise _TooLong(limit)
