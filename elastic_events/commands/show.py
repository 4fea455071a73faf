"""
Show the records of files, by time.

Example: elastic-events show --level error /logs/*.jsonl
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterable, Iterator

from ..reading.records import Record
from . import inputs, output
from .inputs import Input
from .output import Print


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    inputs.add_arguments(parser, keepalives="without them in rows")
    group = output.add_arguments(parser)
    group.add_argument(
        "-n",
        "--lines",
        type=_number,
        metavar="N",
        help="only the last N records",
    )
    group.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="go on with what is written from now on",
    )


def run(options: argparse.Namespace) -> int:
    """
    Print the records that the options want.

    Returns:
        The exit status.
    """
    how = output.chosen(options)
    read = Input(
        options,
        keepalive=how != "pretty",
        shows_as_it_reads=True,
        fields=options.fields,
    )
    printer = output.printer(options, how)
    if options.follow:
        try:
            _print_live(_followed(read, options.lines), printer)
        except KeyboardInterrupt:
            # As a rule following ends so.
            read.finish()
            raise
    else:
        records = read.merged()
        if options.lines is not None:
            records = iter(deque(records, maxlen=options.lines))
        if read.is_live:
            _print_live(records, printer)
        else:
            for record in records:
                printer(record)
    sys.stdout.flush()
    return read.finish()


def _followed(read: Input, last: int | None) -> Iterator[Record | None]:
    """
    Yield what is there, the *last* of it, and then what comes.
    """
    if last is None or read.keeps_all:
        yield from read.follow(last)
        return
    # Which records are the last is known when all were asked.
    records = read.follow()
    there: deque[Record] = deque(maxlen=last)
    for record in records:
        if record is None:
            break
        there.append(record)
    yield from there
    yield None
    yield from records


def _print_live(records: Iterable[Record | None], printer: Print) -> None:
    """
    Print *records* so that each is seen at once.
    """
    for record in records:
        if record is not None:
            printer(record)
        sys.stdout.flush()


def _number(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"expected a number from 0 to 999999999, got {text!r}"
    )
