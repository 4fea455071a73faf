"""
Where in a picture something stands: by its time, or by its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..records import is_time
from ..runs import Moment, Run, Worker


_SHORTEST: Final = 100


class Clock:
    """
    The times of a run in ms; where its lines have none, their numbers.

    Args:
        run: The run; it has a clock if most of its moments have a time.
    """

    def __init__(self, run: Run) -> None:
        moments = [*_moments(run)]
        timed = [each.time for each in moments if is_time(each.time)]
        self.is_known = 2 * len(timed) > len(moments)
        self.shortest = _SHORTEST if self.is_known else 1
        """What is not drawn where it would only tell that nothing was."""
        self.start = 0
        """Where that stands whose time is not known."""
        places = [self.at(moment) for moment in moments]
        self.start = min(
            (each for each in places if each is not None), default=0
        )

    def at(self, moment: Moment | None) -> int | None:
        """
        Return where *moment* stands, `None` if that is not known.
        """
        if moment is None:
            return None
        if self.is_known:
            return moment.time if is_time(moment.time) else None
        number = moment.line.rpartition(":")[2]
        return int(number) if number.isdecimal() else None

    def of_worker(self, worker: Worker) -> int | None:
        """
        Return where *worker* failed, by its own account before its agent's.
        """
        if self.is_known and is_time(worker.failed_at):
            return worker.failed_at
        return self.at(worker.ended)


def file_and_number(place: str) -> tuple[str, int]:
    """
    Return the parts of ``FILE:7``.
    """
    file, _, number = place.rpartition(":")
    return (file, int(number)) if number.isdecimal() else (place, 0)


def _moments(run: Run) -> Iterator[Moment]:
    for node in run.nodes:
        yield from (each for each in (node.first, node.last) if each)
        for part in node.parts:
            known = (part.joined, part.ended)
            yield from (each for each in known if each)
            for worker in part.workers:
                known = (worker.started, worker.ended)
                yield from (each for each in known if each)
