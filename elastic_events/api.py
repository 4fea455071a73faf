"""
What an event is: the types of ``torch.distributed.elastic.events``.

Names, fields, defaults and enum members are torch's, and so are the bytes of
``serialize()`` and ``str()``. ``deserialize()`` takes more than torch's and
refuses clearly.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar


if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


EventMetadataValue: TypeAlias = str | int | float | bool | None
"""What torch documents as a metadata value. Neither it nor we enforce it."""

_Enum = TypeVar("_Enum", bound=Enum)


class EventSource(str, Enum):
    """
    Who produced an event. Same as torch's.
    """

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):
    """
    The state of a node in a rendezvous. Same as torch's.
    """

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass
class Event:
    """
    Something that happened while an elastic job ran.

    Args:
        name: What happened, e.g. ``"torchelastic.worker.status.START"``.

        source: Who says so.

        timestamp:
            When, in milliseconds since the epoch. Zero means the moment at
            which the event is recorded.

        metadata:
            Whatever else is known. What JSON lacks does not stop an event
            from being recorded.
    """

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.serialize()

    @staticmethod
    def deserialize(data: str | bytes | Event) -> Event:
        """
        Make an event from its JSON, or from a recorded line.

        Unlike torch's it also takes bytes, and ignores keys that an event
        does not have, so that every line of kind ``event`` can be given.

        Args:
            data: JSON text, or an event, which is returned as it is.

        Raises:
            TypeError: If *data* is neither text nor an event.

            ValueError: If the text is not the JSON of an event.
        """
        if isinstance(data, Event):
            return data
        return _event_of(_loads(data, Event))

    def serialize(self) -> str:
        """
        Return the event as JSON, byte for byte what torch's returns.

        Raises:
            TypeError: If the metadata holds what `json` refuses.
        """
        return json.dumps(asdict(self))


@dataclass
class RdzvEvent:
    """
    A step of a rendezvous.

    Args:
        name: ``file.py:function``, where the step was taken.

        run_id: The id of the job.

        message: The step in words.

        hostname: The node's host.

        pid: The process id of the node's agent.

        node_state: The node's state in the rendezvous.

        master_endpoint: Where the rendezvous store listens, if known.

        rank: The node's rank, if known.

        local_id: The node's number within its process, if known.

        error_trace: The traceback of a failed step, else empty.
    """

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    def __str__(self) -> str:
        return self.serialize()

    @staticmethod
    def deserialize(data: str | bytes | RdzvEvent) -> RdzvEvent:
        """
        Make a rendezvous event from its JSON, or from a recorded line.

        Unlike torch's it also takes bytes, and ignores keys that a
        rendezvous event does not have.

        Args:
            data: JSON text, or an event, which is returned as it is.

        Raises:
            TypeError: If *data* is neither text nor a rendezvous event.

            ValueError: If the text is not the JSON of a rendezvous event.
        """
        if isinstance(data, RdzvEvent):
            return data
        return _rdzv_event_of(_loads(data, RdzvEvent))

    def serialize(self) -> str:
        """
        Return the event as JSON, byte for byte what torch's returns.

        Raises:
            TypeError: If a field holds what `json` refuses.
        """
        return json.dumps(asdict(self))


def is_event(value: object) -> bool:
    """
    Tell whether *value* is an `Event`, ours or a look-alike such as torch's.
    """
    return isinstance(value, Event) or _has_fields_of(Event, value)


def is_rdzv_event(value: object) -> bool:
    """
    Tell whether *value* is an `RdzvEvent`, ours or a look-alike.
    """
    return isinstance(value, RdzvEvent) or _has_fields_of(RdzvEvent, value)


def event_from_json(text: str) -> Event | RdzvEvent:
    """
    Make the event that *text*, the JSON of either kind, describes.

    Raises:
        ValueError: If it describes neither.
    """
    given = _loads(text, Event)
    return _rdzv_event_of(given) if "node_state" in given else _event_of(given)


def _has_fields_of(kind: type, value: object) -> bool:
    fields = getattr(type(value), "__dataclass_fields__", None)
    if not isinstance(fields, dict):
        return False
    return _field_names(kind) <= fields.keys()


def _field_names(kind: type) -> AbstractSet[str]:
    names: dict[str, Any] = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return names.keys()


def _event_of(given: dict[str, Any]) -> Event:
    source = _member(EventSource, given, "source")
    return Event(**_known(Event, given, source=source))


def _rdzv_event_of(given: dict[str, Any]) -> RdzvEvent:
    # A line leaves out what was empty.
    blank = {"run_id": "", "message": "", "hostname": "", "pid": 0}
    state = _member(NodeState, given, "node_state")
    return RdzvEvent(**_known(RdzvEvent, blank | given, node_state=state))


def _known(
    kind: type, given: dict[str, Any], **members: Enum
) -> dict[str, Any]:
    if "name" not in given:
        raise ValueError("not the JSON of an event: it has no 'name'")
    known = {key: given[key] for key in _field_names(kind) & given.keys()}
    return known | members


def _member(kind: type[_Enum], given: dict[str, Any], key: str) -> _Enum:
    try:
        return kind[given[key]]
    except (KeyError, TypeError):
        allowed = ", ".join(kind.__members__)
        raise ValueError(
            f"not the JSON of an event: {key!r} is {given.get(key)!r},"
            f" expected one of {allowed}"
        ) from None


def _loads(data: object, kind: type) -> dict[str, Any]:
    if not isinstance(data, (str, bytes, bytearray)):
        raise TypeError(
            f"{kind.__name__}.deserialize() takes JSON as str or bytes, or"
            f" an {kind.__name__}; it was given {type(data).__name__}"
        )
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not the JSON of an event: {error}") from error
    if not isinstance(given, dict):
        raise ValueError(  # noqa: TRY004
            "not the JSON of an event: expected an object, got"
            f" {type(given).__name__}"
        )
    return given
