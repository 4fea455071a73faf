"""
Numbers as people read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(number: int, thing: str) -> str:
    """
    Return ``1 node`` or ``2 nodes``.
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def ranks_text(ranks: Iterable[int]) -> str:
    """
    Return numbers with runs of them joined: ``0, 2-5``.
    """
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and spans[-1][1] == rank - 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return spans_text(spans)


def spans_text(spans: Iterable[Sequence[int]]) -> str:
    """
    Return the first and last number of each span: ``0, 2-5``.
    """
    return ", ".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in spans
    )


def duration_text(milliseconds: float) -> str:
    """
    Return a duration for people: ``0.2 s``, ``3 min 20 s``, ``2 h 05 min``.
    """
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"
