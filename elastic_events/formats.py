"""
A line in the forms that others expect, and back.

A form is made of what a line says, and of nothing else. What was bound has a
place of its own in each, so that it can neither be lost nor forge anything.
`FORMATS` is all that has to be told of a further one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from .forming import OWN, SERVICE, SEVERITIES, Form, Line
from .layouts import Layout, Said
from .otel_form import DECISIVE, from_otel, records_of, to_otel
from .providing import provided


ENTRY_POINT_GROUP: Final = "elastic_events.formats"

KINDS: Final = frozenset(("event", "rdzv", "log"))
"""The kinds of line that there are."""


class Format(NamedTuple):
    """
    A form that lines can be given.

    Args:
        name: How it is asked for.

        to: Returns the form of a line, which it does not change.

        back:
            Returns the line of a form, where nothing that matters is lost.

        kinds: The kinds of line that have this form.

        is_mover:
            Whether `to` only moves the values of a line, or raises for those
            that JSON lacks. Any other is given what is read from a finished
            line: values of JSON's types, at some cost.

        decisive:
            The keys whose values decide the form: of lines that differ in
            other texts, numbers and truth values only, and in how many numbers
            a list has, these differ alone, each as it stands in the line. Then
            few forms have to be made by `to`.

        parts:
            Returns the forms of single lines that a form holds, where others
            put several together.
    """

    name: str
    to: Callable[[Line], Form]
    back: Callable[[Line], Form] | None = None
    kinds: Collection[str] = KINDS
    is_mover: bool = False
    decisive: Collection[str] | None = None
    parts: Callable[[Line], Iterable[Line]] = lambda form: (form,)


class UnknownFormat(ValueError):  # noqa: N818
    """
    No format has this name, or it cannot be had.
    """


def find(name: str) -> Format:
    """
    Return the format of that name, ours or one that is installed.

    Raises:
        UnknownFormat: If there is none. Its text says what is known.
    """
    others = provided(ENTRY_POINT_GROUP, FORMATS)
    if name in FORMATS:
        return FORMATS[name]
    if name not in others:
        raise UnknownFormat(
            f"unknown format {name!r}: expected one of"
            f" {', '.join((*FORMATS, *sorted(others)))}"
        )
    found = others[name]
    try:
        return _format_of(name, found.load())
    except Exception as error:
        raise UnknownFormat(
            f"format {name!r}, provided by {found.value!r}, cannot be had:"
            f" {type(error).__name__}: {error}"
        ) from error


def known() -> list[str]:
    """
    Return the names of all formats that can be had here.
    """
    return [*FORMATS, *sorted(provided(ENTRY_POINT_GROUP, FORMATS))]


def _format_of(name: str, provided: object) -> Format:
    if isinstance(provided, Format):
        return provided._replace(name=name)
    if callable(provided):
        return Format(name, provided)
    raise TypeError(
        f"expected a Format or a callable, got {type(provided).__name__}"
    )


_ECS: Final = Layout(
    {
        "@timestamp": Said("time"),
        "log.level": Said("level"),
        "message": Said("message"),
        "ecs.version": "1.6.0",
        "service": {"name": SERVICE},
        "event": {
            "kind": "event",
            "provider": OWN,
            "dataset": SERVICE,
            "sequence": Said("seq"),
            "action": Said("name"),
        },
        "labels": {"source": Said("source")},
        "host": {"name": Said("hostname")},
        "process": {"pid": Said("pid")},
        "log": {"logger": Said("logger")},
        "error": {
            "type": Said("error.type"),
            "message": Said("error.message"),
            "stack_trace": Said("error_trace"),
        },
        OWN: {"kind": Said("kind")},
    },
    others=OWN,
    left_out="timestamp",
)
"""Elastic Common Schema."""

_GCP: Final = Layout(
    {
        "severity": Said("level"),
        "time": Said("time"),
        "message": Said("message"),
        "logging.googleapis.com/labels": {
            "source": Said("source"),
            "hostname": Said("hostname"),
            "run_id": Said("run_id"),
        },
        "stack_trace": Said("error_trace"),
    },
    others="",
    left_out="timestamp",
    levels=SEVERITIES,
)
"""What Google Cloud's logging agents read."""

_DATADOG: Final = Layout(
    {
        "timestamp": Said("timestamp"),
        "status": Said("level"),
        "message": Said("message"),
        "service": SERVICE,
        "ddsource": "python",
        "hostname": Said("hostname"),
        "pid": Said("pid"),
        "evt": {"name": Said("name")},
        "logger": {"name": Said("logger")},
        "error": {
            "kind": Said("error.type"),
            "message": Said("error.message"),
            "stack": Said("error_trace"),
        },
        OWN: {"kind": Said("kind")},
    },
    others=OWN,
    left_out="time",
)
"""The attributes that Datadog knows."""


def to_torch(line: Line) -> Form:
    """
    Return the event that *line* records, in torch's keys and no others.
    """
    get = line.get
    if get("kind") == "rdzv":
        return {
            "name": get("name", ""),
            "run_id": get("run_id", ""),
            "message": get("message", ""),
            "hostname": get("hostname", ""),
            "pid": get("pid", 0),
            "node_state": get("node_state", ""),
            "master_endpoint": get("master_endpoint", ""),
            "rank": get("rank"),
            "local_id": get("local_id"),
            "error_trace": get("error_trace", ""),
        }
    return {
        "name": get("name", ""),
        "source": get("source", "AGENT"),
        "timestamp": get("timestamp", 0),
        "metadata": get("metadata", {}),
    }


def _of_layout(name: str, layout: Layout) -> Format:
    return Format(name, layout.form_of, layout.line_of, is_mover=True)


FORMATS: Final = {
    each.name: each
    for each in (
        _of_layout("ecs", _ECS),
        Format(
            "otel",
            to_otel,
            from_otel,
            decisive=DECISIVE,
            parts=records_of,
        ),
        _of_layout("gcp", _GCP),
        _of_layout("datadog", _DATADOG),
        Format("torch", to_torch, kinds=("event", "rdzv"), is_mover=True),
    )
}
"""The formats that the package has."""
