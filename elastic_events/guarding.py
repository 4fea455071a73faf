"""
The user's own processors: asked for, and run so that they can do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from structlog.exceptions import DropEvent
from structlog.typing import EventDict, Processor, WrappedLogger

from .complaints import complain as complain_to_people
from .context import with_context
from .levels import LEVELS
from .schema import JOB_KEYS, KEYS, is_right
from .values import error_text, reraise_interrupt, text_of


def callables(processors: Sequence[Any]) -> tuple[Processor, ...]:
    """
    Return the *processors*, also those that a logging configuration names.

    Raises:
        TypeError: If one of them cannot be called.
    """
    if isinstance(processors, (str, bytes)) or callable(processors):
        raise TypeError(
            f"processors must be a list, not {processors!r}: give it"
            f" [{processors!r}]"
        )
    # Whatever the list is, one by one: dictConfig's gives what a text such as
    # "ext://package.name" stands for only when it is asked for an item.
    if isinstance(processors, list):
        processors = [processors[at] for at in range(len(processors))]
    return tuple(map(_callable, processors))


def _callable(processor: Any) -> Processor:
    if isinstance(processor, Mapping) and "()" in processor:
        configurator = getattr(processor, "configurator", None)
        if configurator is not None:
            processor = configurator.configure_custom(processor)
    if not callable(processor):
        raise TypeError(
            f"a processor must be callable, not {processor!r}: in a logging"
            " configuration write 'ext://package.name', or {'()':"
            " 'package.maker'} with the maker's arguments"
        )
    return processor  # type: ignore[no-any-return]


class Guarded:
    """
    Run the user's *processors* so that they can neither lose nor forge.

    It needs a line, as `draft_line` gives it.

    A processor may change values, add keys, remove optional ones, and raise
    `DropEvent`. If it raises anything else, *complain* is told, and the line
    is written without it; or, if its attribute ``fails_closed`` is true,
    without all that it may have been to take away.

    When, from whom and of what kind a line is stays; what else its kind must
    have is written empty if it was taken away. A value that a key cannot have,
    and a key that is not the processor's to add, is written under another
    name, as bound ones are.

    Args:
        processors: The user's processors.

        complain:
            Takes one line of text for people. (default: standard error, once
            a minute at most)

    Raises:
        TypeError: If *processors* is no list of callables.
    """

    def __init__(
        self,
        processors: Sequence[Processor],
        complain: Callable[[str], None] = complain_to_people,
    ) -> None:
        self._processors = callables(processors)
        self._complain = complain

    def __call__(
        self, logger: WrappedLogger, method_name: str, event_dict: EventDict
    ) -> EventDict:
        """
        Run the processors and restore what they must not change.
        """
        # The values are the caller's: what a processor changes is a copy.
        line = _copied(event_dict, {})
        for processor in self._processors:
            try:
                copy = _copied(line, {})
                changed: Any = processor(logger, method_name, copy)
                line = dict(changed)
            except DropEvent:
                raise
            except BaseException as error:
                reraise_interrupt(error)
                culprit = text_of(processor)
                self._complain(f"{culprit} raised {error_text(error)}")
                if getattr(processor, "fails_closed", False):
                    line = {key: line[key] for key in line if key in _HARMLESS}
        try:
            return self._restored(event_dict, line)
        except Exception as error:
            # Nothing of what they may have meant to take away.
            self._complain(f"processors left what {error_text(error)}")
            return self._restored(event_dict, {})

    def _restored(self, before: EventDict, after: dict[str, Any]) -> EventDict:
        """
        Return the line *after* the processors, with the right keys in order.
        """
        kind = before["kind"]
        line: dict[str, Any] = {}
        for key in KEYS:
            if key not in before and key not in _ADDABLE:
                continue
            given = after.pop(key, None)
            value = _settled(key, given, before.get(key), kind)
            if value is not None:
                line[key] = value
            if given is not None and not _is_same(given, value):
                after[key] = given
        if line["level"] not in LEVELS:
            line["level"] = before["level"]
        return with_context(line, after)


_FIXED: Final = frozenset(
    ("timestamp", "time", "kind", "source", "seq", "worker")
)
_HARMLESS: Final = frozenset(KEYS) - {
    "message",
    "error_trace",
    "worker",
    "metadata",
}
_ADDABLE: Final = frozenset((*JOB_KEYS, "error_trace"))


def _settled(key: str, given: Any, before: Any, kind: str) -> Any:
    """
    Return what a line of *kind* says under *key*, `None` for nothing.

    Never what a processor took away: it may have been a secret.
    """
    wanted, required = KEYS[key]
    is_required = kind in required
    if key == "worker" and isinstance(given, dict):
        return _fitting(before or {}, given)
    if key in _FIXED:
        return before if is_required or given is not None else None
    if is_right(key, given, kind):
        return given
    return wanted() if is_required else None


def _fitting(
    before: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any] | None:
    """
    Return those values of *given* that are of the type that they had *before*.
    """
    fitting = {}
    for key, value in before.items():
        new = given.get(key)
        if isinstance(value, dict) and isinstance(new, dict):
            new = _fitting(value, new)
        if type(new) is type(value):
            fitting[key] = new
    return fitting or None


def _is_same(given: Any, value: Any) -> bool:
    # A class of its own may say anything when it is asked.
    return given is value or (type(given) in (str, dict) and given == value)


def _copied(value: Any, copies: dict[int, Any], depth: int = 0) -> Any:
    """
    Return a copy of the dicts and lists that *value* is made of.

    Args:
        value: Anything, and it may hold itself.

        copies: Of what was copied already, by identity.

        depth: How deep it stands in a line.
    """
    if not isinstance(value, (dict, list)) or depth > _DEEPEST_COPY:
        return value
    if id(value) in copies:
        return copies[id(value)]
    copy: Any
    # Taken all at once: another thread may be changing it.
    if isinstance(value, list):
        copies[id(value)] = copy = []
        for each in list.copy(value):
            copy.append(_copied(each, copies, depth + 1))
    else:
        copies[id(value)] = copy = {}
        for key, each in dict.copy(value).items():
            copy[key] = _copied(each, copies, depth + 1)
    return copy


_DEEPEST_COPY: Final = 100
