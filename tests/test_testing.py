import concurrent.futures
import importlib.metadata
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
import structlog
from hypothesis import given, strategies as st
from saying import EVENT, SAID, log_saying

import elastic_events as ee
from elastic_events import encoding
from elastic_events.testing import (
    VOLATILE_KEYS,
    CapturedEvents,
    capture_events,
)


ROOT = Path(__file__).parents[1]


@pytest.fixture(name="file")
def _file(tmp_path):
    return tmp_path / "events.jsonl"


@pytest.fixture(name="plain")
def _plain():
    """
    A stdlib logger without handlers.
    """
    logger = logging.getLogger("plain")
    logger.setLevel(1)
    logger.propagate = False
    yield logger
    logger.handlers = []


def valid(captured, validate):
    """
    Return the *captured* lines without what changes, each validated.
    """
    for line in captured:
        assert line == validate(encoding.encode(line))
    return captured.stable


class TestDoors:
    @pytest.mark.parametrize("when", ["before", "within"])
    @pytest.mark.parametrize("kind", ["null", "file", "queue", "console"])
    def test_every_door(self, file, plain, capfd, validate, kind, when):
        """Whatever the door, the destination, and when it was made."""
        destination = {"file": f"file:{file}", "queue": f"queue:file:{file}"}
        where = destination.get(kind, kind)

        def doors():
            ee.configure(where)
            return (
                ee.get_logger(where, name="mine"),
                ee.get_logging_handler(where),
                ee.EventHandler(where),
                structlog.get_logger("structlog's").bind(b=2),
                ee._get_or_create_logger(where),
            )

        made = doors() if when == "before" else None
        with capture_events() as captured:
            log, handler, other, structlogs, stdlibs = made or doors()
            ee.record(EVENT, where)
            log.record(EVENT)
            log.bind(run_id="r").info("a %s", 1, step=2)
            structlogs.record(EVENT)
            structlogs.info("b")
            handler.info(EVENT)
            handler.info("c")
            plain.handlers = [other]
            plain.info("d %s", 2, extra={"e": 3})
            stdlibs.info(EVENT)

        assert [
            SAID,
            SAID,
            log_saying("a 1", "mine", metadata={"step": 2}, run_id="r"),
            {**SAID, "b": 2},
            log_saying("b", "structlog's", b=2),
            SAID,
            log_saying("c", "elastic_events"),
            log_saying("d 2", "plain", metadata={"e": 3}),
            SAID,
        ] == valid(captured, validate)
        assert not file.exists()
        assert ("", "") == tuple(capfd.readouterr())

    def test_kept_methods(self, file):
        """Methods that were kept from before are captured."""
        log = ee.get_logger(name="x")
        handler = ee.get_logging_handler()
        says = [log.record, log.info, handler.info]
        with capture_events() as captured:
            for say in says:
                say(EVENT)

        assert [SAID] * 3 == captured.stable

    def test_rendezvous(self, here, validate):
        """Steps of a rendezvous are captured, registered or not."""
        for target in ("null", lambda _: None):
            ee.register_destination("dynamic_rendezvous", target)
            with capture_events() as captured:
                ee.construct_and_record_rdzv_event(
                    "job", "joined", ee.NodeState.RUNNING, rank=1
                )

            assert [
                {
                    "level": "info",
                    "kind": "rdzv",
                    "name": "test_testing.py:test_rendezvous",
                    "message": "joined",
                    "source": "AGENT",
                    "run_id": "job",
                    "rank": 1,
                    "node_state": "RUNNING",
                }
            ] == valid(captured, validate)
            assert [here] == [
                {key: line[key] for key in here} for line in captured
            ]

    def test_level_and_processors(self, plain):
        """Levels and processors have the say that they always have."""

        def drop(_, __, line):
            if line["message"] == "drop":
                raise structlog.DropEvent
            return line

        given_to = {"level": "warning", "processors": [drop, ee.redact()]}
        logs = [ee.get_logger("null", name="x", **given_to)]
        plain.handlers = [ee.EventHandler("null", **given_to)]
        with capture_events() as captured:
            logs.append(ee.get_logger("null", name="x", **given_to))
            for log in logs:
                log.info("low")
                log.warning("drop")
                log.warning("m", token="t")
            plain.info("low")
            plain.warning("drop")
            plain.warning("m", extra={"token": "t"})

        assert [("m", {"token": "[redacted]"})] * 3 == [
            (line["message"], line["metadata"]) for line in captured
        ]

    def test_unreadable(self, validate):
        """What cannot be read is captured as the line that says so."""

        class Evil(ee.Event):
            def __getattribute__(self, name):
                raise ZeroDivisionError(name)

        with capture_events() as captured:
            ee.record(object.__new__(Evil))
            ee.record(7)

        assert ["warning", "warning"] == [
            line["level"] for line in valid(captured, validate)
        ]

    def test_bad_destination(self):
        """A destination that does not exist is the error that it is."""
        with capture_events() as captured:
            with pytest.raises(ee.UnknownDestination):
                ee.record(EVENT, "nowhere")

        assert [] == captured

    def test_failures(self):
        """The failure of a worker is captured, and raised."""
        with capture_events() as captured:
            with pytest.raises(ValueError, match="boom"):
                with ee.record_failures():
                    raise ValueError("boom")

        assert "ValueError: boom" in captured.one()["error_trace"]

    @given(
        st.lists(
            st.dictionaries(
                st.text(max_size=5),
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats()
                | st.text(max_size=20),
                max_size=4,
            ),
            max_size=5,
        )
    )
    def test_same_line(self, frozen, given):
        """A captured line is the line that would have been written."""
        written = []
        name = "same"
        for _ in "to begin", "anew":
            ee.register_destination(name, written.append)
        for metadata in given:
            ee.record(ee.Event("n", "WORKER", metadata=metadata), name)
        ee.register_destination(name, written.append)
        with capture_events() as captured:
            for metadata in given:
                ee.record(ee.Event("n", "WORKER", metadata=metadata), name)

        assert [encoding.decode(line) for line in written] == captured
        assert written == [encoding.encode(line) for line in captured]


