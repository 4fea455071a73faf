"""
The options that say which records are wanted, the same on every command.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ..reading import conditions, filters, moments
from ..reading.filters import Filter
from .statuses import UsageError


class Option(NamedTuple):
    """
    An option that takes a text, and the filter that the text means.
    """

    filter_of: Callable[[str], Filter]
    metavar: str
    help: str


_OPTIONS: Final = {
    "--run-id": Option(filters.of_run, "ID", "the records of one run"),
    "--source": Option(filters.of_source, "AGENT|WORKER", "who says so"),
    "--name": Option(
        filters.of_name, "GLOB", "events by name, e.g. 'torchelastic.*'"
    ),
    "--kind": Option(filters.of_kind, "KIND", "event, rdzv or log"),
    "--state": Option(
        filters.of_state,
        "STATE",
        "the state of a worker, agent or node, e.g. failed",
    ),
    "--level": Option(filters.from_level, "LEVEL", "this level and above"),
    "--rank": Option(filters.of_ranks, "RANKS", "ranks, e.g. 0,2-5"),
    "--host": Option(
        filters.of_host,
        "GLOB",
        "hosts; node1 is node1.cluster.local, too",
    ),
    "--since": Option(
        filters.since,
        "TIME",
        f"from then on, itself included: {moments.FORMS}. A date is its"
        " midnight; without a zone the time is local. A number is seconds,"
        " from 12 digits on milliseconds",
    ),
    "--until": Option(
        filters.until, "TIME", "up to then, itself included; likewise"
    ),
    "--where": Option(
        conditions.where,
        "'KEY OP VALUE'",
        "any key, e.g. worker.exit_code!=0. Dots lead into objects, OP is"
        " one of = != < <= > >= ~ !~ (the last two for regular expressions);"
        ' 5 is the number or the text, "5" the text. An absent key meets'
        " nothing. May be repeated",
    ),
    "--grep": Option(
        filters.grep,
        "RE",
        "a regular expression found in any text. May be repeated",
    ),
}
_REPEATABLE: Final = ("--where", "--grep")
_TIMES: Final = ("--since", "--until")
_BACK: Final = re.compile("-[0-9]")
_SPLIT_CONDITION: Final = 3


def add_arguments(
    parser: argparse.ArgumentParser, *, keepalives: str = "with them"
) -> None:
    """
    Add the options to *parser*, in a group of their own.

    Args:
        parser: The command's.

        keepalives: Whether keep-alives are wanted by default, for people.
    """
    group = parser.add_argument_group(
        "filters", "Only records for which all that is given holds."
    )
    for name, option in _OPTIONS.items():
        group.add_argument(
            name,
            action="append" if name in _REPEATABLE else "store",
            type=_checked(option.filter_of),
            metavar=option.metavar,
            help=option.help,
        )
    group.add_argument(
        "--keepalive",
        action=argparse.BooleanOptionalAction,
        help="with or without the keep-alives of the rendezvous (default:"
        f" {keepalives})",
    )


def filter_of(
    options: argparse.Namespace, *, keepalive: bool = True
) -> Filter:
    """
    Return the filter that *options* ask for.

    Args:
        options: What a parser with these options returned.

        keepalive: Whether keep-alives pass if *options* do not say.

    Raises:
        UsageError: If there is no time that they allow.
    """
    _check_times(options.since, options.until)
    wanted = []
    for name, option in _OPTIONS.items():
        given = getattr(options, name.lstrip("-").replace("-", "_"))
        texts = given if name in _REPEATABLE else [given]
        wanted += [
            option.filter_of(text) for text in texts or () if text is not None
        ]
    if options.keepalive is not None:
        keepalive = options.keepalive
    if not keepalive:
        wanted.append(filters.without_keepalives())
    return filters.all_of(wanted)


def joined_arguments(arguments: Sequence[str]) -> list[str]:
    """
    Return *arguments* in a form that `argparse` understands.

    It takes ``-15m`` after ``--since`` for an option, and a condition in
    three arguments, ``--where KEY OP VALUE``, for a key and two files. Here
    they become ``--since=-15m`` and ``--where=KEY OP VALUE``.
    """
    joined: list[str] = []
    left = list(arguments)
    while left:
        taken = _length_of_option(left)
        if taken > 1:
            joined.append(f"{left[0]}={' '.join(left[1:taken])}")
        elif left[0] == "--":
            return joined + left
        else:
            joined.append(left[0])
        del left[:taken]
    return joined


def _length_of_option(left: list[str]) -> int:
    """
    Return how many arguments are to be one, from the first on.
    """
    name, *values = left
    if name in _TIMES and values and _BACK.match(values[0]):
        return 2
    if (
        name == "--where"
        and len(values) >= _SPLIT_CONDITION
        and conditions.OPERATOR.fullmatch(values[1])
        and not conditions.OPERATOR.search(values[0])
    ):
        return 1 + _SPLIT_CONDITION
    return 1


def _check_times(since: str | None, until: str | None) -> None:
    if since is None or until is None:
        return
    if moments.moment(since) > moments.moment(until):
        raise UsageError(
            f"--since {since} is after --until {until}: nothing can be"
            " wanted; expected the earlier of the two after --since"
        )


def _checked(filter_of: Callable[[str], Filter]) -> Callable[[str], str]:
    """
    Return what gives a text back if it is right, else tells argparse why not.
    """

    def checked(text: str) -> str:
        try:
            filter_of(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text

    return checked
