"""
In which form an outlet writes its lines, and which of them that form has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from structlog.exceptions import DropEvent
from structlog.typing import EventDict, Processor, WrappedLogger

from .complaints import complain
from .encoding import line_renderer
from .schema import KEYS, SHORTEST_HEAD
from .values import error_text, reraise_interrupt, type_name


if TYPE_CHECKING:
    from .formats import Format
    from .rendering import Form


_EVERY_KIND: Final = KEYS["time"].required


class Shape:
    """
    The form of an outlet's lines.

    Args:
        form: One of the formats. (default: our own)

        max_line: The most bytes of a line.

        urgent_from: The level from which lines are urgent.
    """

    def __init__(
        self, form: Format | None, max_line: int, urgent_from: int | None
    ) -> None:
        kinds = _EVERY_KIND if form is None else form.kinds
        is_every = set(_EVERY_KIND).issubset(kinds)
        self.admit = None if is_every else _kinds_passer(kinds)
        self.has_logs = "log" in kinds
        self.render = _renderer(form, max_line, urgent_from)


def _renderer(
    form: Format | None, max_line: int, urgent_from: int | None
) -> Processor:
    if form is None:
        return line_renderer(
            max_line, urgent_from=urgent_from, head=SHORTEST_HEAD
        )
    # Few processes need it.
    from .rendering import form_renderer  # noqa: PLC0415

    return form_renderer(
        _watched(form),
        max_line,
        urgent_from=urgent_from,
        mover=form.to if form.is_mover else None,
        decisive=form.decisive,
    )


class NoForm(Exception):  # noqa: N818
    """
    What has to be said cannot be said in the form that was asked for.
    """


def _kinds_passer(kinds: Collection[str]) -> Processor:
    """
    Return the step that leaves out lines that are not of *kinds*.

    What this package itself says of what it was given is not left out without
    a word.
    """

    def pass_kinds(
        _: WrappedLogger, __: str, event_dict: EventDict
    ) -> EventDict:
        if event_dict["kind"] in kinds:
            return event_dict
        if event_dict.get(
            "logger"
        ) == "elastic_events" and "given" in event_dict.get("metadata", ()):
            raise NoForm(event_dict["message"])
        raise DropEvent

    return pass_kinds


def _watched(form: Format) -> Form:
    """
    Return what makes the *form*, and complains where it cannot.
    """

    def watched(line: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _made(form, line)
        except BaseException as error:
            reraise_interrupt(error)
            complain(
                f"format {form.name!r}: {error_text(error)}: the line is"
                " written as it is"
            )
            raise NoForm from error

    return watched


def _made(form: Format, line: Mapping[str, Any]) -> dict[str, Any]:
    made: Any = form.to(line)
    if not isinstance(made, dict):
        raise TypeError(f"expected a dict, got {type_name(made)}")
    return made
