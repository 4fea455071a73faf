"""
The command line, ``elastic-events``: which command is run, and how it ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final, NoReturn

from . import __version__
from .commands import filtering
from .commands.output import escape_what_cannot_be_encoded
from .commands.statuses import Status, UsageError
from .commands.telling import PROGRAM, complain
from .reading.escaping import escaped


COMMANDS: Final = (
    "show",
    "explain",
    "timeline",
    "stats",
    "validate",
    "convert",
    "record",
    "schema",
    "demo",
)
"""The commands, a module of this name in ``commands`` each."""

_DESCRIPTION: Final = "Record and read the events of elastic training jobs."
_EPILOG: Final = f"{PROGRAM} COMMAND --help tells more, with an example."


class Parser(argparse.ArgumentParser):
    """
    A parser that quotes what it was given escaped.
    """

    def error(self, message: str) -> NoReturn:
        """
        Tell of the usage, and what is wrong with it.
        """
        super().error(escaped(message))


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command that *arguments* name, by default the process's own.

    Returns:
        The exit status.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        return _run(arguments)
    except UsageError as error:
        complain(str(error))
    except BrokenPipeError:
        _drop_output()
        return Status.FINE
    except OSError as error:
        _drop_output()
        # Who opens a file names it; who writes to an open one cannot.
        is_of_output = error.filename is None
        complain(f"cannot write: {error}" if is_of_output else str(error))
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    return Status.USAGE


def _run(arguments: Sequence[str]) -> int:
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    escape_what_cannot_be_encoded()
    try:
        name, *others = arguments or [""]
        if name not in COMMANDS:
            _refuse(arguments)
        module = _module(name)
        joined = getattr(
            module, "joined_arguments", filtering.joined_arguments
        )
        options = _parser_of(name, module).parse_args(joined(others))
        return int(module.run(options))
    finally:
        # What cannot be written is told of here, not at the end of Python.
        sys.stdout.flush()


def _refuse(arguments: Sequence[str]) -> NoReturn:
    """
    Answer arguments that do not begin with a command.
    """
    parser = Parser(prog=PROGRAM, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "--version", action="version", version=f"{PROGRAM} {__version__}"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        commands.add_parser(name, help=_summary(_module(name)))
    if arguments:
        parser.parse_args(arguments)
    parser.print_help(sys.stderr)
    raise SystemExit(Status.USAGE)


def _module(name: str) -> ModuleType:
    return import_module(f"{__package__}.commands.{name}")


def _summary(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().partition("\n")[0]


def _parser_of(name: str, module: ModuleType) -> Parser:
    parser = Parser(
        prog=f"{PROGRAM} {name}",
        description=(module.__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def _drop_output() -> None:
    """
    Let go of output that cannot be written.

    Python would try once more when it ends, and complain.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
