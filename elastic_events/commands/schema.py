"""
Print the JSON Schema of a line, or what a program needs to read lines.

Example: elastic-events schema > line.schema.json
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import resources
from typing import Final

from ..schema import line_schema
from .statuses import Status


_PACKAGE: Final = __package__.partition(".")[0]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    group = parser.add_argument_group("instead of the schema")
    choice = group.add_mutually_exclusive_group()
    for option, file, text in (
        ("--lnav", "lnav.json", "a format for lnav, which shows log files"),
        ("--duckdb", "duckdb.sql", "a view of the lines for duckdb, in SQL"),
    ):
        choice.add_argument(
            option, dest="file", action="store_const", const=file, help=text
        )


def run(options: argparse.Namespace) -> int:
    """
    Print what was asked for, as UTF-8 whatever the terminal's encoding.

    Returns:
        The exit status.
    """
    sys.stdout.buffer.write(_shipped(options.file) or _schema())
    return Status.FINE


def _shipped(file: str | None) -> bytes:
    if file is None:
        return b""
    return resources.files(_PACKAGE).joinpath("consumers", file).read_bytes()


def _schema() -> bytes:
    text = json.dumps(line_schema(), indent=2, ensure_ascii=False)
    return text.encode() + b"\n"
