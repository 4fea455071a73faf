"""
Print the JSON Schema of a line.

Example: elastic-events schema > line.schema.json
"""

from __future__ import annotations

import argparse
import json
import sys

from ..schema import line_schema
from .statuses import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add nothing: the command has no options.
    """


def run(_: argparse.Namespace) -> int:
    """
    Print the schema, as UTF-8 whatever the terminal's encoding.

    Returns:
        The exit status.
    """
    text = json.dumps(line_schema(), indent=2, ensure_ascii=False)
    sys.stdout.buffer.write(text.encode() + b"\n")
    return Status.FINE
