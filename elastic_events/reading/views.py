"""
Lines for people: one row an event, in a terminal.

Needs rich, the extra ``cli``.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime, timezone
from typing import Any, Final

from rich.text import Text


_LEVEL_STYLES: Final = {
    "debug": "dim",
    "info": "green",
    "warning": "yellow",
    "error": "bold red",
    "critical": "bold white on red",
}
_LONGEST_DETAIL: Final = 200
# Control, format, surrogate, line and paragraph separator: what could move
# the cursor, hide text or begin a row.
_UNSAFE_CATEGORIES: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")


def row(said: dict[str, Any]) -> Text:
    """
    Return the row of a line: time, level, host, rank, what, details.
    """
    level = str(said.get("level", ""))
    style = _LEVEL_STYLES.get(level, "")
    return Text("  ").join(
        (
            Text(_time(said), "dim"),
            Text(escaped(level).upper().ljust(8), style),
            Text(escaped(said.get("hostname", ""))),
            Text(_who(said).ljust(7), "cyan"),
            Text(_what(said), "bold"),
            Text(_details(said), style if style.startswith("bold") else ""),
        )
    )


def escaped(value: object) -> str:
    r"""
    Return *value* as text that cannot act on a terminal, ``\x1b`` for ESC.
    """
    return "".join(
        character
        if unicodedata.category(character) not in _UNSAFE_CATEGORIES
        else character.encode("unicode_escape", "backslashreplace").decode()
        for character in str(value)
    )


def _time(said: dict[str, Any]) -> str:
    timestamp = said.get("timestamp")
    try:
        moment = datetime.fromtimestamp(
            timestamp / 1000,  # type: ignore[operator]
            tz=timezone.utc,
        )
    except (TypeError, ValueError, OverflowError, OSError):
        return "--:--:--.---"
    return moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"


def _who(said: dict[str, Any]) -> str:
    if said.get("rank") is not None and said.get("kind") != "rdzv":
        return f"rank {escaped(said['rank'])}"
    return escaped(said.get("source", "")).lower()


def _what(said: dict[str, Any]) -> str:
    return escaped(said.get("name") or said.get("logger", ""))


def _details(said: dict[str, Any]) -> str:
    parts = []
    if said.get("message") != said.get("name"):
        parts.append(said.get("message", ""))
    worker = said.get("worker")
    if isinstance(worker, dict):
        error = worker.get("error")
        parts += _pairs(worker, ("exit_code", "pid"))
        if isinstance(error, dict):
            known = (error.get("type"), error.get("message"))
            parts.append(": ".join(str(each) for each in known if each))
    elif isinstance(said.get("metadata"), dict):
        metadata = said["metadata"]
        parts += _pairs(metadata, [k for k in metadata if k != "metadata"])
    text = " ".join(escaped(part) for part in parts)
    if len(text) > _LONGEST_DETAIL:
        text = text[:_LONGEST_DETAIL] + "…"
    return text


def _pairs(values: dict[str, Any], keys: Any) -> list[str]:
    return [
        f"{key}={values[key]}" for key in keys if values.get(key) is not None
    ]