class TestCapturing:
    def test_nothing_left(self, file, capfd):
        """Afterwards all is as before: lines, numbers, health."""
        log = ee.get_logger(f"file:{file}", name="x")
        queued = ee.get_logger(f"queue:file:{file}", name="x")
        null, handler = ee.get_logger(), ee.EventHandler()
        log.info("1")
        queued.info("2")
        with capture_events() as captured:
            log.info("no")
            queued.info("no")
            ee.record(EVENT, "console")
        log.info("3")
        queued.info("4")
        ee.record(EVENT)
        null.info("no")
        handler.handle(logging.makeLogRecord({"msg": "no"}))
        ee.flush()
        lines = [json.loads(line) for line in file.read_text().splitlines()]

        assert [(f"{n + 1}", n) for n in range(4)] == [
            (line["message"], line["seq"]) for line in lines
        ]
        assert [2, 3, 0] == [line["seq"] for line in captured]
        assert [0, 4] == [each["recorded"] for each in ee.health().values()]
        assert isinstance(ee.get_logging_handler(), logging.NullHandler)
        assert ("", "") == tuple(capfd.readouterr())

    def test_exception(self, sink):
        """It is undone when the block raises."""
        kept = []

        def work():
            with capture_events() as captured:
                kept.append(captured)
                ee.record(EVENT, "sink")
                raise KeyError

        with pytest.raises(KeyError):
            work()
        ee.record(EVENT, "sink")
        (captured,) = kept

        assert [SAID] == captured.stable
        assert 0 == sink.one["seq"]

    def test_nested(self, sink):
        """The innermost gets the lines, alone."""
        log = ee.get_logger("sink")
        with capture_events() as outer:
            log.info("1")
            with capture_events() as inner:
                log.info("2")
            log.info("3")
            with capture_events() as empty:
                pass
            log.info("4")

        assert [["1", "3", "4"], ["2"], []] == [
            [line["message"] for line in captured]
            for captured in (outer, inner, empty)
        ]
        assert [] == sink

    def test_not_in_order(self):
        """Captures that overlap may end in any order."""
        first, second = capture_events(), capture_events()
        one, other = first.__enter__(), second.__enter__()
        first.__exit__(None, None, None)
        ee.record(EVENT)
        second.__exit__(None, None, None)
        ee.record(EVENT)

        assert ([], [SAID]) == (one, other.stable)

    def test_made_within(self):
        """What was made within a capture is silent after it, and captured."""
        with capture_events():
            log, handler = ee.get_logger(name="x"), ee.EventHandler()
        log.info("no")
        handler.info("no")
        with capture_events() as captured:
            log.info("yes")
            handler.info("yes")

        assert [
            log_saying("yes", "x"),
            log_saying("yes", "elastic_events"),
        ] == captured.stable

    def test_format(self, file):
        """A destination with a format gives lines in that format."""
        destination = f"file:{file}?format=torch"
        with capture_events() as captured:
            ee.record(ee.Event("n", "WORKER", 7), destination)
            ee.get_logger(destination).info("no event")

        assert [
            {"name": "n", "source": "WORKER", "timestamp": 7, "metadata": {}}
        ] == captured

    def test_decorator(self):
        """It can be a decorator, to keep a test from writing."""

        @capture_events()
        def work():
            ee.record(EVENT, "console")
            return 7

        assert 7 == work()

    def test_threads(self):
        """What all threads record is there, once."""
        log = ee.get_logger()

        def work(thread):
            for n in range(200):
                log.info("%s %s", thread, n)

        with capture_events() as captured:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))

        assert sorted(f"{t} {n}" for t in range(4) for n in range(200)) == (
            sorted(line["message"] for line in captured)
        )
        assert [*range(800)] == sorted(line["seq"] for line in captured)

    def test_environment(self, file, monkeypatch):
        """Where the environment sends null is not written to either."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", f"file:{file}")
        with capture_events() as captured:
            ee.record(EVENT)

        assert [SAID] == captured.stable
        assert not file.exists()

    def test_losses(self, capfd):
        """What was lost before is reported to the real destination."""
        taken = []

        def target(line):
            if not taken:
                taken.append(b"")
                raise OSError(28, "full")
            taken.append(line)

        ee.register_destination("full", target)
        ee.record(EVENT, "full")
        with capture_events() as captured:
            ee.record(EVENT, "full")
        ee.record(EVENT, "full")
        _, report, event = taken

        assert [SAID] == captured.stable
        assert ("dropped 1 events", 1) == (
            json.loads(report)["message"],
            json.loads(event)["seq"],
        )

    def test_queued_before(self, file):
        """What was queued before is written, and not captured."""
        log = ee.get_logger(f"queue:file:{file}")
        for n in range(100):
            log.info(str(n))
        with capture_events() as captured:
            log.info("captured")

        assert ["captured"] == [line["message"] for line in captured]
        assert 100 == len(file.read_bytes().splitlines())

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_fork(self, file):
        """A forked child adds nothing here, and writes nothing within."""
        log = ee.get_logger(f"file:{file}", name="x")
        log.info("parent")

        def child(pipe):
            log.info("child")
            pipe.send([line["message"] for line in captured])
            scope.__exit__(None, None, None)
            log.info("after")
            os._exit(0)

        ours, theirs = multiprocessing.Pipe()
        scope = capture_events()
        captured = scope.__enter__()
        log.info("captured")
        process = multiprocessing.get_context("fork").Process(
            target=child, args=(theirs,)
        )
        process.start()
        said = ours.recv()
        process.join()
        scope.__exit__(None, None, None)
        log.info("parent")

        assert ["captured", "child"] == said
        assert ["captured"] == [line["message"] for line in captured]
        assert [("parent", 0), ("after", 0), ("parent", 1)] == [
            (line["message"], line["seq"])
            for line in map(json.loads, file.read_text().splitlines())
        ]

    def test_other_handlers(self, file, plain):
        """Another handler with our formatter writes as ever."""
        handler = logging.FileHandler(file)
        handler.setFormatter(ee.EventFormatter())
        plain.handlers = [handler, ee.EventHandler("console")]
        with capture_events() as captured:
            plain.info("m")
        handler.close()

        assert "m" == json.loads(file.read_text())["message"]
        assert [log_saying("m", "plain")] == captured.stable


@pytest.fixture(name="three")
def _three():
    """
    Three captured lines: an event, another, and a log.
    """
    with capture_events() as captured:
        ee.record(EVENT)
        ee.record(ee.Event("other", "AGENT", metadata={"b": [1, {"c": 2}]}))
        ee.get_logger(name="x").warning("m", step=1)
    return captured


def refusal(call):
    with pytest.raises(AssertionError) as caught:
        call()
    return str(caught.value)


class TestCapturedEvents:
    def test_list(self, three):
        """It is a list of dicts, and so are its parts."""
        assert isinstance(three, list)
        assert three == [*three.events, *three.logs]
        assert ["n", "other"] == [each["name"] for each in three.events]
        assert ["m"] == [each["message"] for each in three.logs]
        assert [three[0]] == three.named("n")
        assert isinstance(three.named("n"), CapturedEvents)
        assert [] == three.named("none")

    def test_stable(self, three):
        """Without what changes from run to run, lines compare whole."""
        assert [SAID] == three.named("n").stable
        assert {
            "level": "warning",
            "kind": "log",
            "message": "m",
            "source": "AGENT",
            "logger": "x",
            "metadata": {"step": 1},
        } == three.logs.stable[0]
        assert VOLATILE_KEYS <= three[0].keys()

    def test_one(self, three):
        """The one line that matches is returned."""
        assert three[0] == three.one("n")
        assert three[0] == three.one(name="n", metadata={"a": 1})
        assert three[2] == three.one(kind="log")

    @pytest.mark.parametrize(
        "expected",
        [
            {},
            {"name": "n"},
            {"name": "n", "metadata": {"a": 1}},
            {"metadata": {"a": ANY}},
            {"metadata": {"a": pytest.approx(1.0000001)}},
            {"source": ee.EventSource.WORKER, "metadata": {}},
            {"metadata": {"b": (1, {})}},
            {"metadata": {"b": [1, {"c": 2}]}},
            {"level": "warning", "message": "m"},
        ],
    )
    def test_has(self, three, expected):
        """A line that has what is expected, and more, is enough."""
        three.assert_has(**expected)

        assert three.matching(**expected)

    @pytest.mark.parametrize(
        ("expected", "differences"),
        [
            ({"name": "N"}, ["name: expected 'N', got 'other'"]),
            (
                {"name": "other", "rank": 1, "metadata": {"b": [1]}},
                [
                    "rank: expected 1, there is none",
                    "metadata.b: expected [1], got [1, {'c': 2}]",
                ],
            ),
            (
                {"name": "other", "metadata": {"b": [1, {"c": 3}]}},
                ["metadata.b[1].c: expected 3, got 2"],
            ),
            (
                {"name": "n", "metadata": {"a": {"x": 1}}},
                ["metadata.a: expected {'x': 1}, got 1"],
            ),
            (
                {"name": "n", "metadata": {"a": np.array([1, 2])}},
                ["metadata.a: expected array([1, 2]), got 1"],
            ),
        ],
    )
    def test_message(self, three, expected, differences):
        """The message says in what the most similar line differs."""
        said = refusal(lambda: three.assert_has(**expected))
        # Of several that are as similar the last.
        nearest = {"N": 1, "other": 1, "n": 0}[expected["name"]]

        assert [
            f"no captured line has {expected!r}",
            f"line {nearest} is the most similar, but for:",
            *(f"  {each}" for each in differences),
            "captured, without hostname, pid, seq, time, timestamp:",
            *(f"  {n}: {line!r}" for n, line in enumerate(three.stable)),
        ] == said.splitlines()
        assert said == refusal(lambda: three.one(**expected))
        assert [] == three.matching(**expected)

    def test_message_of_nothing(self):
        """The message says that nothing was captured."""
        assert "no captured line has {'name': 'n'}: nothing was captured" == (
            refusal(lambda: CapturedEvents().one("n"))
        )

    def test_message_of_many(self, three):
        """The message says which lines match where one should."""
        said = refusal(lambda: three.one(kind="event"))

        assert said.startswith(
            "expected one line that has {'kind': 'event'}, but 2 have:\n"
            "  0: {'level': 'info'"
        )

    def test_long_message(self):
        """Of very many lines the last are listed."""
        with capture_events() as captured:
            for n in range(100):
                ee.record(ee.Event(f"e{n}", "AGENT"))
        said = refusal(lambda: captured.assert_has(name="x")).splitlines()

        assert "  80 more" == said[4]
        assert 25 == len(said)


TESTS = """
import logging, sys
import elastic_events as ee
import pytest

