"""
A small elastic job of real processes, recorded through the public API.

Two agents start two workers each. One worker fails, the agents stop the
others and start all again, and the second attempt succeeds. The agents meet
in a folder; torch is not needed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from . import (
    Event,
    EventMetadataValue,
    EventSource,
    NodeState,
    construct_and_record_rdzv_event,
    record,
    record_failures,
)


NODES: Final = 2
WORKERS_PER_NODE: Final = 2
ATTEMPTS: Final = 2

# Not `__name__`: that is "__main__" in an agent.
_MODULE: Final = "elastic_events.demo"
_FAILING_RANK: Final = 3
_STEPS: Final = 4
# Until its agent stops it, for another worker has failed.
_STEPS_OF_A_VICTIM: Final = 200
_STEP_SECONDS: Final = 0.1
_LONGEST_WAIT: Final = 30.0
_LONGEST_STOP: Final = 5.0
_RUN_ID: Final = "demo"


def run(folder: Path) -> tuple[Path, bool]:
    """
    Run the job, its meeting place and its record in *folder*.

    Returns:
        The file of the record, and whether the job succeeded.
    """
    record_file = folder / "events.jsonl"
    environment = {
        **os.environ,
        "ELASTIC_EVENTS_DESTINATION": f"file:{record_file}",
    }
    agents = [
        subprocess.Popen(
            [sys.executable, "-m", _MODULE, "agent", folder, str(node)],
            env=environment,
            # ^C is for who started the demo: the agents are stopped by it.
            start_new_session=True,
        )
        for node in range(NODES)
    ]
    try:
        # One after the other, so that every agent is waited for.
        codes = [agent.wait(timeout=2 * _LONGEST_WAIT) for agent in agents]
        return record_file, not any(codes)
    except subprocess.TimeoutExpired:
        return record_file, False
    finally:
        for each in agents:
            _stop(each)


def agent(folder: Path, node: int) -> int:
    """
    Be the agent of *node*: meet, start workers, watch them, meet again.
    """
    # An agent that is told to stop takes its workers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for attempt in range(ATTEMPTS):
        _meet(folder, node, attempt)
        if _run_attempt(folder, node, attempt):
            _record_state("SUCCEEDED", attempt)
            return 0
    _record_state("FAILED", attempt)
    return 1


@record_failures()
def worker() -> None:
    """
    Be a worker: take some steps, and fail as the job wants it.
    """
    rank = int(os.environ["RANK"])
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    for step in range(_STEPS if attempt else _STEPS_OF_A_VICTIM):
        time.sleep(_STEP_SECONDS)
        loss = 1.0 / (1 + step + rank)
        record(
            Event(
                "train.step",
                EventSource.WORKER,
                metadata={"step": step, "loss": round(loss, 4)},
            )
        )
        if rank == _FAILING_RANK and attempt == 0 and step == 1:
            raise FloatingPointError(f"loss is not finite at step {step}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """
    End an agent that still runs, and whatever it started.
    """
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_LONGEST_STOP)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _meet(folder: Path, node: int, attempt: int) -> None:
    """
    Wait until all agents have come to this attempt.
    """
    name = f"The node '{os.uname().nodename}_{os.getpid()}_{node}'"
    _record_step(
        f"{name} attempts to join the next round of the rendezvous"
        f" '{_RUN_ID}'."
    )
    (folder / f"joined-{attempt}-{node}").touch()
    deadline = time.monotonic() + _LONGEST_WAIT
    while len([*folder.glob(f"joined-{attempt}-*")]) < NODES:
        if time.monotonic() > deadline:
            _record_step("Nobody else came.", NodeState.FAILED)
            raise TimeoutError(f"round {attempt}: a node is missing")
        time.sleep(0.01)
    _record_step(
        f"{name} has joined round {attempt} of the rendezvous '{_RUN_ID}' as"
        f" rank {node} in a world of size {NODES}.",
        rank=node,
    )


def _run_attempt(folder: Path, node: int, attempt: int) -> bool:
    """
    Run the node's workers; tell whether all of the job's did well.
    """
    failed = folder / f"failed-{attempt}"
    processes = [
        _start_worker(folder, node, each, attempt) for each in _local_ranks()
    ]
    _record_workers("START", node, attempt, processes)
    try:
        while not failed.exists():
            codes = [each.poll() for each in processes]
            if any(codes):
                failed.touch()
            elif None not in codes:
                break
            time.sleep(0.01)
    finally:
        for each in processes:
            each.terminate()
            each.wait(timeout=_LONGEST_WAIT)
    if any(each.returncode for each in processes):
        _record_workers("FAILED", node, attempt, processes)
        return False
    (folder / f"done-{attempt}-{node}").touch()
    while len([*folder.glob(f"done-{attempt}-*")]) < NODES:
        if failed.exists():
            return False
        time.sleep(0.01)
    _record_workers("SUCCEEDED", node, attempt, processes)
    return True


def _local_ranks() -> range:
    return range(WORKERS_PER_NODE)


def _start_worker(
    folder: Path, node: int, local_rank: int, attempt: int
) -> subprocess.Popen[bytes]:
    place = {
        "TORCHELASTIC_RUN_ID": _RUN_ID,
        "RANK": str(node * WORKERS_PER_NODE + local_rank),
        "LOCAL_RANK": str(local_rank),
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
    }
    log = folder / f"worker-{place['RANK']}-{attempt}.stderr"
    with log.open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", _MODULE, "worker"],
            env={**os.environ, **place},
            stderr=stderr,
        )


def _record_step(
    message: str,
    state: NodeState = NodeState.RUNNING,
    rank: int | None = None,
) -> None:
    construct_and_record_rdzv_event(
        run_id=_RUN_ID,
        name="meet",
        message=message,
        node_state=state,
        rank=rank,
    )


def _record_state(state: str, attempt: int) -> None:
    record(
        Event(
            f"torchelastic.worker.status.{state}",
            EventSource.AGENT,
            metadata={
                "run_id": _RUN_ID,
                "state": state,
                "agent_restarts": attempt,
            },
        )
    )


def _record_workers(
    state: str,
    node: int,
    attempt: int,
    processes: list[subprocess.Popen[bytes]],
) -> None:
    """
    Record the state of each worker in the form that torch's agent uses.
    """
    for local_rank, process in enumerate(processes):
        worker_state = state
        if state == "FAILED" and process.returncode == 0:
            worker_state = "SUCCEEDED"
        nested = {
            "local_rank": [local_rank],
            "role_world_size": [NODES * WORKERS_PER_NODE],
            "exit_code": [process.returncode],
            "worker_pid": [process.pid],
        }
        metadata: dict[str, EventMetadataValue] = {
            "run_id": _RUN_ID,
            "global_rank": node * WORKERS_PER_NODE + local_rank,
            "group_rank": node,
            "worker_id": str(process.pid),
            "state": worker_state,
            "metadata": json.dumps(nested),
            "agent_restarts": attempt,
        }
        record(
            Event(
                f"torchelastic.worker.status.{worker_state}",
                EventSource.WORKER,
                metadata=metadata,
            )
        )


if __name__ == "__main__":
    if sys.argv[1] == "agent":
        raise SystemExit(agent(Path(sys.argv[2]), int(sys.argv[3])))
    worker()
