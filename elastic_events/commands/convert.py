"""
Convert records to another format, or back.

Example: elastic-events convert -o ecs /logs/*.jsonl
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any, Final

from .. import formats
from ..encoding import encode
from ..formats import Format
from ..forming import time_of
from ..reading.records import Finding, Record
from ..reading.rules import problems
from ..reading.sources import expand, read
from ..schema import KEYS, is_right
from . import inputs, output
from .inputs import Input
from .output import Print
from .statuses import UsageError


_NO_FORMATS: Final = ("json", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    inputs.add_arguments(parser)
    parser.usage = "%(prog)s -o FORMAT [OPTION ...] FILE [FILE ...]"
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FORMAT",
        help=f"{', '.join(formats.FORMATS)}, or one that is installed; csv: a"
        " table, with a column for each key of a line, and what was bound in"
        " the last; json: our own lines",
    )
    group.add_argument(
        "-O",
        "--output-file",
        type=Path,
        metavar="FILE",
        help="write there, in place of what it holds (default: standard"
        " output)",
    )
    group.add_argument(
        "--fields",
        type=_fields,
        default=(),
        metavar="KEYS",
        help="only these, for csv, e.g. rank,worker.exit_code",
    )
    group.add_argument(
        "--from",
        dest="origin",
        metavar="FORMAT",
        help="the lines were written in this format (default: our own)",
    )


def run(options: argparse.Namespace) -> int:
    """
    Print the records that the options want in another format.

    Returns:
        The exit status.
    """
    target = _target(options)
    read_from = _input(options)
    with ExitStack() as stack:
        if options.output_file is not None:
            _refuse_input(options.output_file, options.files)
            file = options.output_file.open("w", encoding="utf-8")
            stack.enter_context(redirect_stdout(stack.enter_context(file)))
        printer = _printer(options, target, read_from)
        is_live = read_from.is_live
        for record in read_from.records():
            printer(record)
            if is_live:
                sys.stdout.flush()
        sys.stdout.flush()
    return read_from.finish()


class _FormattedInput(Input):
    """
    The records of files that were written in another format.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        back: Callable[[Any], Any],
        parts: Callable[[Any], Iterable[Any]],
    ) -> None:
        super().__init__(options, fields=options.fields)
        self._back = back
        self._parts = parts

    def records(self) -> Iterator[Record]:
        """
        Yield the records, file after file.
        """
        # What the filters look for in the bytes is not there.
        records = read(self._files, self.report, max_line=self._longest)
        return self._wanted(self._converted(self._watched(records)))

    def _converted(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            try:
                for form in self._parts(record.said):
                    yield from self._line(record, form)
            except Exception as error:
                self.report(_finding(record, error))

    def _line(self, record: Record, form: Any) -> Iterator[Record]:
        """
        Yield the one line of *form*, or nothing if it cannot be had.
        """
        try:
            said = self._back(form)
            _check(said)
            raw = encode(said)[:-1]
        except Exception as error:
            self.report(_finding(record, error))
        else:
            yield record._replace(raw=raw, said=said)


def _target(options: argparse.Namespace) -> Format | None:
    """
    Return the format of the output, `None` for what is no format.
    """
    if options.fields and options.output != "csv":
        raise UsageError("--fields needs -o csv")
    if options.output in _NO_FORMATS:
        return None
    return _format(options.output, ("csv", "json"))


def _format(name: str, others: Iterable[str] = ()) -> Format:
    try:
        return formats.find(name)
    except formats.UnknownFormat as error:
        more = ", ".join(others)
        raise UsageError(f"{error}{more and ', '}{more}") from error


def _input(options: argparse.Namespace) -> Input:
    if options.origin is None or options.origin == "json":
        return Input(options, fields=options.fields)
    origin = _format(options.origin)
    if origin.back is None:
        invertible = [
            each.name for each in formats.FORMATS.values() if each.back
        ]
        raise UsageError(
            f"there is no way back from {origin.name}: expected one of"
            f" {', '.join(invertible)}"
        )
    return _FormattedInput(options, origin.back, origin.parts)


def _printer(
    options: argparse.Namespace, target: Format | None, read_from: Input
) -> Print:
    if target is None:
        return output.printer(options, options.output)
    to, kinds = target.to, target.kinds
    write = sys.stdout.buffer.write

    def print_converted(record: Record) -> None:
        said = record.said
        try:
            _check(said, target.name)
            if said["kind"] not in kinds:
                return
            line = encode(_object(to(said)))
        except Exception as error:
            # What is read, and the format, may be anybody's.
            read_from.report(_finding(record, error))
        else:
            write(line)

    return print_converted


def _object(made: Any) -> dict[str, Any]:
    if not isinstance(made, dict):
        raise TypeError(f"expected a dict, got {type(made).__name__}")
    return made


def _check(said: dict[str, Any], name: str = "") -> None:
    """
    Raise `ValueError` if *said* is not what a line can say.
    """
    kind = said.get("kind")
    if not isinstance(kind, str) or kind not in formats.KINDS:
        raise ValueError("it is no line of ours, nor of torch")
    # torch's own lines lack most of it.
    found = problems(said, is_whole=name != "torch")
    if found:
        raise ValueError(found[0])
    for key in KEYS:
        if key in said and not is_right(key, said[key], kind):
            raise ValueError(f"its {key} cannot be {said[key]!r:.80}")
    # A form has one of the two.
    if "time" in said and said["time"] != time_of(said["timestamp"]):
        raise ValueError("time and timestamp are not the same moment")


def _finding(record: Record, error: Exception) -> Finding:
    what = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        what = f"it has no {error}"
    return Finding(record.file, record.number, f"not converted: {what}")


def _refuse_input(file: Path, files: list[str]) -> None:
    """
    Raise `UsageError` if *file* is to be read, too: it would be emptied.
    """
    if file.exists() and file.is_file():
        for each in expand(files):
            if os.path.exists(each) and file.samefile(each):  # noqa: PTH110
                raise UsageError(
                    f"{file} is read, and cannot be written to: give -O"
                    " another name"
                )


def _fields(text: str) -> tuple[str, ...]:
    fields = tuple(each.strip() for each in text.split(","))
    if not all(fields):
        raise argparse.ArgumentTypeError(
            f"expected keys with commas between, got {text!r}"
        )
    return fields
