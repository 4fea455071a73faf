"""
What is drawn of a run, and the page that holds it.
"""

import base64
import hashlib
import json
import os
import re
import stat
import time
from pathlib import Path

import browsing
import jobs
import pytest
from browsing import told_by_files, told_by_lines
from hypothesis import given, settings, strategies as st
from running import run_here  # noqa: F401

from elastic_events.reading.records import Record
from elastic_events.reading.timeline.page import page
from elastic_events.reading.timeline.picture import picture
from elastic_events.reading.timeline.pieces import (
    LEVELS,
    MARK_KINDS,
    SPAN_KINDS,
    Picture,
)
from elastic_events.reading.timeline.scrapbook import Scrapbook


DATA = Path(__file__).parent / "data"
NAN = sorted((DATA / "recorded").glob("loss_is_nan.*.jsonl"))
RAW = DATA / "torchrun"


def ends(picture, lane):
    """
    Return how the worker of a lane ended in each attempt.
    """
    return [
        (span.attempt, span.kind)
        for span in picture.spans
        if picture.lanes[span.lane].name == lane
    ]


def marks_of(picture, kind):
    return [
        (picture.lanes[mark.lane].name, mark.attempt, mark.text)
        for mark in picture.marks
        if mark.kind == kind
    ]


def data_of(html):
    """
    Return the data of a page, as its script reads it.
    """
    (data,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>',
        html,
        re.DOTALL,
    )
    return json.loads(data)


def failed_job():
    job = jobs.Job(3, 2)
    job.begin(0)
    job.fail(0, 3, will_restart=True)
    job.begin(1)
    job.fail(1, 2, exit_code=-9)
    return job


@pytest.fixture(name="drawn", scope="module")
def _drawn():
    """
    The picture of a real job: a restart, a killed worker, a lost node.
    """
    (drawn,) = told_by_files(*NAN).pictures
    return drawn


class TestRecordedJob:
    def test_lanes(self, drawn):
        """A node has a lane, and its workers below it; the failed first."""
        names = [lane.name for lane in drawn.lanes]

        assert [
            *("node0_13524_0", "rank 0", "rank 1"),
            *("node1_13579_0", "rank 2", "rank 3"),
            *("node2_13580_0", "rank 4", "rank 5"),
        ] == names
        assert [0, 0, 0, 3, 3, 3, 6, 6, 6] == [
            lane.node for lane in drawn.lanes
        ]

    def test_workers(self, drawn):
        """Each attempt of a worker is a span, by how it ended."""
        assert {
            "rank 0": [(0, "stopped"), (1, "stopped"), (2, "failed")],
            "rank 1": [(0, "stopped"), (1, "failed"), (2, "killed")],
            "rank 2": [(0, "stopped"), (1, "stopped"), (2, "stopped")],
            "rank 3": [(0, "killed"), (1, "failed"), (2, "stopped")],
            "rank 4": [(0, "stopped"), (1, "lost")],
            "rank 5": [(0, "stopped"), (1, "lost")],
        } == {f"rank {rank}": ends(drawn, f"rank {rank}") for rank in range(6)}

    def test_nodes(self, drawn):
        """A node's lane shows the worst end, and what is between attempts."""
        lost = [
            (span.attempt, span.kind) for span in drawn.spans if span.lane == 6
        ]

        assert [
            (0, "stopped"),
            (1, "lost"),
            (None, "waiting"),
            (None, "waiting"),
            (None, "silent"),
        ] == lost

    def test_causes(self, drawn):
        """The first cause of each attempt is marked; the last is the run's."""
        assert [
            (
                "rank 1",
                2,
                "first cause: rank 1 died by SIGABRT; its error data says"
                " ValueError: loss is nan at step 1200",
            ),
            ("rank 3", 0, "first cause: rank 3 died by SIGKILL"),
            (
                "node2_13580_0",
                1,
                "first cause: node node2_13580_0 was lost",
            ),
        ] == marks_of(drawn, "cause")
        first = drawn.marks[drawn.first]
        assert "rank 1" == drawn.lanes[first.lane].name
        assert ["rank 0", "rank 2", "rank 3"] == sorted(
            drawn.lanes[drawn.marks[number].lane].name
            for number in first.victims
        )

    @pytest.mark.parametrize("job", ["loss_is_nan", "peer_lost"])
    def test_time_of_cause(self, job):
        """The run's first cause stands where ``explain`` says it was."""
        told = told_by_files(*sorted((DATA / "recorded").glob(f"{job}.*")))
        (drawn,), (verdict,) = told.pictures, told.verdicts

        assert verdict.cause.time == drawn.base + drawn.marks[drawn.first].at

    def test_others(self, drawn):
        """Restarts and nodes given up are marked where they were seen."""
        names = [name for name, _, _ in marks_of(drawn, "restart")]
        nodes = ["node0_13524_0", "node1_13579_0", "node2_13580_0"]

        assert [nodes[0]] * 2 + [nodes[1]] * 2 + [nodes[2]] == names
        assert [(nodes[0], None, f"gave up {nodes[2]}")] == marks_of(
            drawn, "removed"
        )

    def test_account(self, drawn):
        """The headline is what ``explain`` says."""
        assert "Run llm-7b: FAILED" == drawn.account[0]
        assert (
            "rank 1 died by SIGABRT; its error data says ValueError: loss"
            " is nan at step 1200" == drawn.summary
        )

    def test_lines(self, drawn):
        """Every line that a span or mark names is in the page."""
        data = data_of(told_by_files(*NAN).html)
        lines = {file.name: file.read_text().splitlines() for file in NAN}

        assert 0 == data["linesLeftOut"]
        for number, (file, line) in enumerate(data["places"]):
            name = Path(data["texts"][file]).name
            assert lines[name][line - 1] == data["lines"][str(number)]


