"""
How far a long reading is, on standard error, for who looks on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Final

from ..reading.records import Record


_WORTH_A_BAR: Final = 30_000_000
_STEP: Final = 1_000_000


def is_wanted(paths: Iterable[str]) -> bool:
    """
    Tell whether somebody looks on, and the files of *paths* take a while.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    return _size(paths) > _WORTH_A_BAR and find_spec("rich") is not None


def watched(
    records: Iterable[Record], paths: Iterable[str], *, is_sparse: bool
) -> Iterator[Record]:
    """
    Yield *records*, and show how much of the files they are.

    Args:
        records: From the files of *paths*.

        paths: The files.

        is_sparse: Whether most lines are passed over unseen: then it is only
            shown that something is done, and for how long.
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    total = None if is_sparse else _size(paths)
    with Progress(
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
    ) as bar:
        task = bar.add_task("reading", total=total)
        size = 0
        for record in records:
            size += len(record.raw) + 1
            if size > _STEP:
                bar.advance(task, size)
                size = 0
            yield record


def _size(paths: Iterable[str]) -> int:
    """
    Return the bytes of all files; what has no size counts nothing.
    """
    size = 0
    for path in paths:
        try:
            size += os.stat(path).st_size  # noqa: PTH116
        except (OSError, ValueError):
            continue
    return size
