"""
Plain `logging`, configured by a file: messages and events, each one line.

    python plain_logging.py
    elastic-events show log.jsonl steps.jsonl
"""

from __future__ import annotations

import json
import logging.config
from pathlib import Path

import elastic_events as ee


# Made before the configuration is read: without "disable_existing_loggers":
# false they would be silent.
logger = logging.getLogger("trainer")
step_logger = logging.getLogger("trainer.steps")


def main() -> None:
    """
    Log some messages and events.
    """
    file = Path(__file__).with_name("logging.json")
    logging.config.dictConfig(json.loads(file.read_text("utf-8")))
    logger.info("training on %s nodes", 2, extra={"batch_size": 64})
    for step in range(3):
        event = ee.Event(
            "train.step", ee.EventSource.WORKER, metadata={"step": step}
        )
        step_logger.info(event)
    logging.getLogger("urllib3").info("below the level of its logger")
    try:
        Path("missing.pt").read_bytes()
    except OSError:
        logger.exception("no checkpoint", extra={"step": step})


if __name__ == "__main__":
    main()
