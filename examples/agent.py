"""
An agent of one's own: start workers, watch them, start them all again once.

    python agent.py worker.py --fail-rank 1
    elastic-events explain events.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import uuid

import structlog

import elastic_events as ee


# Signals to the agent. It looks at them when it can stop what it has started.
_received: list[int] = []


class SignalException(Exception):
    """
    The agent was told to stop; ``explain`` knows it by this name.
    """


class Worker:
    """
    A process of the job, and the logger that states its place in it.
    """

    def __init__(
        self,
        job: argparse.Namespace,
        restart: int,
        rank: int,
        log: ee.EventLogger,
    ) -> None:
        place = {
            "TORCHELASTIC_RUN_ID": job.run_id,
            "TORCHELASTIC_RESTART_COUNT": str(restart),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(job.workers),
        }
        self.process = subprocess.Popen(
            [sys.executable, *job.command],
            env={**os.environ, **place},
            # ^C is for the agent, which stops its workers.
            start_new_session=True,
        )
        self._world_size = job.workers
        self._log = log.bind(rank=rank, local_rank=rank)
        self._record("START")

    def end(self) -> None:
        """
        Wait for the end of the process, which was told to stop, and record it.
        """
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._record("FAILED" if code else "SUCCEEDED", exit_code=code)

    def _record(self, state: str, **more: int) -> None:
        self._log.record(
            ee.Event(
                f"torchelastic.worker.status.{state}",
                ee.EventSource.WORKER,
                metadata={
                    "state": state,
                    "worker_id": str(self.process.pid),
                    # torch nests these as JSON, and `explain` reads them so.
                    "metadata": json.dumps(
                        {"role_world_size": self._world_size, **more}
                    ),
                },
            )
        )


def main() -> int:
    """
    Run the job.

    Returns:
        The exit status.
    """
    job = _job()
    # The workers inherit it, and record to the same file.
    os.environ.setdefault("ELASTIC_EVENTS_DESTINATION", "file:events.jsonl")
    ee.configure()
    log = structlog.get_logger().bind(run_id=job.run_id)
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, lambda received, _: _received.append(received))
    try:
        has_succeeded = _run(job, log)
    except Exception:
        log.record(_state("FAILED", raw_error=traceback.format_exc()))
        raise
    log.record(_state("SUCCEEDED" if has_succeeded else "FAILED"))
    return 0 if has_succeeded else 1


def _run(job: argparse.Namespace, log: ee.EventLogger) -> bool:
    for restart in range(job.restarts + 1):
        attempt_log = log.bind(restart=restart)
        attempt_log.info("starting %s workers", job.workers)
        if _run_attempt(job, restart, attempt_log):
            return True
        attempt_log.warning("a worker failed", left=job.restarts - restart)
    return False


def _run_attempt(
    job: argparse.Namespace, restart: int, log: ee.EventLogger
) -> bool:
    """
    Run the workers until all are done or one has failed; stop the others.
    """
    workers: list[Worker] = []
    try:
        for rank in range(job.workers):
            workers.append(Worker(job, restart, rank, log))
        return _watch([each.process for each in workers])
    finally:
        for each in workers:
            each.process.terminate()
        for each in workers:
            each.end()


def _watch(processes: list[subprocess.Popen[bytes]]) -> bool:
    """
    Wait until all are done or one has failed; tell whether all did well.
    """
    while not _received:
        codes = [each.poll() for each in processes]
        if any(codes) or None not in codes:
            return not any(codes)
        time.sleep(0.05)
    raise SignalException(f"process {os.getpid()} got signal: {_received[0]}")


def _state(state: str, **more: str) -> ee.Event:
    return ee.Event(
        f"torchelastic.worker.status.{state}",
        ee.EventSource.AGENT,
        metadata={"state": state, **more},
    )


def _job() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run workers.")
    parser.add_argument("--run-id", default=f"job-{uuid.uuid4().hex[:8]}")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT …",
        help="the workers' script and its arguments",
    )
    job = parser.parse_args()
    if not job.command:
        parser.error("no script was given: what do the workers run?")
    return job


if __name__ == "__main__":
    sys.exit(main())
