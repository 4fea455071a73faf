"""
The command line, ``elastic-events``.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from enum import IntEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from .reading.lines import BadLineError, Line, parse, read_lines


_RICH_IS_MISSING: Final = (
    "-o pretty needs rich: pip install 'elastic-events[cli]', or use -o json"
)


class Status(IntEnum):
    """
    The exit statuses.
    """

    FINE = 0
    FINDINGS = 1
    USAGE = 2
    INTERRUPTED = 130


class UsageError(Exception):
    """
    The command cannot do what was asked; its text says why.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command that *arguments* name, by default the process's own.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (UsageError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return _reader_left()
        print(f"elastic-events: {error}", file=sys.stderr)
        return Status.USAGE
    except KeyboardInterrupt:
        return Status.INTERRUPTED


def show(options: argparse.Namespace) -> int:
    """
    Show the lines of files.

    Example: elastic-events show /logs/*.jsonl
    """
    return _show(options.files, options.output)


def record(options: argparse.Namespace) -> int:
    """
    Record one event, e.g. from a shell script.

    Example: elastic-events record prolog --source AGENT --meta node=$HOSTNAME
    """
    from . import (  # noqa: PLC0415
        Event,
        EventSource,
        UnknownDestination,
        flush,
        get_logger,
        health,
    )

    if not options.to and not os.environ.get("ELASTIC_EVENTS_DESTINATION"):
        raise UsageError(
            "the event would go nowhere: give --to DESTINATION or set"
            " ELASTIC_EVENTS_DESTINATION"
        )
    try:
        log = get_logger(options.to or "null")
    except UnknownDestination as error:
        raise UsageError(str(error)) from error
    if options.run_id:
        log = log.bind(run_id=options.run_id)
    log.record(
        Event(
            options.name,
            EventSource[options.source],
            metadata=dict(options.meta),
        )
    )
    is_written = flush() and not any(
        each["dropped"] for each in health().values()
    )
    return Status.FINE if is_written else Status.FINDINGS


def demo(options: argparse.Namespace) -> int:
    """
    Run a small elastic job on this machine and show what it recorded.

    Two agents with two workers each; one worker fails, all start again.
    """
    from .demo import run  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="elastic-events-demo-"))
    file, succeeded = run(folder)
    _show([str(file)], options.output)
    sys.stdout.flush()
    print(f"\nThe record is in {file}", file=sys.stderr)
    return Status.FINE if succeeded else Status.FINDINGS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="elastic-events",
        description="Record and read the events of elastic training jobs.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    showing = _add(commands, show)
    showing.add_argument(
        "files", nargs="+", metavar="FILE", help="a file, or - for stdin"
    )
    _add_output(showing)

    recording = _add(commands, record)
    # The name first: after --meta it would be taken for a pair.
    recording.usage = (
        "elastic-events record NAME --source AGENT|WORKER"
        " [--meta KEY=VALUE ...] [--run-id ID] [--to DESTINATION]"
    )
    recording.add_argument("name", metavar="NAME", help="the event's name")
    recording.add_argument(
        "--source", required=True, choices=["AGENT", "WORKER"]
    )
    recording.add_argument(
        "--meta",
        nargs="+",
        action="extend",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="metadata; numbers as JSON spells them (1.10 is text), true,"
        " false and null, else text",
    )
    recording.add_argument("--run-id", metavar="ID", help="the job's id")
    recording.add_argument(
        "--to",
        metavar="DESTINATION",
        help="where to (default: $ELASTIC_EVENTS_DESTINATION)",
    )

    _add_output(_add(commands, demo))
    return parser


def _add(
    commands: Any, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    text = (command.__doc__ or "").strip()
    added: argparse.ArgumentParser = commands.add_parser(
        command.__name__,
        help=text.partition("\n")[0],
        description="\n".join(line.strip() for line in text.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.set_defaults(command=command)
    return added


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        choices=["json", "pretty"],
        help="json: the lines as they are; pretty: a row each"
        " (default: pretty in a terminal)",
    )


def _pair(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        number: object = json.loads(value)
    except ValueError:
        return key, value
    # 1.10 and 1e3 are spelled otherwise in JSON: they may be versions or ids.
    is_plain = not isinstance(number, (str, list, dict))
    return key, number if is_plain and json.dumps(number) == value else value


def _show(files: Sequence[str], output: str | None) -> int:
    """
    Print the lines of *files*; those that cannot be read are told of.
    """
    printer = _printer(output or _default_output())
    status = Status.FINE
    for file in files:
        try:
            for line in read_lines([file]):
                printer(line)
        except BrokenPipeError:
            raise
        except OSError as error:
            print(f"elastic-events: {error}", file=sys.stderr)
            status = Status.USAGE
    return status


def _default_output() -> str:
    if not sys.stdout.isatty():
        return "json"
    if find_spec("rich") is None:
        print(f"elastic-events: {_RICH_IS_MISSING}", file=sys.stderr)
        return "json"
    return "pretty"


def _printer(output: str) -> Callable[[Line], None]:
    if output == "json":
        return _print_json
    try:
        from rich.console import Console  # noqa: PLC0415

        from .reading.views import escaped, row  # noqa: PLC0415
    except ImportError:
        raise UsageError(_RICH_IS_MISSING) from None
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that is not UTF-8 shows what it can.
        sys.stdout.reconfigure(errors="backslashreplace")

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process with a status of its own.
            raise BrokenPipeError

    console = Terminal(highlight=False, soft_wrap=True)

    def print_pretty(line: Line) -> None:
        try:
            console.print(row(parse(line)))
        except BadLineError as error:
            place = escaped(f"{line.file}:{line.number}")
            print(f"{place}: {escaped(error)}", file=sys.stderr)

    return print_pretty


def _print_json(line: Line) -> None:
    # The last line of a file may lack its end, and another file follow.
    end = b"" if line.raw.endswith(b"\n") else b"\n"
    sys.stdout.buffer.write(line.raw + end)


def _reader_left() -> int:
    # Python would complain of the pipe once more when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Status.FINE
