"""
Lines of each kind, with what consumers are known to stumble over.
"""

import json
import logging

import elastic_events as ee


AGENT, WORKER = ee.EventSource.AGENT, ee.EventSource.WORKER


def record_all(destination):
    """
    Record the usual, then the odd.
    """
    _record_usual(destination)
    _record_odd(destination)


def _record_usual(destination):
    agent = ee.get_logger(destination, name="launcher").bind(run_id="job-1")
    agent.record(ee.Event("agent.start", AGENT, metadata={"nodes": 2}))
    agent.record(ee.Event("agent.bare", AGENT))
    agent.record(
        ee.RdzvEvent(
            *("rendezvous.py:join", "job-1", "joined", "node1", 4711),
            node_state=ee.NodeState.RUNNING,
            rank=0,
            local_id=0,
            master_endpoint="node1:29500",
        )
    )
    worker = agent.bind(rank=3, local_rank=1, restart=2)
    worker.record(
        ee.Event("train.step", WORKER, metadata={"step": 7, "loss": 0.25})
    )
    worker.warning("node %s is slow", "node7", seconds=12.5, to=[1, 2])
    agent.record(
        ee.Event(
            "torchelastic.worker.status.FAILED",
            WORKER,
            metadata=_failure(),
        )
    )


def _failure():
    error = {
        "message": {
            "message": "ValueError: bad batch",
            "extraInfo": {"py_callstack": "Traceback", "timestamp": "17"},
        }
    }
    return {
        "run_id": "job-1",
        "global_rank": 3,
        "state": "FAILED",
        "total_run_time": 4,
        "raw_error": json.dumps(error),
        "metadata": json.dumps({"local_rank": [1], "exit_code": [1]}),
        "worker_id": "4712",
    }


def _record_odd(destination):
    log = ee.get_logger(destination)
    for name, metadata in _ODD_METADATA.items():
        log.record(ee.Event(f"odd.{name}", WORKER, metadata=metadata))
    bound = {
        "tenant": "acme",
        "my.key": {"a": [1, None]},
        "two words": True,
        "level": "forged",
        "é🔥": [],
        "A": 1,
        "a": 2,
    }
    ee.get_logger(destination, name="odd.bound").bind(**bound).info("bound")
    _log_with_extra(ee.EventHandler(destination))
    ee.get_logger(destination, name="odd.nul").info("before\0after")
    try:
        raise ValueError("x" * 70_000 + _EMOJI)
    except ValueError:
        ee.get_logger(destination, name="odd.trace").exception("failed")
    # Above 1 MiB: a line of that size.
    ee.get_logger(destination, name="odd.cut").info("cut", text="y" * 2**21)


def _log_with_extra(handler):
    record = logging.LogRecord(
        "odd.message",
        logging.INFO,
        *(__file__, 1, f"a\nb\t{_SEPARATORS}\x1b[31m{_EMOJI}", (), None),
    )
    record.extra = {"a": [1]}
    handler.handle(record)


_SEPARATORS = "a\u2028b\u2029c\u0085d"
_EMOJI = "\N{FIRE}\N{FAMILY}\u200d"
_ODD_METADATA = {
    "integers": {
        "largest": 2**63 - 1,
        "smallest": -(2**63) + 1,
        "exact": 2**53 + 1,
        "text": 2**70,
    },
    "unsigned": {"unsigned": 2**64 - 1},
    "negative": {"negative": -(2**63)},
    "floats": {
        "precise": 0.1 + 0.2,
        "large": 1.5e300,
        "small": 5e-324,
        "whole": 12.0,
        "nan": float("nan"),
        "infinity": -float("inf"),
    },
    "texts": {
        "separators": _SEPARATORS,
        "emoji": _EMOJI,
        "controls": "a\tb\x1b[0m\x7f\r\n",
        "quotes": "a/b\\c\"d'e%s${x}",
        "number": "0123",
        "time": "2024-01-01T00:00:00Z",
        "empty": "",
        "json": '{"a":[1]}',
        "surrogate": "\udc80",
    },
    "nul in a text": {"nul": "before\0after"},
    "nul in a key": {"before\0after": 1},
    "keys": {
        "a.b": {"c.d": 1},
        "two words": 1,
        "": "no name",
        "$x!y": 1,
        "@timestamp": 1,
        "quote\"'": 1,
        "é\u2028": 1,
    },
    "case": {"A": 1, "a": 2},
    "nested": {
        "deep": {"a": {"b": {"c": [1, [2, [3, {"d": []}]]]}}},
        "lists": [[1, 2], [], [["x", None]]],
        "empty": {},
        "null": None,
        "yes": True,
        "no": False,
    },
    "as deep as rsyslog parses": {"x": json.loads("[" * 30 + "]" * 30)},
    "deeper": {"x": json.loads("[" * 31 + "]" * 31)},
    "many": {f"key{number}": number for number in range(500)},
    "names of ours": {"timestamp": "x", "metadata": {"metadata": 1}, "msg": 2},
}
