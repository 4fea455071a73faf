"""
What is recorded in tests, and what the lines say, without what changes.
"""

import elastic_events as ee
from elastic_events.testing import VOLATILE_KEYS


EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"a": 1})
SAID = {
    "level": "info",
    "kind": "event",
    "name": "n",
    "message": "n",
    "source": "WORKER",
    "metadata": {"a": 1},
}


def log_saying(message, logger, level="info", **more):
    return {
        "level": level,
        "kind": "log",
        "message": message,
        "source": "AGENT",
        "logger": logger,
        **more,
    }


def stable(line):
    return {
        key: value for key, value in line.items() if key not in VOLATILE_KEYS
    }
