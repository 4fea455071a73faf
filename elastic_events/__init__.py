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

Beside torch's names there are

- `get_logger` and `configure`, for structlog's bound loggers;
- `EventHandler` and `EventFormatter`, for `logging`;
- `record_failures`, for what ends a worker, and `redact`, for secrets;
- `register_destination`, `health` and `flush`.

A destination is ``null``, ``console``, ``stdout``, ``file:PATH``,
``queue:DESTINATION``, ``otlp:URL``, or a name that was registered; options
follow a ``?``. ``null`` is where ``ELASTIC_EVENTS_DESTINATION`` says, if it is
set. Times are in milliseconds since the epoch, timeouts in seconds, sizes in
bytes.

Importing the package configures nothing. (PYTEST_DONT_REWRITE: pytest would
warn where it is imported already.)
"""

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent
from .backlog import flush
from .destinations import register_destination
from .failures import record_failures
from .handlers import EventHandler, get_logging_handler
from .logger import EventLogger, configure, get_logger
from .outlets import health
from .pipeline import EventFormatter
from .recording import (
    _get_or_create_logger as _get_or_create_logger,
    construct_and_record_rdzv_event,
    record,
    record_rdzv_event,
)
from .redaction import redact
from .schemes import UnknownDestination


__version__ = "0.1.0"

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
    "flush",
    "get_logger",
    "get_logging_handler",
    "health",
    "record",
    "record_failures",
    "record_rdzv_event",
    "redact",
    "register_destination",
]
