"""
The timeline in a real browser: what it draws, and what it does.
"""

import json
import re
from pathlib import Path

import jobs
import pytest
from browsing import (
    _browser,  # noqa: F401
    _show,  # noqa: F401
    assert_drawn,
    drawn_spans,
    focused,
    mark_selector,
    open_all,
    rows,
    told_by_files,
    told_by_lines,
    until,
    window,
)


DATA = Path(__file__).parent / "data"
NAN = sorted((DATA / "recorded").glob("loss_is_nan.*.jsonl"))
FIRST = (
    "first cause: rank 1 died by SIGABRT; its error data says ValueError: loss"
    " is nan"
)


@pytest.fixture(name="told", scope="module")
def _told():
    return told_by_files(*NAN)


@pytest.fixture(name="drawn")
def _drawn(told):
    (drawn,) = told.pictures
    return drawn


@pytest.fixture(name="shown")
def _shown(show, told):
    """
    The page of a real job: a restart, a killed worker, a lost node.
    """
    return show(told.html)


class TestPicture:
    def test_real_job(self, shown, drawn):
        """Lanes, spans and marks are those of the model."""
        open_all(shown)

        assert_drawn(shown, drawn)

    @pytest.mark.parametrize(
        "name",
        ["restart_then_ok", "crash_no_restart", "rdzv_connection_error"],
    )
    def test_raw(self, show, name):
        """Lines of torch, without a clock, are drawn in order, and so said."""
        told = told_by_files(DATA / "torchrun" / f"{name}.jsonl")
        shown = show(told.html)
        open_all(shown)
        (drawn,) = told.pictures

        assert_drawn(shown, drawn)
        assert "no clock" in shown.text_content("#notices")
        assert "order of lines" == shown.text_content("#axis-name")
        assert not shown.is_visible("#zone")

    def test_headline(self, shown, drawn):
        """The headline says what ``explain`` says."""
        assert drawn.account[0] == shown.text_content("#headline")
        assert f"First cause: {drawn.summary}" == shown.text_content(
            "#summary"
        )
        assert "\n".join(drawn.account) == shown.text_content("#account")
        assert "llm-7b: failed" == shown.title()

    def test_begin(self, shown):
        """Nodes are closed at first, but for that of the first cause."""
        assert [
            *("node0_13524_0", "rank 0", "rank 1"),
            *("node1_13579_0", "node2_13580_0"),
        ] == rows(shown)

    def test_closed_node(self, shown, drawn):
        """A closed node shows the marks of its workers."""
        lanes = {lane.name: number for number, lane in enumerate(drawn.lanes)}
        row = shown.locator(f'.row[data-lane="{lanes["node1_13579_0"]}"]')
        groups = row.locator("[data-marks]").evaluate_all(
            "all => all.map(each => each.dataset.marks)"
        )
        numbers = {int(each) for group in groups for each in group.split()}

        assert {
            number
            for number, mark in enumerate(drawn.marks)
            if drawn.lanes[mark.lane].node == lanes["node1_13579_0"]
        } == numbers

    def test_crowd(self, show):
        """Marks on one spot are one, with their count; zooming parts them."""
        job = jobs.Job(1, 2)
        job.begin(0)
        for step in range(40):
            job.agents[0].now += 60_000 if step == 20 else 1
            job.agents[0].say(
                kind="log", level="warning", message=f"w{step}", logger="x"
            )
        job.fail(0, 0)
        shown = show(told_by_lines(job.lines()).html)
        counts = shown.locator(".mark .count").all_text_contents()
        assert {"20"} <= set(counts)
        shown.keyboard.press("Tab")
        for _ in range(25):
            shown.keyboard.press("+")

        until(shown, lambda: shown.locator(".mark .count").count() == 0)


