"""
How users write it: checked by type checkers, never run.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog

import elastic_events
import elastic_events as ee


event: ee.Event = ee.Event(
    name="n", source=ee.EventSource.WORKER, metadata={"a": 1, "b": None}
)
timestamp: int = event.timestamp
metadata: dict[str, ee.EventMetadataValue] = event.metadata
text: str = event.serialize()
back: ee.Event = ee.Event.deserialize(text.encode())

value: ee.EventMetadataValue = metadata["a"]
kind: ee.EventSource = event.source
name: str = ee.EventSource.AGENT.value

step = ee.RdzvEvent("n", "run", "m", "host", 1, ee.NodeState.RUNNING)
state: ee.NodeState = step.node_state
rank: int | None = step.rank
again: ee.RdzvEvent = ee.RdzvEvent.deserialize(str(step))

ee.record(event)
ee.record(event, destination="console")
ee.record(event, "console")
ee.record_rdzv_event(step)
ee.construct_and_record_rdzv_event(
    run_id="run", message="m", node_state=ee.NodeState.FAILED, rank=0
)

handler: ee.EventHandler = ee.get_logging_handler()
as_torch_has_it: logging.Handler = ee.get_logging_handler("console")
ee.get_logging_handler(destination="console").info(event)
ee.EventHandler("stdout", level="INFO").warning("text %s", 1, step=2)
handler.setFormatter(ee.EventFormatter())


def without_debug(
    _: Any, method_name: str, event_dict: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    if method_name == "debug":
        raise structlog.DropEvent
    return event_dict


log: ee.EventLogger = ee.get_logger(
    "file:x.jsonl",
    level="warning",
    processors=[without_debug, ee.redact()],
    name="mine",
)
log = log.bind(run_id="job").new(a=1).unbind("a").try_unbind("b")
log.record(event)
log.record(step)
log.info("text %s", 1, step=2, exc_info=True)
log.log(logging.INFO, "text")
enabled: bool = log.is_enabled_for(logging.INFO)

ee.configure("console", level=logging.INFO, processors=(without_debug,))

ee.register_destination("mine", "console", processors=[ee.redact(["token"])])
ee.register_destination("bytes", print)
ee.register_destination("handler", logging.StreamHandler())
dropped: dict[str, dict[str, Any]] = ee.health()

is_flushed: bool = ee.flush(timeout=1.5)

try:
    ee.get_logger("nope")
except ee.UnknownDestination as error:
    reason: KeyError = error


processor: structlog.typing.Processor = ee.redact()


@ee.record_failures()
def main(steps: int) -> str:
    return "x" * steps


done: str = main(3)


@ee.record_failures()
async def train() -> int:
    return 1


async def main_of_many() -> int:
    return await train()


with ee.record_failures("console"):
    main(1)

version: str = ee.__version__

# torch's name; torch's own tests use it.
stdlib: logging.Logger = elastic_events._get_or_create_logger("console")  # pyright: ignore[reportPrivateUsage]
