"""
From the files to what came of each run that they tell of.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..reading.causes import Verdict, verdict
from ..reading.clocks import ClockWatch
from ..reading.records import Record
from ..reading.story import Story
from .inputs import Input
from .statuses import UsageError


class Judged(NamedTuple):
    """
    The runs, and how well they could be read.
    """

    verdicts: list[Verdict]
    """At least one."""
    offsets: Mapping[str, float]
    """Hosts whose clocks are off, and by how many seconds."""
    status: int
    """The exit status of reading."""


def judged(
    options: argparse.Namespace, *watchers: Callable[[Record], None]
) -> Judged:
    """
    Read the files that *options* name, and judge the runs that they pick.

    Args:
        options: What `inputs.add_arguments` added.

        *watchers: Each is given every record.

    Raises:
        UsageError: If there is no run, or none with the wanted id.
    """
    # Not every line of a run names it: an agent's logs do not.
    run_id, options.run_id = options.run_id, None
    read = Input(options)
    story, clocks = Story(), ClockWatch()
    for record in read.records():
        story.see(record)
        clocks.see(record)
        for see in watchers:
            see(record)
    status = read.finish()
    offsets = clocks.offsets()
    verdicts = [
        verdict(each, offsets)
        for each in story.runs()
        if run_id is None or each.run_id == run_id
    ]
    if not verdicts:
        raise UsageError(_nothing(run_id))
    return Judged(verdicts, offsets, status)


def _nothing(run_id: str | None) -> str:
    if run_id:
        return f"no such run: {run_id}; without --run-id all are taken"
    return (
        "no run is told of: expected lines that name a run_id, as agents and"
        " workers under torchrun record them"
    )
