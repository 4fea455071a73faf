"""
Count records: of what there are how many, when, and what failed.

Example: elastic-events stats /logs/*.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from ..reading import wording
from ..reading.escaping import escaped
from ..reading.stats import FIELDS, Statistics
from . import inputs, output
from .inputs import Input


_MOST_ROWS: Final = 20
_WIDEST: Final = 80
_SILENCES: Final = (
    "longest silences, of all hosts together (keep-alives do not count)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    inputs.add_arguments(parser)
    output.add_choice(parser, pretty="tables", json="one object, complete")


def run(options: argparse.Namespace) -> int:
    """
    Count the records that the options want.

    Returns:
        The exit status.
    """
    read = Input(options)
    statistics = Statistics()
    statistics.see_all(read.records())
    counted = statistics.as_dict()
    if options.output == "json":
        sys.stdout.write(json.dumps(counted, indent=2) + "\n")
    else:
        output.escape_what_cannot_be_encoded()
        sys.stdout.writelines(f"{row}\n" for row in _pretty(counted))
    sys.stdout.flush()
    return read.finish()


def _pretty(counted: dict[str, Any]) -> Iterator[str]:
    """
    Yield the rows of what was counted, for people.
    """
    yield from _head(counted)
    for field, column in FIELDS.items():
        rows = [
            (value, str(each["lines"]), _rate(each["per_second"]))
            for value, each in counted[field].items()
        ]
        left_out = counted["left_out"].get(field, 0)
        yield from _table((column, "lines", "per second"), rows, left_out)
    runs = [
        (
            run_id,
            str(each["lines"]),
            str(each["failures"]),
            "-" if each["restarts"] is None else str(each["restarts"]),
        )
        for run_id, each in counted["runs"].items()
    ]
    columns = "run_id", "lines", "failures", "restarts"
    yield from _table(columns, runs, counted["left_out"].get("runs", 0))
    silences = [
        (each["from"], each["to"], _duration(each["seconds"]))
        for each in counted["silences"]
    ]
    yield from _table(("from", "to", "for"), silences, 0, title=_SILENCES)


def _head(counted: dict[str, Any]) -> Iterator[str]:
    rate = _rate(counted["per_second"])
    yield f"{_lines(counted['lines'])}, {_size(counted['bytes'])}"
    if counted["first"] is not None:
        yield (
            f"from {counted['first']} to {counted['last']}:"
            f" {_duration(counted['span'])}, {rate} lines per second"
        )
    if counted["untimed"]:
        yield f"{_lines(counted['untimed'])} without a time"
    failures = counted["failures"]
    yield (
        f"{_lines(failures['lines'])} of failures,"
        f" {wording.counted(failures['workers'], 'event')} of failed workers"
    )
    if counted["dropped"]:
        yield f"{_lines(counted['dropped'])} dropped when written"


def _table(
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    left_out: int,
    *,
    title: str = "",
) -> Iterator[str]:
    """
    Yield the rows of a table, the first column to the left.
    """
    if not rows:
        return
    shown = [
        columns,
        *(
            (escaped(first, _WIDEST), *rest)
            for first, *rest in rows[:_MOST_ROWS]
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    yield ""
    if title:
        yield title
    for first, *rest in shown:
        cells = [first.ljust(widths[0])]
        cells += map(str.rjust, rest, widths[1:])
        yield "  ".join(cells)
    if len(rows) > _MOST_ROWS:
        yield f"… and {len(rows) - _MOST_ROWS} more (all with -o json)"
    if left_out:
        yield f"… and {_lines(left_out)} with others"


def _lines(number: int) -> str:
    return wording.counted(number, "line")


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return "-"
    return f"{per_second:.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds, 3))).removesuffix("000")


def _size(length: int) -> str:
    size = float(length)
    for unit in "bytes", "kB", "MB":
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
