"""
Run a small elastic job on this machine and explain what it recorded.

Two agents with two workers each; one worker fails, all start again.

Example: elastic-events demo
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from . import explain, output, show
from .statuses import Status
from .telling import tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        choices=["pretty", "json"],
        help="pretty: a row each, then the story; json: the lines as they are"
        " (default: pretty in a terminal, else json)",
    )


def run(options: argparse.Namespace) -> int:
    """
    Run the job, then print its lines and, for people, its story.

    Returns:
        The exit status.
    """
    from .. import demo  # noqa: PLC0415

    how = output.chosen(options)
    output.check(how)
    folder = Path(tempfile.mkdtemp(prefix="elastic-events-demo-"))
    file = folder / "events.jsonl"
    try:
        _, has_succeeded = demo.run(folder)
        _run(show, "-o", how, str(file))
        if how == "pretty":
            sys.stdout.write("\n")
            _run(explain, str(file))
        sys.stdout.flush()
    finally:
        tell("")
        tell(f"The record is in {file}")
    return Status.FINE if has_succeeded else Status.FINDINGS


def _run(command: ModuleType, *arguments: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args(arguments))
