"""
What recording an event costs, as a ratio to the least that Python can do.

The contenders are measured in turn, round by round; the figure is the median
of the ratios of each round, for machines are noisy.

    python benchmarks/record.py [--rounds N]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter_ns, time_ns

import orjson

import elastic_events as ee


CALLS_PER_ROUND = 2_000
EVENT = ee.Event(
    "train.step",
    ee.EventSource.WORKER,
    metadata={
        "step": 100,
        "loss": 0.25,
        "lr": 1e-4,
        "tokens": 123_456,
        "gpu": 3,
        "grad_norm": 1.25,
    },
)


def straight_line(file: Path) -> Callable[[ee.Event], None]:
    """
    Return one function that writes the same line, without any framework.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    hostname, pid = os.uname().nodename, os.getpid()
    number = itertools.count().__next__
    second, text = -1, ""

    def write(event: ee.Event) -> None:
        nonlocal second, text
        now = time_ns() // 1_000_000
        if now // 1000 != second:
            second = now // 1000
            moment = datetime.fromtimestamp(second, timezone.utc)
            text = moment.strftime("%Y-%m-%dT%H:%M:%S")
        line = {
            "timestamp": now,
            "time": f"{text}.{now % 1000:03}Z",
            "level": "info",
            "kind": "event",
            "name": event.name,
            "message": event.name,
            "source": event.source,
            "hostname": hostname,
            "pid": pid,
            "seq": number(),
            "metadata": event.metadata,
        }
        os.write(
            descriptor, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        )

    return write


def ours(destination: str) -> Callable[[ee.Event], None]:
    """
    Return `record` to *destination*.
    """
    return lambda event: ee.record(event, destination)


def nanoseconds_per_call(function: Callable[[ee.Event], None]) -> float:
    """
    Return what a call of *function* takes.
    """
    begin = perf_counter_ns()
    for _ in range(CALLS_PER_ROUND):
        function(EVENT)
    return (perf_counter_ns() - begin) / CALLS_PER_ROUND


def keys_of_first_line(file: Path) -> list[str]:
    """
    Return what the first line in *file* says, to compare contenders.
    """
    return list(json.loads(file.read_bytes().splitlines()[0]))


def main() -> None:
    """
    Measure and print the table.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, f"{name}.jsonl") for name in ("a", "b")}
        base = straight_line(files["a"])
        contenders = {
            "record() to a file": ours(f"file:{files['b']}"),
            "record() to null": ours("null"),
        }
        took: dict[str, list[float]] = {name: [] for name in contenders}
        bases = []
        for _ in range(rounds):
            bases.append(nanoseconds_per_call(base))
            for name, contender in contenders.items():
                took[name].append(nanoseconds_per_call(contender))
        if keys_of_first_line(files["a"]) != keys_of_first_line(files["b"]):
            raise SystemExit("the contenders do not write the same line")
    print(f"the straight line: {statistics.median(bases):.0f} ns")
    for name, times in took.items():
        ratios = [time / base for time, base in zip(times, bases, strict=True)]
        print(f"{name}: {statistics.median(ratios):.3f} x")


if __name__ == "__main__":
    main()
