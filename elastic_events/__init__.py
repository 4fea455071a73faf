"""
The events of elastic training jobs, one JSON line each.

A drop-in for ``torch.distributed.elastic.events``, over structlog and orjson:

::

    import elastic_events as events

    event = events.Event(
        name="test_event",
        source=events.EventSource.WORKER,
        metadata={"step": 100, "loss": 0.25},
    )
    events.get_logging_handler(destination="console").info(event)

Importing the package configures nothing, and loads each part at its first
use: an agent that is not asked to record does not wait for structlog.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any


if _TYPE_CHECKING:
    from .api import (
        Event,
        EventMetadataValue,
        EventSource,
        NodeState,
        RdzvEvent,
    )
    from .destinations import UnknownDestination, register_destination
    from .failures import record_failures
    from .handlers import EventHandler, get_logging_handler
    from .logger import EventLogger, configure, get_logger
    from .outlets import health
    from .pipeline import EventFormatter
    from .recording import (
        _get_or_create_logger as _get_or_create_logger,
    )
    from .recording import (
        construct_and_record_rdzv_event,
        record,
        record_rdzv_event,
    )

__all__ = [
    "Event",
    "EventFormatter",
    "EventHandler",
    "EventLogger",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "UnknownDestination",
    "configure",
    "construct_and_record_rdzv_event",
    "get_logger",
    "get_logging_handler",
    "health",
    "record",
    "record_failures",
    "record_rdzv_event",
    "register_destination",
]

_ROOMS = {
    "api": (
        "Event",
        "EventMetadataValue",
        "EventSource",
        "NodeState",
        "RdzvEvent",
    ),
    "destinations": ("UnknownDestination", "register_destination"),
    "failures": ("record_failures",),
    "handlers": ("EventHandler", "get_logging_handler"),
    "logger": ("EventLogger", "configure", "get_logger"),
    "outlets": ("health",),
    "pipeline": ("EventFormatter",),
    "recording": (
        "_get_or_create_logger",
        "construct_and_record_rdzv_event",
        "record",
        "record_rdzv_event",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> _Any:
    if name in _ROOMS:
        return _import_module(f".{name}", __name__)
    if name == "__version__":
        return _import_module("importlib.metadata").version("elastic-events")
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f".{_ROOM_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
