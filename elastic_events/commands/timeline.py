"""
Draw runs as a page of HTML: nodes, workers, what failed and when.

Example: elastic-events timeline /logs/*.jsonl
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from pathlib import Path
from typing import Final

from ..reading.timeline.page import MARKER, page
from ..reading.timeline.picture import picture
from ..reading.timeline.scrapbook import Scrapbook
from ..reading.verdicts import Verdict
from . import inputs
from .judging import judged
from .statuses import UsageError
from .telling import tell


_DEFAULT: Final = "timeline.html"
_STDOUT: Final = "-"
_SUFFIXES: Final = (".html", ".htm")
_BEGINNING: Final = 4096
# Whoever opens the page looks for what went wrong.
_ORDER: Final = ("failed", "unknown", "running", "succeeded")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    inputs.add_arguments(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "-O",
        dest="path",
        metavar="OUT.html",
        help="the page, - for standard output (default: timeline.html, which"
        " replaces such a page only)",
    )
    group.add_argument(
        "--open",
        action="store_true",
        help="show it in the browser",
    )


def run(options: argparse.Namespace) -> int:
    """
    Write a page on the runs that the files tell of.

    Returns:
        The exit status: 0 if it was written, whatever came of the runs.
    """
    path = _path(options)
    scrapbook = Scrapbook()
    verdicts, offsets, status = judged(options, scrapbook.see)
    gaps = scrapbook.finish()
    verdicts.sort(key=_place_in_picker)
    pictures = (
        picture(
            each,
            offsets,
            gaps=gaps,
            notes=scrapbook.notes,
            notes_left_out=scrapbook.notes_left_out,
        )
        for each in verdicts
    )
    _write(path, page(pictures, scrapbook.line))
    if options.open and path is not None:
        webbrowser.open(path.resolve().as_uri())
    return status


def _path(options: argparse.Namespace) -> Path | None:
    """
    Return where the page goes, `None` for standard output.

    Raises:
        UsageError: If it would silently replace something else.
    """
    if options.path == _STDOUT:
        if options.open:
            raise UsageError("--open needs a file: name one with -O")
        return None
    if options.path is not None:
        path = Path(options.path)
        if path.suffix not in _SUFFIXES and path.is_file():
            _refuse_to_replace(path)
        return path
    path = Path(_DEFAULT)
    # Anything there that is no such page: also a folder, or a broken link.
    if os.path.lexists(path) and not _is_page(path):
        raise UsageError(
            f"{_DEFAULT} exists and is no timeline: -O {_DEFAULT} replaces"
            " it, and -O with another name leaves it"
        )
    return path


def _refuse_to_replace(path: Path) -> None:
    """
    Raise `UsageError` for what may be a log: ``-O *.jsonl`` names one.
    """
    if not _is_page(path):
        raise UsageError(
            f"{path} exists, and is no timeline: its name would have to end"
            f" in {_SUFFIXES[0]}"
        )


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MARKER.encode() in file.read(_BEGINNING)


def _place_in_picker(verdict: Verdict) -> tuple[int, int]:
    """
    Return the place of a run: what failed before the rest, the latest first.
    """
    return _ORDER.index(verdict.outcome), -(verdict.run.last or 0)


def _write(path: Path | None, html: str) -> None:
    encoded = html.encode("utf-8", "backslashreplace")
    if path is None:
        sys.stdout.buffer.write(encoded)
        sys.stdout.flush()
        return
    try:
        path.write_bytes(encoded)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    tell(f"wrote {path}")
