"""
Which records are wanted: one filter for each question, and all together.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from typing import Any, Final, NamedTuple, TypeAlias

from ..levels import LEVELS
from .moments import moment
from .records import time_of


Test: TypeAlias = Callable[[dict[str, Any]], bool]

KINDS: Final = ("event", "rdzv", "log")
SOURCES: Final = ("AGENT", "WORKER")

_KEEPALIVE_STEPS: Final = (
    "._keep_alive",
    "_DistributedRendezvousOpExecutor.run",
)
_FAILURES: Final = ("error", "critical")
_RANKS: Final = re.compile(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?")
# Every writer of JSON spells these as they are.
_PLAIN: Final = re.compile(r"[ !#-.0-\[\]-~]*")
_GLOB: Final = re.compile(r"[*?\[]")


class Filter(NamedTuple):
    """
    Tell which records are wanted: those that pass every test.

    Args:
        tests: Each takes what a record says.

        must_hold: What the line of every wanted record has in it.
    """

    tests: tuple[Test, ...] = ()
    must_hold: tuple[bytes, ...] = ()

    def matches(self, said: dict[str, Any]) -> bool:
        """
        Tell whether a record that says *said* is wanted.
        """
        for test in self.tests:  # noqa: SIM110
            if not test(said):
                return False
        return True


def all_of(filters: Iterable[Filter]) -> Filter:
    """
    Return the filter of what passes all *filters*.
    """
    tests: tuple[Test, ...] = ()
    needles: dict[bytes, None] = {}
    for each in filters:
        tests += each.tests
        needles |= dict.fromkeys(each.must_hold)
    return Filter(tests, tuple(needles))


def of_run(run_id: str) -> Filter:
    """
    Keep the records of one run.
    """
    return Filter(
        (lambda said: said.get("run_id") == run_id,), needles(run_id)
    )


def of_source(source: str) -> Filter:
    """
    Keep what agents say, or workers.

    Raises:
        ValueError: If there is no such *source*.
    """
    wanted = _one_of("source", SOURCES, source)
    # torch's own lines of a rendezvous do not say that they are an agent's.
    held = needles(wanted) if wanted == "WORKER" else ()
    return Filter((lambda said: said.get("source") == wanted,), held)


def of_kind(kind: str) -> Filter:
    """
    Keep one kind of record.

    Raises:
        ValueError: If there is no such *kind*.
    """
    wanted = _one_of("kind", KINDS, kind)
    return Filter((lambda said: said.get("kind") == wanted,))


def of_name(glob: str) -> Filter:
    """
    Keep the events whose name is as *glob* says.
    """
    if not _GLOB.search(glob):
        return Filter((lambda said: said.get("name") == glob,), needles(glob))
    match = _glob(glob)

    def test(said: dict[str, Any]) -> bool:
        name = said.get("name")
        return isinstance(name, str) and match(name) is not None

    return Filter((test,))


def of_state(state: str) -> Filter:
    """
    Keep the events of a worker, agent or node in *state*, in any case.
    """
    wanted = state.casefold()

    def test(said: dict[str, Any]) -> bool:
        metadata = said.get("metadata")
        states = (
            said.get("node_state"),
            metadata.get("state") if isinstance(metadata, dict) else None,
        )
        return any(
            isinstance(each, str) and each.casefold() == wanted
            for each in states
        )

    return Filter((test,))


def from_level(level: str) -> Filter:
    """
    Keep the records of *level* and above.

    Raises:
        ValueError: If there is no such level.
    """
    names = tuple(LEVELS)
    least = names.index(_one_of("level", names, level))
    wanted = names[least:]
    return Filter((lambda said: said.get("level") in wanted,))


def of_ranks(ranks: str) -> Filter:
    """
    Keep the records of *ranks*: numbers and ranges, ``0,2-5``.

    Raises:
        ValueError: If they are not written so.
    """
    ranges = [_range(each, ranks) for each in ranks.split(",")]

    def test(said: dict[str, Any]) -> bool:
        rank = said.get("rank")
        return type(rank) is int and any(
            first <= rank <= last for first, last in ranges
        )

    return Filter((test,))


def of_host(glob: str) -> Filter:
    """
    Keep what was recorded on the hosts that *glob* names.

    Where either has no domain, the first labels are compared: ``node1`` and
    ``node1.cluster.local`` are one host.
    """
    whole = glob.lower()
    match, match_label = _glob(whole), _glob(whole.partition(".")[0])

    def test(said: dict[str, Any]) -> bool:
        host = said.get("hostname")
        if not isinstance(host, str):
            return False
        label, domain, _ = host.lower().partition(".")
        if match(host.lower()):
            return True
        is_short = not domain or "." not in whole
        return is_short and match_label(label) is not None

    return Filter((test,))


def since(text: str) -> Filter:
    """
    Keep what happened at that moment or later; see `moment`.

    Raises:
        ValueError: If *text* is no moment.
    """
    return _of_time(operator.ge, moment(text))


def until(text: str) -> Filter:
    """
    Keep what happened at that moment or earlier; see `moment`.

    Raises:
        ValueError: If *text* is no moment.
    """
    return _of_time(operator.le, moment(text))


def grep(pattern: str) -> Filter:
    """
    Keep the records in one of whose texts *pattern* is found.

    Keys are not looked at, and neither are numbers.

    Raises:
        ValueError: If it is no regular expression.
    """
    search = regular_expression(pattern).search
    return Filter((lambda said: any(map(search, _texts(said))),))


def without_keepalives() -> Filter:
    """
    Leave out what nodes say every few seconds to stay in the rendezvous.

    A failure to do so is kept.
    """
    return Filter((lambda said: not is_keepalive(said),))


def is_keepalive(said: dict[str, Any]) -> bool:
    """
    Tell whether a node only says that it is still there.
    """
    if said.get("kind") != "rdzv" or said.get("level") in _FAILURES:
        return False
    name = said.get("name")
    return isinstance(name, str) and name.endswith(_KEEPALIVE_STEPS)


def regular_expression(pattern: str) -> re.Pattern[str]:
    """
    Return *pattern*, compiled.

    Raises:
        ValueError: If it is no regular expression.
    """
    try:
        with warnings.catch_warnings():
            # What a later Python will read otherwise is this one's to read.
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(
            f"no regular expression {pattern!r}: {error}"
        ) from error


def needles(text: str) -> tuple[bytes, ...]:
    """
    Return what a line has in it in which *text* is a value, if that is sure.
    """
    if _PLAIN.fullmatch(text) is None:
        return ()
    return (f'"{text}"'.encode(),)


def _of_time(compare: Callable[[Any, Any], bool], limit: int) -> Filter:
    def test(said: dict[str, Any]) -> bool:
        timestamp = time_of(said)
        return timestamp is not None and compare(timestamp, limit)

    return Filter((test,))


def _one_of(what: str, allowed: Sequence[str], text: str) -> str:
    for each in allowed:
        if each.casefold() == text.strip().casefold():
            return each
    raise ValueError(
        f"unknown {what} {text!r}: expected one of {', '.join(allowed)}"
    )


def _glob(glob: str) -> Callable[[str], object]:
    return re.compile(translate(glob)).match


def _range(text: str, ranks: str) -> tuple[int, int]:
    found = _RANKS.fullmatch(text)
    if found is None:
        raise ValueError(
            f"unknown ranks {ranks!r}: expected numbers and ranges, e.g. 0,2-5"
        )
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueError(f"empty range {text.strip()!r} in ranks {ranks!r}")
    return first, last


def _texts(said: dict[str, Any]) -> Iterable[str]:
    """
    Yield all texts among the values of *said*, however deep.
    """
    left: list[Any] = [said]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(reversed(value.values()))
        elif isinstance(value, list):
            left.extend(reversed(value))