NULL = ee.get_logger(name="mine")

@pytest.mark.parametrize("n", range(6))
def test_captured(captured_events, n, tmp_path, capsys):
    file = tmp_path / "e.jsonl"
    ee.record(ee.Event("train.step", "WORKER", metadata={"step": n}))
    ee.record(ee.Event("saved", "WORKER"), f"file:{file}")
    ee.get_logger("console").warning("m")
    NULL.info("null")
    print("printed")
    assert [n] == [
        e["metadata"]["step"] for e in captured_events.named("train.step")
    ]
    captured_events.assert_has(name="train.step", metadata={"step": n})
    assert ["m", "null"] == [e["message"] for e in captured_events.logs]
    assert not file.exists()
    assert ("printed\\n", "") == tuple(capsys.readouterr())

def test_others(captured_events):
    assert [] == captured_events

def test_not_captured(capsys):
    ee.get_logger("console").warning("m")
    assert '"message":"m"' in capsys.readouterr().err
"""


def pytest_run(folder, tests, *arguments):
    (folder / "test_it.py").write_text(textwrap.dedent(tests))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--rootdir", folder),
            *("-p", "no:cacheprovider", "-W", "error", *arguments),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


class TestFixture:
    @pytest.mark.parametrize(
        "arguments",
        [
            pytest.param((), id="plain"),
            pytest.param(("-s",), id="-s"),
            pytest.param(("--capture=sys",), id="sys"),
            pytest.param(("-p", "no:logging"), id="no-logging"),
            pytest.param(("-n", "2"), id="xdist"),
        ],
    )
    def test_run(self, tmp_path, arguments):
        """Users' tests find the fixture, however pytest is run."""
        if "-n" in arguments:
            pytest.importorskip("xdist")
        status, said = pytest_run(tmp_path, TESTS, *arguments)

        assert 0 == status, said
        assert "8 passed" in said

    def test_entry_point(self):
        """The distribution tells pytest where the fixture is."""
        (found,) = importlib.metadata.entry_points(
            group="pytest11", name="elastic_events_pytest"
        )

        assert "elastic_events_pytest" == found.value
        assert callable(found.load().captured_events)

    def test_unused(self, tmp_path):
        """A run without the fixture does not even import the package."""
        tests = """
        import sys

        def test_it():
            assert "elastic_events_pytest" in sys.modules
            assert not {"elastic_events", "structlog"} & set(sys.modules)
        """
        status, said = pytest_run(tmp_path, tests)

        assert 0 == status, said

    def test_imported_before(self, tmp_path):
        """It is no reason to warn that the package is imported already."""
        (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
        code = (
            "import elastic_events, elastic_events_hook, pytest, sys\n"
            "sys.exit(pytest.main(['-q', '-W', 'error', '-p',"
            " 'no:cacheprovider']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert 0 == done.returncode, done.stdout + done.stderr

    def test_left_out(self, tmp_path):
        """The plugin can be left out like any other."""
        status, said = pytest_run(
            tmp_path, TESTS, "-p", "no:elastic_events_pytest"
        )

        assert 1 == status
        assert "fixture 'captured_events' not found" in said

    def test_message(self, tmp_path):
        """A failing comparison shows the account, not our own code."""
        tests = """
        import elastic_events as ee

        def test_it(captured_events):
            ee.record(ee.Event("n", "WORKER"))
            captured_events.assert_has(name="m")
        """
        status, said = pytest_run(tmp_path, tests)

        assert 1 == status
        assert "name: expected 'm', got 'n'" in said
        assert "def assert_has" not in said

    def test_without_pytest(self):
        """The package's own module needs no pytest."""
        code = """
        import sys
        sys.modules["pytest"] = None
        import elastic_events as ee
        from elastic_events.testing import capture_events
        with capture_events() as captured:
            ee.record(ee.Event("n", "WORKER"))
        assert ["n"] == [line["name"] for line in captured]
        """
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            check=True,
            timeout=60,
        )
