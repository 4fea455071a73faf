"""
Explain what came of a run: the first cause, its victims, each attempt.

Example: elastic-events explain /logs/*.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from ..reading.accounts import account
from ..reading.explaining import explained, listed
from ..reading.painting import Paint
from ..reading.verdicts import Verdict
from . import inputs, output
from .judging import judged
from .statuses import Status


_STATUSES: Final = {
    "failed": Status.FINDINGS,
    "running": Status.UNDECIDED,
    "unknown": Status.UNDECIDED,
    "succeeded": Status.FINE,
}
"""What counts most comes first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    inputs.add_arguments(parser)
    group = output.add_choice(
        parser, pretty="for people", json="one object a run, a list of several"
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="show the traceback, and the lines on which the verdict rests",
    )
    output.add_looks(group)


def run(options: argparse.Namespace) -> int:
    """
    Print what came of the runs that the files tell of.

    Returns:
        The exit status: 1 if a run failed, else 3 if one is not over or
        nothing is known of its end.
    """
    verdicts, offsets, status = judged(options)
    if options.output == "json":
        lines = iter([_as_json(verdicts, offsets)])
    else:
        output.escape_what_cannot_be_encoded()
        lines = _for_people(verdicts, offsets, options)
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    outcomes = {each.outcome for each in verdicts}
    return status or next(
        _STATUSES[outcome] for outcome in _STATUSES if outcome in outcomes
    )


def _as_json(verdicts: list[Verdict], clocks: Mapping[str, float]) -> str:
    accounts = [account(each, clocks) for each in verdicts]
    return json.dumps(
        accounts[0] if len(accounts) == 1 else accounts, indent=2
    )


def _for_people(
    verdicts: list[Verdict],
    clocks: Mapping[str, float],
    options: argparse.Namespace,
) -> Iterator[str]:
    paint: Paint = output.paint(options.color)
    if len({each.run.run_id for each in verdicts}) == 1:
        for number, each in enumerate(verdicts):
            if number:
                yield ""
            yield from explained(
                each,
                clocks,
                paint=paint,
                is_utc=options.is_utc,
                is_verbose=options.verbose,
            )
        return
    yield from listed(verdicts, paint=paint, is_utc=options.is_utc)
    yield ""
    yield f"{len(verdicts)} runs: --run-id picks one"
