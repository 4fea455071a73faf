"""
Refuse that recording has become much slower, by paired ratios.

    python benchmarks/guard.py

The bounds leave room for noisy machines: what exceeds them is another design,
not another day. The exit status is 1 if one does.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator

import measure
import workloads
from contenders import (
    floor,
    ours,
    ours_formatted,
    ours_mixed,
    ours_null,
    plain_ours,
    plain_text,
    rendezvous,
    straight_line,
)
from measure import Job
from run import Files

from elastic_events.formats import FORMATS


ROUNDS = 40


def ratios(files: Files) -> Iterator[tuple[str, float, float]]:
    """
    Yield a name, a ratio and the most that it may be.
    """
    small, agent = workloads.small(), workloads.agent()
    record = Job(ours(files.new()), small)
    straight = Job(straight_line(files.new()), small)
    for name, mine, base, bound in (
        ("record, file / the straight line", record, straight, 2.2),
        (
            "record, null / the straight line",
            Job(ours_null(files.new()), small),
            straight,
            0.1,
        ),
        (
            "an agent's event / its floor",
            Job(ours(files.new()), agent),
            Job(floor(files.new()), agent),
            9.0,
        ),
        (
            "logger.info, our handler / plain text",
            Job(plain_ours(files.new()), small),
            Job(plain_text(files.new()), small),
            1.9,
        ),
        (
            "a step of a rendezvous / record, file",
            Job(rendezvous(files.new()), small),
            record,
            3.0,
        ),
    ):
        times = measure.in_turn({"mine": mine, "base": base}, ROUNDS)
        yield name, measure.ratio(times["mine"], times["base"]), bound


def slowest_formats(files: Files) -> Iterator[tuple[str, float, float]]:
    """
    Yield the same of the format that costs most.

    Of lines that are alike, and of what a job records in turn.
    """
    small, mixed = workloads.small(), workloads.mixed()
    for said, base, jobs in (
        (
            "",
            Job(ours(files.new()), small),
            {
                name: Job(ours_formatted(name)(files.new()), small)
                for name in FORMATS
            },
        ),
        (
            ", of a mix",
            Job(ours_mixed("")(files.new()), mixed),
            {
                name: Job(ours_mixed(f"?format={name}")(files.new()), mixed)
                for name in FORMATS
            },
        ),
    ):
        times = measure.in_turn({"": base, **jobs}, ROUNDS)
        costs = {name: measure.ratio(times[name], times[""]) for name in jobs}
        slowest = max(costs, key=costs.__getitem__)
        name = f"record, file, as {slowest}, the slowest format / record, file"
        yield name + said, costs[slowest], 3.0


def main() -> int:
    """
    Measure, and compare with the bounds.
    """
    is_over = False
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder)
        for name, value, bound in (*ratios(files), *slowest_formats(files)):
            print(f"{value:8.3f} x  (at most {bound})  {name}")
            is_over = is_over or value > bound
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
