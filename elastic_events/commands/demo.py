"""
Run a small elastic job on this machine and explain what it recorded.

Two agents with two workers each; one worker fails, all start again.

Example: elastic-events demo
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import redirect_stdout
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
        help="pretty: a row each, then the story; json: the lines as they are,"
        " the story on standard error (default: pretty in a terminal, else"
        " json)",
    )


def run(options: argparse.Namespace) -> int:
    """
    Run the job, then print its lines and its story.

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
        sys.stdout.flush()
        # Beside lines for machines the story is for whoever looks on.
        aside = sys.stdout if how == "pretty" else sys.stderr
        with redirect_stdout(aside):
            aside.write("\n")
            _run(explain, str(file))
    finally:
        tell("")
        tell(f"The record is in {file}")
    return Status.FINE if has_succeeded else Status.FINDINGS


def _run(command: ModuleType, *arguments: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args(arguments))
