"""
Which process wrote a line, by whatever names it calls its host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from .hosts import host_label


_MOST_PLACES: Final = 10_000

Writer: TypeAlias = "tuple[str, int]"
"""Host and process id."""


@dataclass(slots=True)
class _Place:
    """
    A process id in a file, and the hosts that its lines state.
    """

    writer: Writer
    own: str | None = None
    of_nodes: str | None = None


class Writers:
    """
    Tell the writers of lines apart.

    The lines of a rendezvous state the host as torch calls it, which need not
    be the name that the other lines of the same process state. A name with a
    domain and one without are the same.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], _Place] = {}
        self._aliases: dict[Writer, Writer] = {}

    def writer(
        self, file: str, host: str, pid: int, *, is_rdzv: bool
    ) -> Writer:
        """
        Return who wrote a line in *file* that states *host* and *pid*.
        """
        label = host_label(host)
        place = self._places.get((file, pid))
        if place is None:
            place = self._new_place(file, (label, pid))
        if is_rdzv:
            place.of_nodes = place.of_nodes or label
            is_here = label in {place.of_nodes, place.writer[0]}
        else:
            if place.own is None:
                place.own = label
                self._aliases[label, pid] = place.writer
            is_here = label == place.own
        return place.writer if is_here else (label, pid)

    def _new_place(self, file: str, writer: Writer) -> _Place:
        if len(self._places) >= _MOST_PLACES:
            self._places.clear()
            self._aliases.clear()
        place = _Place(self._aliases.get(writer, writer))
        self._places[file, writer[1]] = place
        return place