class TestDetails:
    def test_hover(self, shown, drawn):
        """What is under the pointer tells what, where and when."""
        shown.hover(mark_selector(drawn.first))

        tip = shown.text_content("#tip").split("\n")
        assert tip[0].startswith(FIRST)
        assert "node0_13524_0, rank 1, attempt 2" == tip[1]
        assert re.fullmatch(r"2026-11-30 10:50:48\.\d{3} UTC", tip[2])
        shown.mouse.move(5, 5)
        assert not shown.is_visible("#tip")

    def test_click(self, shown, drawn):
        """A click shows the lines themselves, with file and number."""
        shown.click(mark_selector(drawn.first))
        expected = drawn.marks[drawn.first].places[::-1]
        places = shown.locator("#details h3").all_text_contents()
        lines = shown.locator("#details pre.json").all_text_contents()

        assert [f"{place}Copy" for place in expected] == [
            place for place in places if place != "error_trace"
        ]
        for place, line in zip(expected, lines, strict=True):
            file, _, number = place.rpartition(":")
            written = Path(file).read_text().splitlines()[int(number) - 1]
            assert json.loads(written) == json.loads(line)
        assert "ValueError: loss is nan" in shown.text_content("#details")

    def test_times(self, show, told, drawn):
        """The details give the time in UTC and in the reader's zone."""
        shown = show(told.html, timezone_id="Asia/Kolkata")
        shown.click(mark_selector(drawn.first))
        times = shown.locator("#details dd").all_text_contents()

        assert any(
            re.match(r"2026-11-30 10:50:48\.\d+ UTC$", t) for t in times
        )
        assert any(
            re.match(r"2026-11-30 16:20:48\.\d+ UTC\+05:30$", t) for t in times
        )

    def test_victims(self, shown, drawn):
        """A chosen first cause is linked to its victims."""
        victims = drawn.marks[drawn.first].victims
        assert 0 == shown.locator("#links path").count()
        open_all(shown)
        shown.click(mark_selector(drawn.first))

        assert sorted(map(str, victims)) == sorted(
            shown.locator("#links path").evaluate_all(
                "all => all.map(each => each.dataset.victim)"
            )
        )
        shown.keyboard.press("Escape")
        assert 0 == shown.locator("#links path").count()
        assert not shown.is_visible("#details")

    def test_span(self, shown, drawn):
        """A click on a span shows from when to when, and its lines."""
        number = next(
            number
            for number, span in enumerate(drawn.spans)
            if drawn.lanes[span.lane].name == "rank 1" and span.attempt == 1
        )
        shown.locator(f'[data-span="{number}"]').click(
            position={"x": 60, "y": 8}
        )

        assert "Worker failed" == shown.text_content("#details h2")
        assert len(drawn.spans[number].places) == (
            shown.locator("#details pre.json").count()
        )

    def test_copy(self, show, told, drawn):
        """A line is copied as it stands in its file."""
        shown = show(
            told.html, permissions=["clipboard-read", "clipboard-write"]
        )
        shown.click(mark_selector(drawn.first))
        shown.click("#details h3 button >> nth=0")
        shown.wait_for_selector("text=Copied")
        copied = shown.evaluate("navigator.clipboard.readText()")

        assert (
            told.scrapbook.line(drawn.marks[drawn.first].places[-1]) == copied
        )

    def test_digits(self, show):
        """Numbers are shown with all their digits, and escapes as escapes."""
        raw = '{"a":12345678901234567890,"b":1.10,"c":[],"d":{"e":"\\u202e"}}'
        job = jobs.Job(1, 1)
        job.begin(0)
        job.fail(0, 0)
        told = told_by_lines(job.lines())
        told.scrapbook.line = lambda place: raw
        shown = show(told.html)
        shown.click(mark_selector(told.pictures[0].first))

        assert (
            '{\n  "a": 12345678901234567890,\n  "b": 1.10,\n  "c": [],\n'
            '  "d": {\n    "e": "\\u202e"\n  }\n}'
        ) == shown.locator("#details pre.json").first.text_content()


