"""
What reading costs, beside jq.

    python benchmarks/reading.py [--megabytes N] [--rounds N] [--json FILE]
                                 [--at-least SHARE]

A file of so many megabytes is recorded by the package: steps of workers of a
hundred runs, and the agents of one job that restarts. Every figure is the
median of the ratios of paired rounds, each process started anew; the output
of both is compared first. With ``--at-least`` the exit status is 1 where a
ratio is below that share of what is promised.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import elastic_events as ee


RUNS: Final = 100
WANTED: Final = "run-7"
OURS: Final = (sys.executable, "-m", "elastic_events")


class Comparison(NamedTuple):
    """
    A command of ours, jq's, and how much quicker ours is to be.
    """

    name: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    promised: float
    is_same: bool


def record(file: Path, size: int) -> None:
    """
    Record lines until *file* has *size* bytes.
    """
    log = ee.get_logger(f"file:{file}")
    logs = [
        log.bind(run_id=f"run-{run}", rank=run % 8, user="jo", job=run)
        for run in range(RUNS)
    ]
    step = 0
    while not file.exists() or file.stat().st_size < size:
        for each in logs * 20:
            step += 1
            each.record(
                ee.Event(
                    "train.step",
                    ee.EventSource.WORKER,
                    metadata={
                        "step": step,
                        "loss": 1 / step,
                        "lr": 1e-4,
                        "tokens": 123_456,
                    },
                )
            )


COMPARISONS: Final = (
    Comparison(
        "show --run-id, one line of a hundred / jq select",
        ("show", "-o", "json", "--run-id", WANTED),
        ("-c", f'select(.run_id=="{WANTED}")'),
        promised=5,
        is_same=True,
    ),
    Comparison(
        "explain / jq -c .",
        ("explain", "-o", "json"),
        ("-c", "."),
        promised=4,
        is_same=False,
    ),
    Comparison(
        "stats / jq -c .",
        ("stats", "-o", "json"),
        ("-c", "."),
        promised=4,
        is_same=False,
    ),
)


def run(command: tuple[str, ...], output: Path) -> tuple[float, float]:
    """
    Return the seconds that *command* takes, and its peak memory in MiB.
    """
    with output.open("wb") as out:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = _wait(process)
        seconds = time.perf_counter() - began
    if status > 1 << 8 and "explain" not in command:
        raise RuntimeError(f"{command} ended with status {status}")
    return seconds, usage.ru_maxrss / 1024


def _wait(
    process: subprocess.Popen[bytes],
) -> tuple[int, int, resource.struct_rusage]:
    import os

    return os.wait4(process.pid, 0)


def compared(
    comparison: Comparison, file: Path, folder: Path, rounds: int
) -> tuple[float, float]:
    """
    Return how many times as fast ours is, and its peak memory in MiB.
    """
    ours = (*OURS, *comparison.ours, str(file))
    theirs = ("jq", *comparison.theirs, str(file))
    ratios, memory = [], 0.0
    for _ in range(rounds):
        jq, _ = run(theirs, folder / "theirs")
        mine, peak = run(ours, folder / "ours")
        ratios.append(jq / mine)
        memory = max(memory, peak)
    if comparison.is_same:
        _check_same(folder / "ours", folder / "theirs")
    return statistics.median(ratios), memory


def _check_same(ours: Path, theirs: Path) -> None:
    def values(file: Path) -> Iterator[object]:
        with file.open("rb") as lines:
            yield from map(json.loads, lines)

    for mine, other in zip(values(ours), values(theirs), strict=True):
        if mine != other:
            raise RuntimeError(f"{mine} is not {other}")


def main() -> int:
    """
    Measure, and print the table.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--at-least", type=float, metavar="SHARE", default=0)
    options = parser.parse_args()
    figures: dict[str, float] = {}
    is_slow = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.jsonl", folder / "large.jsonl"
        record(large, options.megabytes * 1_000_000)
        record(small, options.megabytes * 10_000)
        for each in COMPARISONS:
            ratio, memory = compared(each, large, folder, options.rounds)
            _, least = run((*OURS, *each.ours, str(small)), folder / "ours")
            figures[each.name] = ratio
            figures[f"{each.name}, MiB more than for 1 %"] = memory - least
            print(f"{ratio:12.2f} x   {each.name}")
            print(f"{memory - least:12.1f} MiB more than for a hundredth")
            is_slow |= ratio < each.promised * options.at_least
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return int(is_slow)


if __name__ == "__main__":
    raise SystemExit(main())
