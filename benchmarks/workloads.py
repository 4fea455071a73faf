"""
What is recorded: events as jobs record them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import elastic_events as ee


Events = list[ee.Event]


class Log(NamedTuple):
    """
    A call of a logger's method.
    """

    method: str
    message: str
    values: dict[str, Any]


# Events, those of a rendezvous, and calls of a logger.
Mixed = list[Any]

_COUNT = 500


def small() -> Events:
    """
    Return a worker's events with six numbers.
    """
    return [
        ee.Event(
            "train.step",
            ee.EventSource.WORKER,
            metadata={
                "step": step,
                "loss": 0.25,
                "lr": 1e-4,
                "tokens": 123_456,
                "gpu": 3,
                "grad_norm": 1.25,
            },
        )
        for step in range(_COUNT)
    ]


def agent(state: str = "SUCCEEDED", raw_error: str | None = None) -> Events:
    """
    Return an agent's events as torch makes them, no two the same.
    """
    return [
        ee.Event(
            f"torchelastic.worker.status.{state}",
            ee.EventSource.WORKER,
            metadata={
                "run_id": "job-7",
                "global_rank": 3,
                "group_rank": 0,
                "worker_id": str(pid),
                "role": "default",
                "hostname": "node1.cluster",
                "state": state,
                "total_run_time": 3600,
                "rdzv_backend": "c10d",
                "raw_error": raw_error,
                "metadata": json.dumps(
                    {
                        "group_world_size": 1,
                        "entry_point": "train.py",
                        "local_rank": [3],
                        "role_rank": [3],
                        "role_world_size": [8],
                        "exit_code": [0],
                        "worker_pid": [pid],
                    }
                ),
                "agent_restarts": 0,
                "duration_ms": None,
            },
        )
        for pid in range(1000, 1000 + _COUNT)
    ]


def failed() -> Events:
    """
    Return an agent's events of workers that failed, with their tracebacks.
    """
    trace = "Traceback (most recent call last):\n" + "".join(
        f'  File "/app/train.py", line {line}, in step\n    loss.backward()\n'
        for line in range(20)
    )
    said = {"py_callstack": trace, "timestamp": "1709210096"}
    error = {"message": {"message": "RuntimeError: no", "extraInfo": said}}
    return agent("FAILED", json.dumps(error))


def wide() -> Events:
    """
    Return events with a hundred keys.
    """
    metadata = {f"metric_{number}": number * 0.5 for number in range(100)}
    return [
        ee.Event("eval", ee.EventSource.WORKER, metadata=dict(metadata))
        for _ in range(_COUNT)
    ]


def hostile() -> Events:
    """
    Return small events with one value that JSON does not have.
    """
    events = small()
    for event in events:
        event.metadata["odd"] = {1}  # type: ignore[assignment]
    return events


def mixed() -> Mixed:
    """
    Return what a job records, in turn: no two alike follow each other.
    """
    lines: Mixed = []
    for number, event in enumerate(agent()[: _COUNT // 5]):
        step = ee.Event(
            "train.step",
            ee.EventSource.WORKER,
            metadata={
                "step": number,
                "loss": 0.25,
                "lr": 1e-4,
                "overflow": number % 7 == 0,
                "skipped": number % 5 == 0,
            },
        )
        joined = ee.RdzvEvent(
            "_DistributedRendezvousOpExecutor.run",
            "job-7",
            f"The node 'node1_{number}_0' has joined round 1 of the rendezvous"
            " 'job-7' as rank 0 in a world of size 2.",
            "node1.cluster",
            1000,
            node_state=ee.NodeState.RUNNING,
            master_endpoint="node1:29500",
            rank=number % 8,
            local_id=0,
        )
        saved = Log("info", "saved", {"accuracy": 0.5, "best": None})
        slow = Log("warning", "slow", {"nodes": list(range(number % 8))})
        lines += [step, event, joined, saved, slow]
    return lines
