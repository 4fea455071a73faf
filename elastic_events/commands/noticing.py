"""
What is noticed of records while they are read, to be told at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar

from ..reading.records import Record
from ..reading.tables import value_at


_Read = TypeVar("_Read", bound="Record | None")

_OF_EVERY_LINE: Final = frozenset(("kind", "level"))
_TELLTALES: Final = {
    "ecs.version": "ecs",
    "resourceLogs": "otel",
    "logging.googleapis.com/labels": "gcp",
    "ddsource": "datadog",
}
"""A key of each form that no other has, and the name of its format."""


def seen_until(
    records: Iterable[_Read], see: Callable[[Record], bool]
) -> Iterator[_Read]:
    """
    Return *records*, each shown to *see* until it has seen enough.

    From then on they cost nothing more.
    """
    each = iter(records)
    return chain(_seen(each, see), each)


class FormatWatch:
    """
    Notice lines of another format, where there are none of ours or torch's.
    """

    def __init__(self) -> None:
        self._format: str | None = None

    def see(self, record: Record) -> bool:
        """
        Look at *record*, and tell whether it is one that can be understood.
        """
        keys = record.said.keys()
        if keys >= _OF_EVERY_LINE:
            self._format = None
            return True
        if self._format is None:
            found = (_TELLTALES[key] for key in _TELLTALES if key in keys)
            self._format = next(found, None)
        return False

    def hint(self) -> str:
        """
        Return how to have the lines understood, empty where none is needed.
        """
        if self._format is None:
            return ""
        return (
            f"these lines look like format {self._format}: elastic-events"
            f" convert --from {self._format} -o json FILE"
        )


class FieldWatch:
    """
    Notice which fields there are, of those that were asked for.

    Args:
        fields: Dotted keys.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._missing = list(dict.fromkeys(fields))
        self._has_seen = False

    def see(self, record: Record) -> bool:
        """
        Look at *record*, and tell whether no field is missing any more.
        """
        self._has_seen = True
        self._missing = [
            each
            for each in self._missing
            if value_at(record.said, each) is None
        ]
        return not self._missing

    def hint(self) -> str:
        """
        Return which fields no record had, empty where each was had.
        """
        if not self._missing or not self._has_seen:
            return ""
        return f"no record has a value for {', '.join(self._missing)}"


def _seen(
    records: Iterator[_Read], see: Callable[[Record], bool]
) -> Iterator[_Read]:
    for record in records:
        is_enough = record is not None and see(record)
        yield record
        if is_enough:
            return
