"""
How long a large timeline takes to draw, in a real browser.

Example: python benchmarks/timeline.py --nodes 1000 --attempts 12
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Page, sync_playwright

from elastic_events.reading.causes import verdict
from elastic_events.reading.records import Record
from elastic_events.reading.story import Story
from elastic_events.reading.timeline.page import page
from elastic_events.reading.timeline.picture import picture
from elastic_events.reading.timeline.scrapbook import Scrapbook


sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import jobs


_STEPS = 40
# Two frames: what a step has changed is on the screen then.
_TIME_OF = """async step => {
    const start = performance.now();
    step();
    const drawn = performance.now() - start;
    await new Promise(done => requestAnimationFrame(
        () => requestAnimationFrame(done)));
    return [drawn, performance.now() - start];
}"""


def main() -> None:
    """
    Draw a made-up job and print what it took.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--attempts", type=int, default=12)
    options = parser.parse_args()
    lines = lines_of(options.nodes, options.workers, options.attempts)
    html = drawn(lines)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.html"
        file.write_text(html)
        tell("HTML", f"{file.stat().st_size / 1e6:.1f} MB")
        measure(file)


def lines_of(nodes: int, workers: int, attempts: int) -> list[dict[str, Any]]:
    """
    Return the lines of a job that fails in each attempt.
    """
    job = jobs.Job(nodes, workers)
    for attempt in range(attempts):
        job.begin(attempt)
        rank = attempt * 997 % (nodes * workers)
        job.fail(attempt, rank, will_restart=attempt + 1 < attempts)
    return job.lines()


def drawn(lines: list[dict[str, Any]]) -> str:
    """
    Return the page, and tell how long it took to make.
    """
    records = [
        Record("job.jsonl", number, json.dumps(line).encode(), line)
        for number, line in enumerate(lines, start=1)
    ]
    start = time.perf_counter()
    story, scrapbook = Story(), Scrapbook()
    for record in records:
        story.see(record)
        scrapbook.see(record)
    gaps = scrapbook.finish()
    (run,) = story.runs()
    found = verdict(run)
    tell(f"read {len(lines)} records", seconds(start))
    start = time.perf_counter()
    made = picture(found, waits=scrapbook.waits, gaps=gaps)
    tell(
        f"{len(made.lanes)} lanes, {len(made.spans)} spans,"
        f" {len(made.marks)} marks",
        seconds(start),
    )
    start = time.perf_counter()
    html = page([made], scrapbook.line)
    tell("page made", seconds(start))
    return html


def measure(file: Path) -> None:
    """
    Open *file* in the browser, and tell how long steps take there.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        shown = browser.new_page(viewport={"width": 1280, "height": 800})
        start = time.perf_counter()
        shown.goto(file.as_uri())
        shown.wait_for_selector("html[data-ready]", state="attached")
        tell("first draw", seconds(start))
        steps(shown, "scroll, nodes closed", "rowsBox.scrollTop += 400")
        steps(shown, "zoom", "zoom(1.1)")
        steps(shown, "pan", "pan(0.02)")
        shown.evaluate("showAll()")
        once(shown, "expand all", "toggleAll()")
        steps(shown, "scroll, all open", "rowsBox.scrollTop += 4000")
        once(shown, "search", "setQuery('rank 7')")
        once(shown, "search text", "setQuery('loss is nan')")
        once(shown, "first failure", "goToFirst()")
        browser.close()


def steps(shown: Page, what: str, step: str) -> None:
    """
    Tell how long one of many steps takes, with the frame that shows it.
    """
    times = [took(shown, step) for _ in range(_STEPS)]
    work, frame = (median(each) for each in zip(*times, strict=True))
    worst = max(each for each, _ in times)
    tell(what, f"{work:.1f} ms (worst {worst:.1f}, on screen {frame:.0f})")


def once(shown: Page, what: str, step: str) -> None:
    """
    Tell how long a step takes.
    """
    work, frame = took(shown, step)
    tell(what, f"{work:.1f} ms (on screen {frame:.0f})")


def took(shown: Page, step: str) -> tuple[float, float]:
    """
    Return the ms of a step's own work, and until it is on the screen.
    """
    work, frame = shown.evaluate(f"({_TIME_OF})(() => {{ {step}; }})")
    return work, frame


def tell(what: str, value: str) -> None:
    """
    Print one row.
    """
    print(f"{what:<48} {value}", flush=True)


def seconds(start: float) -> str:
    """
    Return the time since *start*.
    """
    return f"{time.perf_counter() - start:.2f} s"


if __name__ == "__main__":
    main()