class TestMoving:
    def test_zoom(self, shown, drawn):
        """Keys, buttons and the wheel zoom; 0 shows all."""
        whole = (0.0, float(drawn.length))
        assert whole == window(shown)
        shown.focus("#chart")
        shown.keyboard.press("+")
        narrow = window(shown)
        assert whole[0] < narrow[0] < narrow[1] < whole[1]
        shown.click("#zoom-in")
        assert window(shown)[1] - window(shown)[0] < narrow[1] - narrow[0]
        shown.click("#zoom-out")
        shown.keyboard.press("-")
        assert whole == pytest.approx(window(shown))
        shown.hover(".row.node >> nth=0")
        shown.keyboard.down("Control")
        shown.mouse.wheel(0, -200)
        shown.keyboard.up("Control")
        until(shown, lambda: window(shown)[1] < whole[1])
        shown.keyboard.press("0")

        assert whole == window(shown)

    def test_pan(self, shown):
        """Arrows and dragging move the window, and leave its length."""
        shown.focus("#chart")
        shown.keyboard.press("+")
        before = window(shown)
        shown.keyboard.press("ArrowRight")
        after = window(shown)
        assert before[0] < after[0]
        assert before[1] - before[0] == pytest.approx(after[1] - after[0])
        box = shown.locator("#rows").bounding_box()
        x, y = box["x"] + 600, box["y"] + box["height"] - 50
        shown.mouse.move(x, y)
        shown.mouse.down()
        shown.mouse.move(x + 200, y, steps=5)
        shown.mouse.up()
        until(shown, lambda: window(shown)[0] < after[0])

        assert window(shown)[0] < after[0]
        assert not shown.is_visible("#details")

    def test_first_failure(self, shown, drawn):
        """F goes to the first cause, whatever was hidden or searched."""
        shown.fill("#search", "node2")
        shown.click('[data-filter="mark cause"]')
        shown.focus("#chart")
        shown.keyboard.press("f")

        assert f"m{drawn.first}" == focused(shown)
        at = drawn.marks[drawn.first].at
        assert window(shown)[0] < at < window(shown)[1]
        assert "" == shown.input_value("#search")

    def test_keyboard(self, shown, drawn):
        """Everything is reached by the keyboard alone."""
        shown.focus("#chart")
        shown.keyboard.press("Tab")
        assert f"m{drawn.first}" == focused(shown)
        assert shown.text_content("#tip").startswith(FIRST)
        shown.keyboard.press("ArrowLeft")
        assert focused(shown).startswith("s")
        shown.keyboard.press("ArrowRight")
        assert f"m{drawn.first}" == focused(shown)
        shown.keyboard.press("Enter")
        assert "First cause" == shown.text_content("#details h2")
        shown.keyboard.press("Escape")
        assert not shown.is_visible("#details")
        assert f"m{drawn.first}" == focused(shown)
        shown.keyboard.press("ArrowDown")
        assert "node1_13579_0" == shown.evaluate(
            "document.activeElement.closest('.row')"
            ".querySelector('.text').textContent"
        )
        shown.keyboard.press("e")
        assert "rank 3" in rows(shown)
        shown.keyboard.press("x")
        assert 9 == len(rows(shown))
        shown.keyboard.press("x")
        assert 3 == len(rows(shown))

    def test_help(self, shown):
        """A question mark shows the keys, Escape hides them."""
        shown.focus("#chart")
        shown.keyboard.press("?")
        assert shown.is_visible("#help")
        shown.keyboard.press("Escape")

        assert not shown.is_visible("#help")

    def test_toggle(self, shown):
        """A click on a node's name shows its workers, and hides them."""
        shown.click(".row >> text=node2_13580_0")
        assert {"rank 4", "rank 5"} <= set(rows(shown))
        shown.click(".row >> text=node2_13580_0")

        assert not {"rank 4", "rank 5"} & set(rows(shown))


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("3", ["node1_13579_0", "rank 3"]),
            ("rank 4", ["node2_13580_0", "rank 4"]),
            ("NODE2", ["node0_13524_0", "node2_13580_0"]),
            ("loss is nan", ["node0_13524_0", "rank 1"]),
            ("13588", ["node1_13579_0", "rank 3"]),
            ("no such thing", []),
        ],
    )
    def test_search(self, shown, query, expected):
        """Only lanes that match are shown: by rank, host, pid or text."""
        shown.focus("#chart")
        shown.keyboard.press("/")
        shown.keyboard.type(query)

        assert expected == rows(shown)
        assert shown.is_visible("#nothing") is not bool(expected)
        shown.keyboard.press("Escape")
        assert 5 == len(rows(shown))

    def test_kinds(self, shown):
        """A kind that is switched off is not drawn."""
        open_all(shown)
        kinds = {span[2] for span in drawn_spans(shown)}
        shown.click('[data-filter="span waiting"]')
        assert kinds - {"waiting"} == {span[2] for span in drawn_spans(shown)}
        shown.click('[data-filter="mark restart"]')

        assert 0 == shown.locator('[data-kind="restart"]').count()

    def test_levels(self, shown):
        """A level that is switched off is not drawn."""
        open_all(shown)
        for level in ("error", "info"):
            shown.click(f'[data-level="{level}"] input')

        levels = shown.locator(".row .mark").evaluate_all(
            "all => [...new Set(all.map(each => each.dataset.level))]"
        )
        assert ["warning"] == levels

    def test_zone(self, show, told):
        """The axis is in UTC, or in the reader's zone."""
        shown = show(told.html, timezone_id="America/New_York")
        assert "2026-11-30 UTC" == shown.text_content("#axis-name")
        assert "10:50" in shown.text_content("#ticks")
        shown.select_option("#zone", "local")

        assert "2026-11-30 UTC\u221205:00" == shown.text_content("#axis-name")
        assert "05:50" in shown.text_content("#ticks")

    def test_runs(self, show, drawn):
        """One of several runs is picked."""
        other = jobs.Job(1, 1, run_id="other")
        other.begin(0)
        other.succeed(0)
        told = told_by_lines(other.lines())
        told.pictures.append(drawn)
        shown = show(told.html)
        options = shown.locator("#run option").all_text_contents()
        assert ["other: succeeded", "llm-7b: failed"] == options
        assert "Run other: SUCCEEDED" == shown.text_content("#headline")
        shown.select_option("#run", "1")

        assert drawn.account[0] == shown.text_content("#headline")
        assert "node0_13524_0" == rows(shown)[0]

    def test_one_run(self, shown):
        """Where there is one run, there is nothing to pick."""
        assert not shown.is_visible("#run")


