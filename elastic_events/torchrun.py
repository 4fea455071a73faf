"""
Into torchrun: its agent's events and torchelastic's logs, to a destination.

torch comes here by `elastic_events_hook`, users of an old torch by
``python -m elastic_events.torchrun``. This is the only module that imports
torch.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

from .destinations import ENVIRONMENT_VARIABLE, resolve_anew
from .handlers import get_logging_handler
from .recording import construct_and_record_rdzv_event


HANDLER_NAME: Final = "elastic_events"

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


def install() -> None:
    """
    Have all that torch tells of a job go through one of our handlers.

    That is the events of agent and workers, rendezvous events, and
    torchelastic's log messages. They go to the destination that
    ``ELASTIC_EVENTS_DESTINATION`` names, else to ``console``.
    """
    # For the workers as well: they inherit the environment.
    if not os.environ.get(ENVIRONMENT_VARIABLE):
        os.environ[ENVIRONMENT_VARIABLE] = "console"
        resolve_anew()
    # A destination that does not exist was said, and stands for nowhere.
    handler = get_logging_handler("null")
    _take_over_events(handler)
    _capture_logs(handler)


def main() -> None:
    """
    Run torchrun with recording on, whatever its version.
    """
    install()
    from torch.distributed.run import main as torchrun  # noqa: PLC0415

    torchrun()


def _take_over_events(handler: logging.Handler) -> None:
    from torch.distributed.elastic import events  # noqa: PLC0415

    handlers = events.handlers._log_handlers  # noqa: SLF001
    for name in (HANDLER_NAME, "null", "dynamic_rendezvous"):
        # What somebody else registered is left alone.
        if isinstance(handlers.get(name), (type(None), logging.NullHandler)):
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
    if set_up.__module__ == __name__:
        return

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


if __name__ == "__main__":
    # As a module of the package, not as a second copy of it.
    from elastic_events.torchrun import main as _main

    _main()
