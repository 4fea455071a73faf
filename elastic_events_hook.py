"""
What torch calls in every process that imports its rendezvous package.

It stands outside of the package `elastic_events`, whose import takes a tenth
of a second: a job that does not record, and a worker, does not wait for it.
(PYTEST_DONT_REWRITE: pytest would warn where it is imported already.)
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn


_HANDLER_NAME: Final = "elastic_events"
_DESTINATION_VARIABLE: Final = "ELASTIC_EVENTS_DESTINATION"
_HANDLER_VARIABLE: Final = "PET_EVENT_LOG_HANDLER"
_HANDLER_OPTION: Final = "--event-log-handler"
_OPTIONS_WITHOUT_VALUE: Final = (
    "--help",
    "--module",
    "--no-python",
    "--run-path",
    "--standalone",
    "--use-env",
    "--virtual-local-rank",
    "-h",
    "-m",
)


def rendezvous_backend() -> Callable[..., NoReturn]:
    """
    Have torchrun's agent record, if it is asked to.

    Otherwise a handler is left behind for programs that name it, e.g. in a
    ``LaunchConfig``; in a worker nothing is done at all. Never raises.

    Returns:
        What torch expects of an entry point of the group
        ``torchrun.handlers``, a maker of rendezvous backends. This one only
        says that there is none.
    """
    try:
        if not _is_worker():
            _register_on_demand()
            if _is_asked(sys.argv[1:]):
                _install()
    except Exception as error:
        # Where nobody is left to be told, the job goes on all the same.
        with contextlib.suppress(Exception):
            print(
                "elastic_events: torchrun's events are not recorded:",
                repr(error),
                file=sys.stderr,
            )
    return _refuse


class _HandlerOnDemand(logging.NullHandler):
    """
    Install the real handler at the first event, and hand it over.
    """

    def handle(self, record: logging.LogRecord) -> bool:
        _install()
        return _torchs_handlers()[_HANDLER_NAME].handle(record)


def _register_on_demand() -> None:
    _torchs_handlers().setdefault(_HANDLER_NAME, _HandlerOnDemand())


def _torchs_handlers() -> dict[str, logging.Handler]:
    # torch is being imported: it is here, and need not be imported again.
    events = sys.modules["torch.distributed.elastic.events.handlers"]
    handlers: dict[str, logging.Handler] = events._log_handlers  # noqa: SLF001
    return handlers


def _install() -> None:
    from elastic_events.torchrun import install  # noqa: PLC0415

    install()


def _is_worker() -> bool:
    return "RANK" in os.environ and "TORCHELASTIC_RUN_ID" in os.environ


def _is_asked(arguments: Sequence[str]) -> bool:
    if os.environ.get(_DESTINATION_VARIABLE):
        return True
    named = _named_handler(arguments)
    return (named or os.environ.get(_HANDLER_VARIABLE)) == _HANDLER_NAME


def _named_handler(arguments: Sequence[str]) -> str | None:
    """
    Return the handler that torchrun's own *arguments* name, if any.

    What comes after the script is the script's.
    """
    named = None
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "--":
            break
        option, equals, value = argument.replace("_", "-").partition("=")
        if any(each.startswith(option) for each in _OPTIONS_WITHOUT_VALUE):
            continue
        if not equals and (argument.startswith("--") or len(argument) == 2):
            value = next(rest, "")
        # As argparse, which takes a beginning that no other option shares.
        if _HANDLER_OPTION.startswith(option) and option > "--":
            named = value if not equals else argument.partition("=")[2]
    return named


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ValueError(
        "'elastic_events' records events and is no rendezvous backend:"
        " expected --rdzv-backend=c10d, static or etcd-v2"
    )
