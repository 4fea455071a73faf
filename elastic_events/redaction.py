"""
What is not to be written: the values of keys that name a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from structlog.typing import EventDict, Processor, WrappedLogger

from .encoding import json_text, repaired


MASK: Final = "[redacted]"

_SECRETS: Final = (
    "access_key",
    "api_key",
    "authorization",
    "cookie",
    "passwd",
    "password",
    "private_key",
    "secret",
    "token",
)


def redact(keys: Iterable[str] = _SECRETS) -> Processor:
    """
    Return a processor that replaces secrets by ``[redacted]``.

    It is for the *processors* of `get_logger`, `configure`, `EventHandler`
    and `register_destination`. Nothing is redacted unless it is given there.

    Args:
        keys:
            The names whose values are secret, at any depth of a line, be it
            in a mapping, a dataclass, or JSON that stands in a string. A name
            has to be the whole key; upper and lower case are one, and so are
            ``-`` and ``_``. (default: ``access_key``, ``api_key``,
            ``authorization``, ``cookie``, ``passwd``, ``password``,
            ``private_key``, ``secret`` and ``token``)

    Raises:
        TypeError: If *keys* are not names.

    Secrets within a text, such as a message or a traceback, are not found. If
    a line cannot be looked through, it is written without its values.
    """
    if isinstance(keys, str):
        raise TypeError(
            f"redact() takes a list of keys, not the one string {keys!r}:"
            f" give it [{keys!r}]"
        )
    names = tuple(keys)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"redact() takes keys that are strings, not {name!r}"
            )
    return _Redaction(names)


class _Redaction:
    """
    What `redact` returns: a class, for it goes to spawned processes.
    """

    # See `Guarded`.
    fails_closed = True

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._secrets = frozenset(map(_normal, names))

    def __repr__(self) -> str:
        return f"redact({list(self._names)!r})"

    def __call__(
        self, _: WrappedLogger, __: str, event_dict: EventDict
    ) -> EventDict:
        # What is looked through is what will be written, and nothing else.
        line: EventDict = self._redacted(repaired(event_dict))
        return line

    def _redacted(self, value: Any, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            return MASK
        if isinstance(value, dict):
            return {
                key: MASK
                if _normal(key) in self._secrets
                else self._redacted(each, depth + 1)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._redacted(each, depth + 1) for each in value]
        if isinstance(value, str) and _JSON.match(value):
            return self._redacted_json(value, depth + 1)
        return value

    def _redacted_json(self, text: str, depth: int) -> str:
        """
        Return *text*, if it is JSON with a secret in it, without that.
        """
        try:
            value = json.loads(text.lstrip(_SPACE), object_pairs_hook=_all_of)
        except RecursionError:
            return MASK
        except ValueError:
            return text
        redacted = self._redacted(value, depth)
        return text if redacted == value else json_text(redacted)


def _all_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """
    Return *pairs* with every value of a key that is there twice.
    """
    value: dict[str, Any] = {}
    for key, each in pairs:
        name = key
        while name in value:
            name += "_"
        value[name] = each
    return value


def _normal(key: str) -> str:
    # A key whose name was taken has underscores, and maybe a number.
    return _TAKEN.sub("", key.casefold().replace("-", "_"))


_DEEPEST: Final = 200
_SPACE: Final = " \t\r\n\ufeff"
_JSON: Final = re.compile(f'[{_SPACE}]*[{{\\["]')
_TAKEN: Final = re.compile(r"_+(<\d+>)?$")
