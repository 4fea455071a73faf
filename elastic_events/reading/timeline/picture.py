"""
From the verdict on a run to what is drawn of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..escaping import escaped
from ..explaining import explained
from ..painting import plain
from ..summary import summary
from ..verdicts import Verdict
from ..wording import duration_text
from .canvas import Canvas
from .linking import draw_causes
from .nodes import NodeDrawer
from .pieces import Picture
from .places import Clock
from .scrapbook import Gap, Note
from .words import LONGEST_NAME, Words


def picture(
    verdict: Verdict,
    clocks: Mapping[str, float] | None = None,
    *,
    gaps: Mapping[str, Iterable[Gap]] | None = None,
    notes: Mapping[tuple[str, int], Iterable[Note]] | None = None,
    notes_left_out: int = 0,
) -> Picture:
    """
    Return what is drawn of a run.

    Args:
        verdict: What came of the run.

        clocks: Hosts whose clocks are off, and by how many seconds.

        gaps: Silences of each node, of this run or another.

        notes: Lines with a warning or an error, of each process.

        notes_left_out: How many more there were.
    """
    canvas, clock, words = Canvas(), Clock(verdict.run), Words(verdict)
    NodeDrawer(verdict, canvas, clock, words).draw()
    if clock.is_known:
        _draw_gaps(canvas, gaps or {})
        _draw_notes(canvas, notes or {}, verdict.run.run_id)
    since = clock.start if clock.is_known else None
    first = draw_causes(verdict, canvas, since)
    base, length = canvas.move_to_base()
    return Picture(
        run_id=escaped(verdict.run.run_id, LONGEST_NAME),
        outcome=verdict.outcome,
        account=tuple(explained(verdict, clocks or {}, paint=plain)),
        summary=summary(verdict.cause) if verdict.cause else "",
        base=base if clock.is_known else None,
        first_line=0 if clock.is_known else base,
        length=length,
        lanes=tuple(canvas.lanes()),
        spans=tuple(canvas.spans),
        marks=tuple(canvas.marks),
        first=first,
        notes_left_out=notes_left_out,
    )


def _draw_gaps(canvas: Canvas, gaps: Mapping[str, Iterable[Gap]]) -> None:
    for node, lane in canvas.nodes.items():
        for gap in gaps.get(node, ()):
            text = (
                f"no keep-alive for {duration_text(gap.end - gap.start)}"
                f" (usually every {duration_text(gap.usual)})"
            )
            canvas.add_mark(lane, "gap", gap.start, text, gap.places)


def _draw_notes(
    canvas: Canvas,
    notes: Mapping[tuple[str, int], Iterable[Note]],
    run_id: str,
) -> None:
    for process, lane in canvas.processes.items():
        for note in notes.get(process, ()):
            if note.run_id in (None, run_id):
                places = (note.place,)
                canvas.add_mark(
                    lane,
                    "note",
                    note.time,
                    note.text,
                    places,
                    level=note.level,
                )
