"""
All objects of a kind that are in use, and what each does in a forked process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary


_T = TypeVar("_T")


class Living(Generic[_T]):
    """
    The objects that were added and that somebody still holds.

    Args:
        after_fork: Called with each of them in a forked process.
    """

    def __init__(self, after_fork: Callable[[_T], object]) -> None:
        self._after_fork = after_fork
        self._objects: WeakValueDictionary[int, _T] = WeakValueDictionary()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def add(self, each: _T) -> None:
        """
        Have *each* be one of them, as long as it lives.
        """
        self._objects[id(each)] = each

    def all(self) -> list[_T]:
        """
        Return those that there are now.
        """
        # A list of its references is made at once, whatever other threads do.
        found = (reference() for reference in self._objects.valuerefs())
        return [each for each in found if each is not None]

    def clear(self) -> None:
        """
        Forget them all.
        """
        self._objects.clear()

    def _renew(self) -> None:
        for each in self.all():
            # One that cannot be renewed must not keep the others from it.
            with contextlib.suppress(Exception):
                self._after_fork(each)
