"""
Into torchrun: the hook that has its agent record, and a wrapper for old torch.

torch calls `rendezvous_backend` through the entry point group
``torchrun.handlers`` whenever its rendezvous package is imported. Unless the
environment or the command line asks for recording, the hook leaves a handler
behind that nobody calls, and nothing else.

This is the only module that imports torch.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

# Nothing that imports structlog: this is imported by jobs that do not record.
from . import process


HANDLER_NAME: Final = "elastic_events"

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

_ELASTIC: Final = "torch.distributed.elastic"
_CAPTURED: Final = (f"{_ELASTIC}.", "torch.distributed.launcher.")
_RENDEZVOUS: Final = f"{_ELASTIC}.rendezvous."
# Those that get no level from torch, and may not exist yet.
_UNLEVELLED: Final = (
    f"{_ELASTIC}.multiprocessing.api",
    f"{_ELASTIC}.multiprocessing.errors.error_handler",
    f"{_ELASTIC}.multiprocessing.redirects",
    f"{_ELASTIC}.multiprocessing.tail_log",
)
# It emits the event of a node that was lost only where debug is enabled.
_GATED: Final = f"{_ELASTIC}.rendezvous.dynamic_rendezvous"


def rendezvous_backend() -> Callable[..., NoReturn]:
    """
    Install what was asked for; torch calls this at import, in any process.

    Returns:
        What torch expects of an entry point of this group, a maker of
        rendezvous backends. This one only says that there is none.
    """
    try:
        if not process.is_worker():
            install(is_asked=_is_asked(sys.argv[1:]))
    except Exception as error:
        _say(f"torchrun's events are not recorded: {error!r}")
    return _refuse


def install(*, is_asked: bool) -> None:
    """
    Register the handler in torch and, if *is_asked*, have all go through it.

    That is the events of agent and workers, rendezvous events, and
    torchelastic's log messages. They go to the destination that
    ``ELASTIC_EVENTS_DESTINATION`` names, else to ``console``.
    """
    from torch.distributed.elastic.events import (  # noqa: PLC0415
        handlers,
    )

    handlers._log_handlers.setdefault(  # noqa: SLF001
        HANDLER_NAME, _HandlerOnDemand()
    )
    if not is_asked:
        return
    # For the workers as well: they inherit the environment.
    os.environ.setdefault(_DESTINATION_VARIABLE, "console")
    handler = _make_handler()
    _take_over_events(handler)
    _capture_logs(handler)


def main() -> None:
    """
    Run torchrun with recording on, whatever its version.
    """
    install(is_asked=True)
    from torch.distributed.run import main as torchrun  # noqa: PLC0415

    torchrun()


class _HandlerOnDemand(logging.Handler):
    """
    The handler of who names it in a program, e.g. in a ``LaunchConfig``.
    """

    def emit(self, record: logging.LogRecord) -> None:
        os.environ.setdefault(_DESTINATION_VARIABLE, "console")
        handler = _make_handler()
        self.emit = handler.handle  # type: ignore[method-assign,assignment]
        handler.handle(record)


def _is_asked(arguments: Sequence[str]) -> bool:
    if os.environ.get(_DESTINATION_VARIABLE):
        return True
    named = _named_handler(arguments)
    return (named or os.environ.get(_HANDLER_VARIABLE)) == HANDLER_NAME


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


def _make_handler() -> logging.Handler:
    """
    Return the handler for all of torch's, to nowhere if there is no better.
    """
    from .handlers import get_logging_handler  # noqa: PLC0415

    # A destination that does not exist was said, and stands for nowhere.
    return get_logging_handler("null")


def _take_over_events(handler: logging.Handler) -> None:
    from torch.distributed.elastic import events  # noqa: PLC0415

    from .recording import (  # noqa: PLC0415
        construct_and_record_rdzv_event,
    )

    handlers = events.handlers._log_handlers  # noqa: SLF001
    for name in (HANDLER_NAME, "null", "dynamic_rendezvous"):
        before = handlers.get(name)
        if isinstance(
            before, (type(None), logging.NullHandler, _HandlerOnDemand)
        ):
            handlers[name] = handler
            events._events_loggers[name] = _event_logger(name, handler)  # noqa: SLF001
    # torch's own reads source files at each call to find its caller.
    events.construct_and_record_rdzv_event = construct_and_record_rdzv_event
    rendezvous = sys.modules.get(_GATED)
    if rendezvous is not None:
        rendezvous.construct_and_record_rdzv_event = (  # type: ignore[attr-defined]
            construct_and_record_rdzv_event
        )


def _event_logger(name: str, handler: logging.Handler) -> logging.Logger:
    """
    Return the logger that torch would make, but for its level.

    torch takes the level from ``LOGLEVEL``, which is about messages.
    """
    logger = logging.getLogger(f"torchelastic-events-{name}")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [handler]
    return logger


def _capture_logs(handler: logging.Handler) -> None:
    """
    Record what torchelastic logs, at any level, and let it print as before.
    """
    from torch.distributed.elastic.utils import (  # noqa: PLC0415
        logging as torch_logging,
    )

    set_up = torch_logging._setup_logger  # noqa: SLF001

    def set_up_and_tap(name: str | None = None) -> logging.Logger:
        logger: logging.Logger = set_up(name)
        _tap(logger, handler)
        return logger

    torch_logging._setup_logger = set_up_and_tap  # noqa: SLF001
    for name in (*_UNLEVELLED, _GATED):
        logging.getLogger(name)
    for logger in tuple(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            _tap(logger, handler)


def _tap(logger: logging.Logger, handler: logging.Handler) -> None:
    """
    Have *handler* record what *logger* is given, if it is torchelastic's.
    """
    if any(isinstance(each, _Tap) for each in logger.filters):
        return
    name = f"{logger.name}."
    if logger.name == _GATED:
        logger.addFilter(_Tap(logger, None))
    elif name.startswith(_CAPTURED) and not name.startswith(_RENDEZVOUS):
        logger.addFilter(_Tap(logger, handler))


class _Tap(logging.Filter):
    """
    Open *logger* to every level, and pass on what passed before.

    The logger's level stays as it is, for its children and for later changes.

    Args:
        logger: The logger that this will be a filter of.

        handler: Records all. `None` to record nothing.
    """

    def __init__(
        self, logger: logging.Logger, handler: logging.Handler | None
    ) -> None:
        super().__init__()
        self._logger = logger
        self._handler = handler
        logger.isEnabledFor = lambda _: True  # type: ignore[method-assign,assignment]

    def filter(self, record: logging.LogRecord) -> bool:
        """
        Record *record*, and tell whether it would have got here.
        """
        if self._handler is not None:
            self._handler.handle(record)
        return logging.Logger.isEnabledFor(self._logger, record.levelno)


def _say(text: str) -> None:
    # Where nobody is left to be told, the job goes on all the same.
    with contextlib.suppress(Exception):
        sys.stderr.write(f"elastic_events: {text}\n")


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ValueError(
        "'elastic_events' records events and is no rendezvous backend:"
        " expected --rdzv-backend=c10d, static or etcd-v2"
    )


if __name__ == "__main__":
    # As a module of the package, not as a second copy of it.
    from elastic_events.torchrun import main as _main

    _main()
