"""
The text and the traceback of a log call.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from typing import Any

from .values import (
    error_text,
    reraise_interrupt,
    text_of,
    type_name,
    unprintable,
)


def filled_in(message: object, args: Any, fields: dict[str, Any]) -> str:
    """
    Return *message* as text, its ``%`` arguments filled in.

    Where they do not fit, the text stands as it is and *fields* gets them.
    """
    if type(message) is str:
        text = message
    else:
        if isinstance(message, Mapping):
            add_field(fields, "message", message)
        text = text_of(message)
    if not args:
        return text
    try:
        return str(text % args)
    except BaseException as error:
        reraise_interrupt(error)
        add_field(fields, "args", args)
        add_field(fields, "formatting_error", error_text(error))
        return text


def add_field(fields: dict[str, Any], key: str, value: object) -> None:
    """
    Add *value* to *fields*, under another name if the caller uses *key*.
    """
    while key in fields:
        key += "_"
    fields[key] = value


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
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    elif not isinstance(exc_info, tuple):
        exc_info = sys.exc_info()
    error = exc_info[1] if len(exc_info) == 3 else None
    if not isinstance(error, BaseException):
        return ""
    try:
        lines = traceback.format_exception(type(error), error, exc_info[2])
        return "".join(lines).rstrip("\n")
    except BaseException as failure:
        return f"{type_name(error)}: {unprintable(error, failure)}"
