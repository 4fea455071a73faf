"""
A line in the forms that others expect, and back.

A form is made of what a line says, and of nothing else. What was bound has a
place of its own in each, so that it can neither be lost nor forge anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from .forming import (
    CONTEXT,
    OWN,
    SERVICE,
    SEVERITIES,
    Form,
    Line,
    error_of,
    finished,
    level_of,
    part,
    unowned,
)
from .otel_form import DECISIVE, from_otel, to_otel
from .schema import KEYS


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
            other texts and numbers only, these differ alone, each as it stands
            in the line. Then few forms have to be made by `to`.
    """

    name: str
    to: Callable[[Line], Form]
    back: Callable[[Line], Form] | None = None
    kinds: Collection[str] = KINDS
    is_mover: bool = False
    decisive: Collection[str] | None = None


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
    return FORMATS.get(name) or _provided(name)


def known() -> list[str]:
    """
    Return the names of all formats that can be had here.
    """
    # Takes longer to import than the whole package.
    from importlib.metadata import entry_points  # noqa: PLC0415

    provided = {each.name for each in entry_points(group=ENTRY_POINT_GROUP)}
    return [*FORMATS, *sorted(provided - FORMATS.keys())]


def _provided(name: str) -> Format:
    """
    Return the format of that name that another distribution provides.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415

    for found in entry_points(group=ENTRY_POINT_GROUP, name=name):
        try:
            return _format_of(name, found.load())
        except Exception as error:
            raise UnknownFormat(
                f"format {name!r}, provided by {found.value!r}, cannot be had:"
                f" {type(error).__name__}: {error}"
            ) from error
    raise UnknownFormat(
        f"unknown format {name!r}: expected one of {', '.join(known())}"
    )


def _format_of(name: str, provided: object) -> Format:
    if isinstance(provided, Format):
        return provided._replace(name=name)
    if callable(provided):
        return Format(name, provided)
    raise TypeError(
        f"expected a Format or a callable, got {type(provided).__name__}"
    )


# Nearly every line has these. They are placed one by one, which takes a third
# of the time, and all others by the table of the form.
_USUAL: Final = frozenset(
    (
        "timestamp",
        "time",
        "level",
        "kind",
        "name",
        "message",
        "source",
        "hostname",
        "pid",
        "seq",
        "metadata",
    )
)


class _Places:
    """
    Where the keys of a line stand in a form.

    Args:
        own: The object of what the form has no name for, empty for the form
            itself.

        others: The keys that stand elsewhere, as ``object/key``.

        left_out: The key that says what another one says already.
    """

    def __init__(
        self, own: str, others: Mapping[str, str], left_out: str
    ) -> None:
        self._places = {
            key: tuple(others.get(key, f"{own}/{key}").rsplit("/", 1))
            for key in KEYS
            if key != left_out
        }
        self._own = own

    def add(self, form: Form, line: Line) -> None:
        """
        Add to *form* what *line* says beside the usual.
        """
        context: Form = {}
        for key, value in line.items():
            if key in _USUAL:
                continue
            if key in self._places:
                holder, name = self._places[key]
                (form.setdefault(holder, {}) if holder else form)[name] = value
            else:
                context[key] = value
        if context:
            (form[self._own] if self._own else form)[CONTEXT] = context

    def line_of(self, form: Line) -> Form:
        """
        Return what the line says whose form is *form*.

        Raises:
            ValueError: If something stands where an object was expected.
        """
        line: Form = {}
        for key, (holder_name, name) in self._places.items():
            holder = part(form, holder_name)
            if name in holder:
                line[key] = holder[name]
        context = part(part(form, self._own), CONTEXT)
        return {**line, **unowned(context)}


# Elastic Common Schema.

_ECS: Final = _Places(
    OWN,
    {
        "time": "/@timestamp",
        "level": "/log.level",
        "message": "/message",
        "name": "event/action",
        "seq": "event/sequence",
        "source": "labels/source",
        "hostname": "host/name",
        "pid": "process/pid",
        "logger": "log/logger",
        "error_trace": "error/stack_trace",
    },
    left_out="timestamp",
)


def to_ecs(line: Line) -> Form:
    """
    Return *line* in the Elastic Common Schema.
    """
    event = {
        "kind": "event",
        "provider": OWN,
        "dataset": SERVICE,
        "sequence": line["seq"],
    }
    own = {"kind": line["kind"]}
    form = {
        "@timestamp": line["time"],
        "log.level": line["level"],
        "message": line["message"],
        "ecs.version": "1.6.0",
        "service": {"name": SERVICE},
        "event": event,
        "labels": {"source": line["source"]},
        "host": {"name": line["hostname"]},
        "process": {"pid": line["pid"]},
        OWN: own,
    }
    if "name" in line:
        event["action"] = line["name"]
    if "metadata" in line:
        own["metadata"] = line["metadata"]
    if not _USUAL.issuperset(line):
        _ECS.add(form, line)
        _add_error(form, line, "type")
    return form


def from_ecs(form: Line) -> Form:
    """
    Return the line of what `to_ecs` returned.

    Raises:
        ValueError: If it is none.
    """
    return finished(_ECS.line_of(form))


# Google Cloud Logging.

_LABELS: Final = "logging.googleapis.com/labels"
_LEVELS: Final = {name: level for level, name in SEVERITIES.items()}
_GCP: Final = _Places(
    "",
    {
        "level": "/severity",
        "source": f"{_LABELS}/source",
        "hostname": f"{_LABELS}/hostname",
        "run_id": f"{_LABELS}/run_id",
        "error_trace": "/stack_trace",
    },
    left_out="timestamp",
)


def to_gcp(line: Line) -> Form:
    """
    Return *line* as Google Cloud's logging agents read it.
    """
    form = {
        "severity": SEVERITIES[line["level"]],
        "time": line["time"],
        "message": line["message"],
        _LABELS: {"source": line["source"], "hostname": line["hostname"]},
        "kind": line["kind"],
        "pid": line["pid"],
        "seq": line["seq"],
    }
    if "name" in line:
        form["name"] = line["name"]
    if "metadata" in line:
        form["metadata"] = line["metadata"]
    if not _USUAL.issuperset(line):
        _GCP.add(form, line)
    return form


def from_gcp(form: Line) -> Form:
    """
    Return the line of what `to_gcp` returned.

    Raises:
        ValueError: If it is none.
    """
    line = _GCP.line_of(form)
    line["level"] = level_of(line.get("level"), _LEVELS)
    return finished(line)


# Datadog.

_DATADOG: Final = _Places(
    OWN,
    {
        "timestamp": "/timestamp",
        "level": "/status",
        "message": "/message",
        "hostname": "/hostname",
        "pid": "/pid",
        "name": "evt/name",
        "logger": "logger/name",
        "error_trace": "error/stack",
    },
    left_out="time",
)


def to_datadog(line: Line) -> Form:
    """
    Return *line* with the attributes that Datadog knows.
    """
    own = {
        "kind": line["kind"],
        "source": line["source"],
        "seq": line["seq"],
    }
    form = {
        "timestamp": line["timestamp"],
        "status": line["level"],
        "message": line["message"],
        "service": SERVICE,
        "ddsource": "python",
        "hostname": line["hostname"],
        "pid": line["pid"],
        OWN: own,
    }
    if "name" in line:
        form["evt"] = {"name": line["name"]}
    if "metadata" in line:
        own["metadata"] = line["metadata"]
    if not _USUAL.issuperset(line):
        _DATADOG.add(form, line)
        _add_error(form, line, "kind")
    return form


def from_datadog(form: Line) -> Form:
    """
    Return the line of what `to_datadog` returned.

    Raises:
        ValueError: If it is none.
    """
    return finished(_DATADOG.line_of(form))


# torch's own.


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


def _add_error(form: Form, line: Line, type_name: str) -> None:
    """
    Add type and message of the error to the object that has its traceback.
    """
    said = error_of(line)
    if said:
        error = form.setdefault("error", {})
        for key, text in said.items():
            error[type_name if key == "type" else key] = text


FORMATS: Final = {
    each.name: each
    for each in (
        Format("ecs", to_ecs, from_ecs, is_mover=True),
        Format("otel", to_otel, from_otel, decisive=DECISIVE),
        Format("gcp", to_gcp, from_gcp, is_mover=True),
        Format("datadog", to_datadog, from_datadog, is_mover=True),
        Format("torch", to_torch, kinds=("event", "rdzv"), is_mover=True),
    )
}
"""The formats that the package has."""
