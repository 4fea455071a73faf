"""
How records are printed: as they are, as CSV, or as rows for people.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final, TypeAlias

from ..reading.painting import Paint, plain
from ..reading.records import Record
from ..reading.tables import WHOLE, cells, whole
from .statuses import UsageError
from .telling import complain


Print: TypeAlias = Callable[[Record], None]

_RICH_IS_MISSING: Final = (
    "-o pretty needs rich: pip install 'elastic-events[cli]', or use -o json"
)
_NO_COLORS: Final = (
    "--color always needs rich: pip install 'elastic-events[cli]'"
)


def add_arguments(
    parser: argparse.ArgumentParser,
) -> argparse._ArgumentGroup:
    """
    Add the options that say how records are printed, and return their group.
    """
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        choices=["pretty", "json", "csv"],
        help="pretty: a row each; json: the lines as they are; csv: a table"
        " with all that is said, or --fields (default: pretty in a terminal,"
        " else json)",
    )
    group.add_argument(
        "--fields",
        type=_fields,
        default=(),
        metavar="KEYS",
        help="only these, for csv and pretty, e.g. rank,worker.exit_code",
    )
    group.add_argument(
        "--traces",
        action="store_true",
        help="show tracebacks below their rows",
    )
    add_looks(group)
    return group


def add_choice(
    parser: argparse.ArgumentParser, *, pretty: str, json: str
) -> argparse._ArgumentGroup:
    """
    Add ``-o`` to a command that has one result, and return its group.

    Args:
        parser: The command's.

        pretty: What it prints for people.

        json: What it prints for machines.
    """
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        choices=["pretty", "json"],
        default="pretty",
        help=f"pretty: {pretty} (default); json: {json}",
    )
    return group


def add_looks(group: argparse._ArgumentGroup) -> None:
    """
    Add the options that say how people see it.
    """
    zone = group.add_mutually_exclusive_group()
    zone.add_argument(
        "--utc",
        dest="is_utc",
        action="store_true",
        default=True,
        help="show times in UTC (default)",
    )
    zone.add_argument(
        "--local",
        dest="is_utc",
        action="store_false",
        help="show times in this machine's zone",
    )
    group.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="auto: in a terminal, unless NO_COLOR is set, or where"
        " FORCE_COLOR is",
    )


def chosen(options: argparse.Namespace) -> str:
    """
    Return the output that *options* want, or what suits standard output.
    """
    if options.output:
        return str(options.output)
    if not sys.stdout.isatty():
        return "json"
    if find_spec("rich") is None:
        complain(_RICH_IS_MISSING)
        return "json"
    return "pretty"


def check(how: str) -> None:
    """
    Raise `UsageError` if rich is missing for this output.
    """
    if how == "pretty" and find_spec("rich") is None:
        raise UsageError(_RICH_IS_MISSING)


def printer(options: argparse.Namespace, output: str) -> Print:
    """
    Return what prints a record as *output*.

    Raises:
        UsageError: If the options do not go together, or rich is missing.
    """
    if output == "json":
        if options.fields:
            raise UsageError(
                "--fields needs -o csv or -o pretty: -o json gives the lines"
                " as they are"
            )
        return _json_printer()
    if output == "csv":
        return _csv_printer(options.fields)
    return _pretty_printer(options)


def paint(wish: str) -> Paint:
    """
    Return what gives the output its colours, if it has any under *wish*.

    Raises:
        UsageError: If it is to have some, and rich is missing.
    """
    if not has_colors(wish):
        return plain
    try:
        from ..reading.views import colored  # noqa: PLC0415
    except ImportError:
        if wish == "always":
            raise UsageError(_NO_COLORS) from None
        return plain
    return colored


def has_colors(wish: str) -> bool:
    """
    Tell whether the output is coloured under *wish*: auto, always or never.
    """
    if wish != "auto":
        return wish == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def escape_what_cannot_be_encoded() -> None:
    """
    Let a terminal that is not UTF-8 show what it can.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _json_printer() -> Print:
    write = sys.stdout.buffer.write

    def print_json(record: Record) -> None:
        write(record.raw + b"\n")

    return print_json


def _csv_printer(fields: tuple[str, ...]) -> Print:
    """
    Return a printer of RFC 4180, in UTF-8; see `cells` about formulas.
    """
    row = csv.writer(_Utf8()).writerow
    row(fields or WHOLE)

    def print_csv(record: Record) -> None:
        row(cells(record.said, fields) if fields else whole(record.said))

    return print_csv


def _pretty_printer(options: argparse.Namespace) -> Print:
    check("pretty")
    from ..reading.views import Rows  # noqa: PLC0415

    escape_what_cannot_be_encoded()
    rows = Rows(
        paint(options.color),
        is_utc=options.is_utc,
        fields=options.fields,
        has_traces=options.traces,
    )
    write = sys.stdout.write

    def print_pretty(record: Record) -> None:
        for row in rows.of(record.said):
            write(row + "\n")

    return print_pretty


class _Utf8:
    """
    Standard output for text whose line ends are not translated.
    """

    def write(self, text: str) -> int:
        encoded = text.encode("utf-8", "backslashreplace")
        return sys.stdout.buffer.write(encoded)


def _fields(text: str) -> tuple[str, ...]:
    fields = tuple(each.strip() for each in text.split(","))
    if not all(fields):
        raise argparse.ArgumentTypeError(
            f"expected keys with commas between, got {text!r}"
        )
    return fields