def brightness(shown, selector, what):
    """
    Return the relative luminance of a colour, as WCAG has it.
    """
    color = shown.eval_on_selector(
        selector, f"each => getComputedStyle(each).{what}"
    )
    shares = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
        for each in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class TestLooks:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_contrast(self, show, told, scheme):
        """Texts are readable in light and in dark, as the reader prefers."""
        shown = show(told.html, color_scheme=scheme)
        page = brightness(shown, "body", "backgroundColor")
        assert page > 0.9 if scheme == "light" else page < 0.05

        for selector in ("#headline", "#when", "#axis-name", ".name .more"):
            text = brightness(shown, selector, "color")
            low, high = sorted((page, text))
            assert (high + 0.05) / (low + 0.05) >= 4.5, selector

    @pytest.mark.parametrize("width", [360, 700, 1920])
    def test_width(self, show, told, width):
        """It fits screens of any width, and nothing scrolls sideways."""
        shown = show(told.html, viewport={"width": width, "height": 700})
        shown.keyboard.press("f")
        shown.keyboard.press("Enter")

        assert width >= shown.evaluate("document.body.scrollWidth")
        assert shown.locator("#rows").bounding_box()["width"] > 0.4 * width

    def test_print(self, show, told, drawn):
        """In print all lanes are there, on white, without controls."""
        shown = show(told.html, color_scheme="dark")
        open_all(shown)
        shown.emulate_media(media="print", color_scheme="dark")

        assert brightness(shown, "body", "backgroundColor") > 0.99
        assert not shown.is_visible("#controls")
        assert_drawn(shown, drawn)
        assert shown.pdf().startswith(b"%PDF-")

    def test_print_many(self, show):
        """In print lanes are there that were out of sight."""
        job = jobs.Job(120, 1)
        job.begin(0)
        job.succeed(0)
        shown = show(told_by_lines(job.lines()).html)
        assert len(rows(shown)) < 80
        shown.emulate_media(media="print")
        until(shown, lambda: len(rows(shown)) > 100)

        assert 121 == len(rows(shown))
        assert "" == shown.text_content("#cut")

    def test_print_too_many(self, show):
        """Lanes that are too many for print are counted there."""
        job = jobs.Job(320, 1)
        job.begin(0)
        job.succeed(0)
        shown = show(told_by_lines(job.lines()).html)
        shown.emulate_media(media="print")
        until(shown, lambda: len(rows(shown)) == 300)

        # The first node is open.
        assert "and 21 more lanes" == shown.text_content("#cut")

    def test_still(self, show, told):
        """Nothing moves for those who want no motion."""
        shown = show(told.html, reduced_motion="reduce")
        shown.keyboard.press("f")

        assert 0 == shown.evaluate("document.getAnimations().length")

    def test_names(self, shown):
        """All that can be used has a name for those who hear the page."""
        nameless = shown.evaluate(
            """[...document.querySelectorAll("button, input, select, .span,"
            + " .mark")].filter(each => !(each.getAttribute("aria-label")
            || each.textContent.trim() || each.title
            || each.closest("label")?.textContent.trim())).length"""
        )

        assert 0 == nameless
        assert 1 == shown.locator('.row [tabindex="0"]').count()


class TestManyLanes:
    @pytest.fixture(name="many")
    def _many(self, show):
        job = jobs.Job(200, 8)
        job.begin(0)
        job.fail(0, 777)
        told = told_by_lines(job.lines(), "many")
        return show(told.html), told.pictures[0]

    def test_only_visible(self, many):
        """Only rows in sight are in the document, however many there are."""
        shown, drawn = many
        open_all(shown)
        assert len(rows(shown)) < 80
        shown.evaluate("document.getElementById('rows').scrollTop = 1e6")
        last = drawn.lanes[-1].name
        shown.wait_for_selector(f".row >> text={last}")

        assert last == rows(shown)[-1]
        assert len(rows(shown)) < 80

    def test_links(self, many):
        """A cause of very many victims is linked to those in sight."""
        shown, drawn = many
        shown.click(mark_selector(drawn.first))

        assert 0 < shown.locator("#links path").count() < 80
        assert "1599" in shown.text_content("#details dl")
