"""
Pages of the timeline, opened in a real browser.
"""

import json
import shutil
import time

import pytest

from elastic_events.reading import causes
from elastic_events.reading.clocks import ClockWatch
from elastic_events.reading.records import Record
from elastic_events.reading.sources import read
from elastic_events.reading.story import Story
from elastic_events.reading.timeline.page import page
from elastic_events.reading.timeline.picture import picture
from elastic_events.reading.timeline.scrapbook import Scrapbook


SOON = 10_000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Told:
    """
    What lines tell: the pictures of their runs, and the page of them all.
    """

    def __init__(self, records):
        story, clocks, self.scrapbook = Story(), ClockWatch(), Scrapbook()
        for record in records:
            for each in (story, clocks, self.scrapbook):
                each.see(record)
        gaps = self.scrapbook.finish()
        self.verdicts = [causes.verdict(run) for run in story.runs()]
        self.pictures = [
            picture(
                each,
                clocks.offsets(),
                gaps=gaps,
                notes=self.scrapbook.notes,
                notes_left_out=self.scrapbook.notes_left_out,
            )
            for each in self.verdicts
        ]

    @property
    def html(self):
        return page(self.pictures, self.scrapbook.line)


def told_by_lines(lines, file="f"):
    return Told(
        Record(file, number, json.dumps(line).encode(), line)
        for number, line in enumerate(lines, start=1)
    )


def told_by_files(*files):
    findings = []
    told = Told(read([str(each) for each in files], findings.append))
    assert [] == findings
    return told


@pytest.fixture(name="browser", scope="module")
def _browser():
    """
    A browser without a window.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs the extra `browser` (playwright)"
    )
    if CHROMIUM is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        # The sandbox refuses root, who runs the tests in containers.
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(name="show")
def _show(browser, tmp_path):
    """
    Open a page and give it back; nothing may go wrong or leave it.
    """
    opened, wrong = [], []

    def show(html, **options):
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        size = {"width": 1200, "height": 800}
        context = browser.new_context(**{"viewport": size, **options})
        opened.append(context)
        shown = context.new_page()
        shown.set_default_timeout(SOON)
        shown.on("console", lambda message: wrong.append(message.text))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("dialog", lambda dialog: wrong.append(dialog.message))
        url = file.as_uri()
        shown.on(
            "request",
            lambda request: request.url == url or wrong.append(request.url),
        )
        shown.goto(url)
        ready(shown)
        return shown

    show.wrong = wrong
    yield show
    for context in opened:
        context.close()
    assert [] == wrong


def ready(shown):
    shown.wait_for_selector("html[data-ready]", state="attached")


def until(shown, condition):
    """
    Wait until *condition* is met: the page's policy lets nobody else ask.
    """
    deadline = time.monotonic() + SOON / 1000
    while not condition():
        assert time.monotonic() < deadline
        shown.wait_for_timeout(10)


def open_all(shown):
    """
    Give every worker a row.
    """
    if shown.text_content("#expand") == "Expand all":
        shown.click("#expand")


def rows(shown):
    """
    Return the names of the lanes that have a row, from above.
    """
    return shown.locator(".row .text").all_text_contents()


def drawn_spans(shown):
    return shown.eval_on_selector_all(
        ".row [data-span]",
        """all => all.map(({dataset}) => [dataset.span, dataset.lane,
        dataset.kind, dataset.start, dataset.end, dataset.attempt])""",
    )


def drawn_marks(shown):
    return shown.eval_on_selector_all(
        ".row [data-marks]",
        """all => all.map(element => [element.closest(".row").dataset.lane,
        element.dataset.marks, element.dataset.kind, element.dataset.at])""",
    )


def window(shown):
    """
    Return the window of time that is shown, in ms since the run's base.
    """
    return tuple(
        float(shown.get_attribute("#chart", f"data-{name}"))
        for name in ("from", "to")
    )


def focused(shown):
    """
    Return the key of what has the focus, `None` if it has none.
    """
    return shown.evaluate("document.activeElement.dataset.key ?? null")


def mark_selector(number):
    return f'.row [data-marks~="{number}"]'


def assert_drawn(shown, picture):
    """
    Assert that all lanes are open, and all of *picture* is drawn in them.
    """
    assert [lane.name for lane in picture.lanes] == rows(shown)
    assert [
        [
            str(number),
            str(span.lane),
            span.kind,
            str(span.start),
            str(span.end),
            "" if span.attempt is None else str(span.attempt),
        ]
        for number, span in enumerate(picture.spans)
    ] == sorted(drawn_spans(shown), key=lambda span: int(span[0]))
    found = {}
    for lane, numbers, kind, at in drawn_marks(shown):
        marks = [picture.marks[int(number)] for number in numbers.split()]
        assert {int(lane)} == {mark.lane for mark in marks}
        assert (kind, int(at)) in {(mark.kind, mark.at) for mark in marks}
        found.update(dict.fromkeys(map(int, numbers.split())))
    assert set(range(len(picture.marks))) == set(found)
