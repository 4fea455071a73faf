"""
Where doors hand in their lines, and the steps that make these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from structlog.typing import Processor

from .complaints import complain
from .counting import Count
from .pipeline import build_chain
from .values import reraise_interrupt, type_name


class Entrance(Protocol):
    """
    Where doors hand in their lines: an outlet, or a queue before it.
    """

    render: Processor
    admit: Processor | None
    numbers: Count

    @property
    def name(self) -> str:
        """
        How `health` names it.
        """

    def write(self, line: bytes) -> None:
        """
        Take *line*. Never raises.
        """

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Take what *error* kept from being made a line.
        """


class _Withheld(Exception):  # noqa: N818
    """
    Stands for what could not be read, and must not be shown as it is.
    """


class Destination:
    """
    An entrance, and the steps that make its lines.

    Args:
        outlet: Where the lines are handed in, shared by all who write there.

        processors: The user's own.
    """

    def __init__(
        self, outlet: Entrance, processors: Sequence[Processor] = ()
    ) -> None:
        self.outlet = outlet
        self.processors = tuple(processors)
        self.chain = build_chain(
            outlet.numbers,
            self.processors,
            complain,
            outlet.render,
            outlet.admit,
        )

    def write_unreadable(self, given: object, error: BaseException) -> None:
        """
        Write a line about *given*, of which *error* kept us from making one.
        """
        if self.processors:
            # They have not seen it: it may hold what they are to take away.
            reraise_interrupt(error)
            error = _Withheld(f"{type_name(given)} raised {type_name(error)}")
            given = error
        self.outlet.write_unreadable(given, error)

    def with_processors(self, processors: Sequence[Processor]) -> Destination:
        """
        Return the same destination with further *processors*.
        """
        if not processors:
            return self
        return Destination(self.outlet, (*self.processors, *processors))
