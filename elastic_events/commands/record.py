"""
Record one event, e.g. from a shell script.

Example: elastic-events record prolog --source AGENT --to file:log.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from itertools import takewhile

from .. import (
    Event,
    EventSource,
    UnknownDestination,
    flush,
    get_logger,
    health,
)
from ..destinations import ENVIRONMENT_VARIABLE, resolve
from .statuses import Status, UsageError


_META = "--meta"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    group = parser.add_argument_group("the event")
    group.add_argument(
        "name", type=_name, metavar="NAME", help="the event's name"
    )
    group.add_argument(
        "--source",
        required=True,
        choices=["AGENT", "WORKER"],
        help="who says so: the job's agent, as scripts around it do, or a"
        " worker",
    )
    group.add_argument(
        _META,
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="metadata, one or more pairs; numbers as JSON spells them (1.10"
        " is text), true, false and null, else text",
    )
    group.add_argument("--run-id", metavar="ID", help="the job's id")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--to",
        metavar="DESTINATION",
        help=f"where to (default: ${ENVIRONMENT_VARIABLE})",
    )


def joined_arguments(arguments: Sequence[str]) -> list[str]:
    """
    Return *arguments* with a ``--meta`` of its own for each pair.

    argparse would take the name of an event for one more pair where it
    comes after them.
    """
    joined: list[str] = []
    left = list(arguments)
    while left:
        if left[0] == "--":
            return joined + left
        pairs = _count_of_pairs(left) if left[0] == _META else 0
        if pairs:
            joined += [f"{_META}={pair}" for pair in left[1 : 1 + pairs]]
        else:
            joined.append(left[0])
        del left[: 1 + pairs]
    return joined


def run(options: argparse.Namespace) -> int:
    """
    Record the event that the options name.

    Returns:
        The exit status.

    Raises:
        UsageError: If it has nowhere to go, or not where it is to go.
    """
    log = get_logger(_destination(options.to))
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


def _destination(to: str | None) -> str:
    """
    Return the name of where the event goes.

    What goes to null goes where the environment says: asked for here, a
    mistake there is one of this command, and not only complained of.

    Raises:
        UsageError: If there is no such place, or nothing says where.
    """
    elsewhere = os.environ.get(ENVIRONMENT_VARIABLE, "")
    is_given = bool(to) and to != "null"
    name = (to if is_given else elsewhere) or "null"
    try:
        found = resolve(name)
    except UnknownDestination as error:
        where = "" if is_given else f"{ENVIRONMENT_VARIABLE}: "
        raise UsageError(f"{where}{error}") from error
    if found is None and not to:
        raise UsageError(
            "the event would go nowhere: give --to DESTINATION or set"
            f" {ENVIRONMENT_VARIABLE}"
        )
    return name


def _count_of_pairs(left: Sequence[str]) -> int:
    """
    Return how many arguments belong to the ``--meta`` that *left* begins with.

    The first one, even if it is no pair: then argparse says what it lacks.
    """
    values = list(takewhile(lambda each: each[:1] != "-", left[1:]))
    others = takewhile(lambda each: "=" in each, values[1:])
    return len(values[:1]) + len(list(others))


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("an event needs a name, got none")
    return text


def _pair(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        number: object = json.loads(value)
    except (ValueError, RecursionError):
        return key, value
    # 1.10 and 1e3 are spelled otherwise in JSON: they may be versions or ids.
    is_plain = not isinstance(number, (str, list, dict))
    return key, number if is_plain and json.dumps(number) == value else value
