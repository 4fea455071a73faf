"""
The text and the traceback of a log call.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from typing import Any

from .encoding import text_of


def filled_in(message: object, args: Any, fields: dict[str, Any]) -> str:
    """
    Return *message* as text, its ``%`` arguments filled in.

    Where they do not fit, the text stands as it is and *fields* keeps them.
    """
    if isinstance(message, Mapping):
        fields["message"] = message
    text = text_of(message)
    if not args:
        return text
    try:
        return str(text % args)
    except Exception as error:
        fields["args"] = args
        fields["formatting_error"] = f"{type(error).__name__}: {error}"
        return text


def error_trace(exc_info: Any) -> str:
    """
    Return the traceback that a log call's *exc_info* asks for, or "".

    Args:
        exc_info:
            An exception, what `sys.exc_info` returns, or any other true value
            for the exception being handled.
    """
    if not exc_info:
        return ""
    if isinstance(exc_info, BaseException):
        error: BaseException | None = exc_info
    elif isinstance(exc_info, tuple):
        error = exc_info[1] if len(exc_info) > 1 else None
    else:
        error = sys.exc_info()[1]
    if not isinstance(error, BaseException):
        return ""
    try:
        return "".join(traceback.format_exception(error)).rstrip("\n")
    except Exception as failure:
        return f"{type(error).__name__}: <{type(failure).__name__}>"
