"""
A worker: a training loop that records its steps, and why it fails.

    ELASTIC_EVENTS_DESTINATION=stdout python worker.py

torchrun, or agent.py, starts one for each rank.
"""

from __future__ import annotations

import argparse
import os
import time

import structlog

import elastic_events as ee


# An exception that leaves it is recorded, with its traceback.
@ee.record_failures()
def main() -> None:
    """
    Train for some epochs.
    """
    options = _options()
    for epoch in range(options.epochs):
        # What is recorded in this epoch, here or in a library, says so.
        with structlog.contextvars.bound_contextvars(epoch=epoch):
            for step in range(options.steps):
                loss = _train(options, step)
                event = ee.Event(
                    "train.step",
                    ee.EventSource.WORKER,
                    metadata={"step": step, "loss": loss},
                )
                ee.record(event)


def _train(options: argparse.Namespace, step: int) -> float:
    """
    Stand in for a step of real training, which fails on demand.
    """
    rank = int(os.environ.get("RANK", "0"))
    restart = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    time.sleep(options.seconds)
    if rank == options.fail_rank and step == 1 and restart < options.failures:
        raise FloatingPointError("loss is not finite")
    return round(1 / (1 + step + rank), 4)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train, or fail to.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5, help="of each epoch")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="of each step"
    )
    parser.add_argument("--fail-rank", type=int, help="the rank that fails")
    parser.add_argument(
        "--failures", type=int, default=1, help="how many attempts fail"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
