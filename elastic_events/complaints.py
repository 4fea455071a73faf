"""
What people are told on standard error: little, and without waiting.
"""

from __future__ import annotations

import contextlib
import time
from typing import Final

from .stream_sink import StreamSink


_INTERVAL: Final = 60.0

_sink: Final = StreamSink("stderr", patience=0)
_last_complaint = -_INTERVAL


def complain(text: str, *, is_last: bool = False) -> None:
    """
    Say *text* on standard error, unless something was said a minute ago.

    Args:
        text: What is said.

        is_last: Whether there is no later: then it is said in any case.
    """
    global _last_complaint  # noqa: PLW0603
    now = time.monotonic()
    if now - _last_complaint < _INTERVAL and not is_last:
        return
    _last_complaint = now
    # Where nobody can be told, nobody is.
    with contextlib.suppress(Exception):
        _sink.write(f"elastic_events: {text}\n".encode(errors="replace"))
