"""
From the files to what came of each run that they tell of.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..reading.causes import verdict
from ..reading.clocks import ClockWatch
from ..reading.records import Record
from ..reading.story import Story
from ..reading.verdicts import Verdict
from .inputs import Input
from .statuses import Status, UsageError


_MOST_TOLD: Final = 10


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
    story, clocks = Story(is_whole=read.keeps_all), ClockWatch()
    record = None
    for record in read.records():
        story.see(record)
        clocks.see(record)
        for see in watchers:
            see(record)
    status = read.finish()
    if record is None and status == Status.USAGE:
        # Why nothing was read is told already.
        raise SystemExit(status)
    offsets, runs = clocks.offsets(), story.runs()
    wanted = [each for each in runs if run_id in (None, each.run_id)]
    if not wanted:
        found = [each.run_id for each in runs]
        raise UsageError(_nothing(run_id, found, is_whole=read.keeps_all))
    verdicts = [verdict(each, offsets) for each in wanted]
    return Judged(verdicts, offsets, status)


def _nothing(run_id: str | None, found: list[str], *, is_whole: bool) -> str:
    """
    Return why there is no run to judge.

    Args:
        run_id: The one that was asked for.

        found: Those that there are.

        is_whole: Whether no filter left out any record.
    """
    if found:
        ids = dict.fromkeys(found[:_MOST_TOLD])
        more = ", …" if len(found) > _MOST_TOLD else ""
        return f"no such run: {run_id}; expected one of {', '.join(ids)}{more}"
    where = "" if is_whole else " by what the filters leave"
    return (
        f"no run is told of{where}: expected lines that name a run_id, as"
        " agents and workers under torchrun record them"
    )