class TestPicture:
    def test_ends(self):
        """A made-up job of two attempts is drawn as it was."""
        (drawn,) = told_by_lines(failed_job().lines()).pictures

        assert [(0, "failed"), (1, "stopped")] == ends(drawn, "rank 3")
        assert [(0, "stopped"), (1, "killed")] == ends(drawn, "rank 2")
        assert "first cause: rank 2 died by SIGKILL" == (
            drawn.marks[drawn.first].text
        )
        assert 5 == len(drawn.marks[drawn.first].victims)

    def test_start(self):
        """Workers run from when the first was started, not from the round."""
        job = jobs.Job(1, 2)
        (agent,) = job.agents
        agent.join(0, 1)
        for local_rank in range(2):
            agent.now += 900
            agent.worker("START", 0, local_rank, 1)
        job.fail(0, 1)
        (drawn,) = told_by_lines(job.lines()).pictures

        assert [
            ("waiting", 0, 700, "waited for the rendezvous, 0.7 s"),
            ("idle", 700, 1600, "no worker ran, for 0.9 s"),
            ("failed", 1600, 62_500, "2 workers (1 failed, 1 stopped)"),
        ] == sorted(
            (
                (span.kind, span.start, span.end, span.text)
                for span in drawn.spans
                if span.lane == 0
            ),
            key=lambda span: span[1],
        )

    def test_any_order(self):
        """The same is drawn whatever the order of the lines."""

        def shape(drawn):
            return (
                [lane.name for lane in drawn.lanes],
                sorted(span[:6] for span in drawn.spans),
                sorted(str(mark[:6]) for mark in drawn.marks),
            )

        shapes = [
            shape(told_by_lines(failed_job().lines(seed)).pictures[0])
            for seed in (None, 1, 2)
        ]

        assert [shapes[0]] * 2 == shapes[1:]

    def test_success(self):
        """A run that succeeded has no marks."""
        job = jobs.Job(2, 2)
        job.begin(0)
        job.succeed(0)
        (drawn,) = told_by_lines(job.lines()).pictures

        assert () == drawn.marks
        assert None is drawn.first
        assert [(0, "succeeded")] == ends(drawn, "rank 3")

    def test_no_clock(self):
        """Lines without a time are drawn in the order of their file."""
        file = RAW / "crash_no_restart.jsonl"
        (drawn,) = told_by_files(file).pictures
        last = len(file.read_text().splitlines())

        assert None is drawn.base
        assert 1 <= drawn.first_line <= drawn.first_line + drawn.length <= last

    def test_told_to_stop(self):
        """A signal to the agent is marked on its node."""
        job = jobs.Job(1, 1)
        job.begin(0)
        job.agents[0].log(jobs.API, "Received 15 death signal, shutting down")
        (drawn,) = told_by_lines(job.lines()).pictures
        marks = marks_of(drawn, "signal") + marks_of(drawn, "cause")

        assert [job.agents[0].id] == [name for name, _, _ in marks]

    def test_unknown_lost_node(self):
        """A node of which others alone tell has a lane."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.agents[0].rendezvous(
            "As part of the sync operation the node(s) 'node7_1_0' have been"
            " removed from the rendezvous 'job' since they had no heartbeat."
        )
        (drawn,) = told_by_lines(job.lines()).pictures

        assert ["node7_1_0"] == [
            name for name, _, _ in marks_of(drawn, "lost")
        ]

    def test_gap(self):
        """A node that is silent for long between keep-alives is marked."""
        job = jobs.Job(1, 1)
        job.begin(0)
        agent = job.agents[0]
        for pause in (5, 5, 5, 60, 5, 5, 5, 5, 5, 5, 5, 5):
            agent.now += pause * 1000
            agent.say(
                kind="rdzv",
                name="dynamic_rendezvous.py:_Op._keep_alive",
                message=f"The node '{agent.id}' updated its keep-alive"
                " heartbeat time for the rendezvous 'job'. Pending sync.",
                run_id="job",
                node_state="RUNNING",
            )
        (drawn,) = told_by_lines(job.lines()).pictures

        assert [
            (
                agent.id,
                None,
                "no keep-alive for 1 min 00 s (usually every 5.0 s)",
            )
        ] == marks_of(drawn, "gap")

    def test_notes(self):
        """Warnings and errors of other loggers are marked on their worker."""
        job = jobs.Job(1, 2)
        job.begin(0)
        agent = job.agents[0]
        agent.say(
            kind="log",
            level="error",
            message="loss \u202e is nan",
            logger="train",
            pid=agent.pids(0)[1],
        )
        (drawn,) = told_by_lines(job.lines()).pictures

        assert [("rank 1", None, "loss \\u202e is nan")] == marks_of(
            drawn, "note"
        )

    def test_two_runs(self):
        """What is of another run is not drawn."""
        others = jobs.Job(1, 1, run_id="other")
        others.begin(0)
        others.succeed(0)
        for agent in others.agents:
            for line in agent.lines:
                line["hostname"] = "elsewhere"
        told = told_by_lines([*failed_job().lines(), *others.lines()])

        assert {"job": 9, "other": 2} == {
            each.run_id: len(each.lanes) for each in told.pictures
        }


def test_large():
    """A thousand nodes that all fail are drawn in bounded time and size."""
    job = jobs.Job(1000, 8)
    job.begin(0)
    job.fail(0, 4321)
    for agent in job.agents:
        agent.rendezvous("RendezvousClosedError: ", error_trace="closed")
        agent.lines[-1]["node_state"] = "FAILED"
    start = time.monotonic()
    told = told_by_lines(job.lines())
    html = told.html

    # Ten times what it takes.
    assert time.monotonic() - start < 40
    assert len(html) < 20_000_000
    assert 9000 == len(told.pictures[0].lanes)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.just("</script><script>alert(1)</script>"),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=60)
@given(st.data())
def test_any_values(data):
    """Whatever the values of keys, what is drawn is within its bounds."""
    lines = failed_job().lines()
    for _ in range(data.draw(st.integers(1, 12))):
        line = lines[data.draw(st.integers(0, len(lines) - 1))]
        key = data.draw(st.sampled_from(sorted(line)))
        line[key] = data.draw(ODD)
    told = told_by_lines(lines)

    for drawn in told.pictures:
        check(drawn)
    if told.pictures:
        assert len(told.pictures) == len(data_of(told.html)["runs"])


def check(drawn: Picture):
    lanes = range(len(drawn.lanes))
    # Ten thousand years.
    assert drawn.length < 10_000 * 366 * 86_400_000
    assert {lane.node for lane in drawn.lanes} <= set(lanes)
    for span in drawn.spans:
        assert span.lane in lanes
        assert span.kind in SPAN_KINDS
        assert 0 <= span.start <= span.end <= drawn.length
    for mark in drawn.marks:
        assert mark.lane in lanes
        assert mark.kind in MARK_KINDS
        assert mark.level in LEVELS
        assert 0 <= mark.at <= drawn.length
        assert set(mark.victims) <= set(range(len(drawn.marks)))


class TestPage:
    def test_hashes(self):
        """Only the style and the script of the page may act."""
        html = told_by_files(*NAN).html
        (policy,) = re.findall(r'Security-Policy" content="([^"]*)"', html)

        def digest(text):
            found = hashlib.sha256(text.encode()).digest()
            return f"'sha256-{base64.b64encode(found).decode()}'"

        (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
        (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
        assert (
            f"default-src 'none'; script-src {digest(script)};"
            f" style-src {digest(style)}; base-uri 'none'; form-action 'none'"
            == policy
        )
        assert not re.search(r"innerHTML|\beval\b|insertAdjacent", script)

    def test_escapes(self):
        """Nothing in the data ends its element."""
        job = jobs.Job(1, 1, run_id="</script><!--\u2028&")
        job.begin(0)
        html = told_by_lines(job.lines()).html
        _, _, data = html.partition('id="data">')
        data = data.partition("</script>")[0]

        assert not set("<>&\u2028\u2029") & set(data)
        assert "</script><!--\\u2028&" == json.loads(data)["runs"][0]["runId"]

    def test_few_bytes(self):
        """Lines are left out where there is no room, and that is said."""
        told = told_by_files(*NAN)
        least = data_of(page(told.pictures, told.scrapbook.line, most_bytes=0))
        (mark,) = (least["runs"][0]["marks"][least["runs"][0]["first"]],)

        assert 0 == least["linesLeftOut"]
        assert str(mark[6]) in least["lines"]

    def test_no_room(self):
        """What is least grave is left out first."""
        long = "x" * 60_000
        lines = failed_job().lines()
        for line in lines:
            line["padding"] = long
        told = told_by_lines(lines)
        data = data_of(page(told.pictures, told.scrapbook.line, most_bytes=0))
        marks = data["runs"][0]["marks"]
        causes = [mark for mark in marks if MARK_KINDS[mark[1]] == "cause"]

        assert 0 < data["linesLeftOut"] < len(data["places"])
        assert all(
            str(place) in data["lines"]
            for mark in causes
            for place in mark[6:]
        )

    def test_too_many_runs(self):
        """Runs for which there is no room are named instead."""
        told = told_by_lines(failed_job().lines())
        again = [
            told.pictures[0]._replace(run_id=f"run {number}")
            for number in range(3)
        ]
        data = data_of(page(again, told.scrapbook.line, most_bytes=0))

        assert ["run 0"] == [run["runId"] for run in data["runs"]]
        assert ["run 1", "run 2"] == data["runsLeftOut"]


class TestScrapbook:
    def test_bound(self):
        """It keeps so many bytes of lines, most of what went wrong."""
        book = Scrapbook(most_bytes=(2000, 500))
        lines = failed_job().lines()
        for number, line in enumerate(lines):
            raw = json.dumps(line).encode()
            book.see(Record("f", number, raw, line))
        sizes = {"error": 0, "warning": 0, "info": 0}
        for number, line in enumerate(lines):
            sizes[line["level"]] += len(book.line(f"f:{number}") or "")

        assert 0 < sizes["info"] <= 500
        assert 500 < sizes["error"] + sizes["warning"] <= 2000

    def test_any_level(self):
        """A level that is no text is none."""
        book = Scrapbook()
        line = {"kind": "log", "level": ["error"], "hostname": "h", "pid": 1}
        book.see(Record("f", 1, b"{}", line))

        assert {} == book.notes

    def test_long_line(self):
        """Of a long line the beginning is kept."""
        book = Scrapbook()
        line = {"kind": "log", "level": "error", "timestamp": 1}
        line |= {"hostname": "h", "pid": 1, "message": "x"}
        book.see(Record("f", 1, b"y" * 100_000, line))

        assert "y" * 65_536 + " … (cut)" == book.line("f:1")


class TestCommand:
    def test_page(self, run, tmp_path):
        """The page is written where it was wanted, and that is said."""
        out = tmp_path / "out.html"
        status, shown, told = run("timeline", *NAN, "-O", out)

        assert (0, b"") == (status, shown)
        assert f"wrote {out}\n" == told
        assert "llm-7b" == data_of(out.read_text())["runs"][0]["runId"]

    def test_stdout(self, run):
        """A dash stands for standard output."""
        status, shown, told = run("timeline", *NAN, "-O", "-")

        assert (0, "") == (status, told)
        assert shown.startswith(b"<!doctype html>")

    def test_default(self, run, tmp_path, monkeypatch):
        """Without -O such a page is replaced, and nothing else."""
        monkeypatch.chdir(tmp_path)
        file = tmp_path / "timeline.html"

        assert 0 == run("timeline", *NAN)[0]
        assert 0 == run("timeline", *NAN)[0]
        file.write_text("my own page")
        status, _, told = run("timeline", *NAN)
        assert 2 == status
        assert 1 == told.count("\n")
        assert "my own page" == file.read_text()
        assert 0 == run("timeline", *NAN, "-O", "timeline.html")[0]

    def test_log(self, run, tmp_path):
        """A log that -O names by mistake is not replaced."""
        log = tmp_path / "a.jsonl"
        log.write_text("{}\n")
        status, _, told = run("timeline", "-O", log, *NAN)

        assert 2 == status
        assert f"elastic-events: {log} exists, and is no timeline" in told
        assert "{}\n" == log.read_text()

    def test_unwritable(self, run, tmp_path):
        """What cannot be written is told in one line."""
        out = tmp_path / "none" / "out.html"
        status, _, told = run("timeline", *NAN, "-O", out)

        assert 2 == status
        assert (
            f"elastic-events: cannot write {out}:"
            " No such file or directory\n" == told
        )

    def test_no_run(self, run, tmp_path):
        """A run that is not there is told of, and nothing is written."""
        out = tmp_path / "out.html"
        arguments = ("timeline", *NAN, "-O", out, "--run-id", "x")
        status, _, told = run(*arguments)

        assert 2 == status
        assert "elastic-events: no such run: x; expected one of llm-7b" in told
        assert not out.exists()

    def test_run_id(self, run, tmp_path):
        """One run of several is drawn, its agents' logs with it."""
        out = tmp_path / "out.html"
        files = (DATA / "recorded").glob("*.jsonl")
        run("timeline", *files, "-O", out, "--run-id", "llm-7b")
        (drawn,) = data_of(out.read_text())["runs"]

        assert "llm-7b" == drawn["runId"]
        kinds = {MARK_KINDS[mark[1]] for mark in drawn["marks"]}
        assert {"cause", "restart", "stopped"} <= kinds

    def test_order(self, run, tmp_path):
        """Runs that failed are offered first."""
        fine = jobs.Job(1, 1, run_id="fine")
        fine.begin(0)
        fine.succeed(0)
        file = tmp_path / "fine.jsonl"
        file.write_text(jobs.as_text(fine.lines()))
        out = tmp_path / "out.html"
        run("timeline", file, *NAN, "-O", out)

        assert ["llm-7b", "fine"] == [
            each["runId"] for each in data_of(out.read_text())["runs"]
        ]

    def test_open(self, run, tmp_path, monkeypatch):
        """The page is shown in the browser where that is wanted."""
        opened = []
        monkeypatch.setattr("webbrowser.open", opened.append)
        out = tmp_path / "out.html"
        run("timeline", *NAN, "-O", out, "--open")

        assert [out.as_uri()] == opened

    def test_open_nothing(self, run):
        """What went to standard output cannot be shown in the browser."""
        assert 2 == run("timeline", *NAN, "-O", "-", "--open")[0]

    def test_mode(self, run, tmp_path):
        """The page has the permissions of any new file."""
        out = tmp_path / "out.html"
        run("timeline", *NAN, "-O", out)
        mask = os.umask(0)
        os.umask(mask)

        assert 0o666 & ~mask == stat.S_IMODE(out.stat().st_mode)


def test_pure():
    """The same verdict gives the same picture, and is not changed."""
    told = told_by_lines(failed_job().lines())
    before = repr(told.verdicts)

    assert picture(told.verdicts[0]) == picture(told.verdicts[0])
    assert before == repr(told.verdicts)
    assert browsing.told_by_lines(failed_job().lines()).html == told.html
