import os
import subprocess
import sys
import threading
import time

import pytest
import structlog

import elastic_events as ee


EVENT = ee.Event("n", ee.EventSource.WORKER)


@pytest.fixture(name="gate")
def _gate():
    """
    A destination that lets no line pass until it is opened.
    """

    class Gate:
        def __init__(self):
            self.opened = threading.Event()
            self.entered = threading.Event()
            self.lines = []

        def __call__(self, line):
            self.entered.set()
            assert self.opened.wait(timeout=60)
            self.lines.append(line)

    gate = Gate()
    ee.register_destination("gate", gate)
    yield gate
    gate.opened.set()
    assert ee.flush(60)


class TestQueue:
    def test_lines(self, sink):
        """A queue hands on all lines, in order, numbered by the outlet."""
        for _ in range(100):
            ee.record(EVENT, "queue:sink")

        assert ee.flush()
        assert list(range(100)) == [each["seq"] for each in sink.said]

    def test_time_and_context_of_the_call(self, gate, validate):
        """Time and context are those of the call, not of the write."""
        with structlog.contextvars.bound_contextvars(team="x"):
            ee.record(EVENT, "queue:gate")
        before = time.time_ns() // 1_000_000
        time.sleep(0.05)
        gate.opened.set()
        ee.flush()
        said = validate(gate.lines[0])

        assert "x" == said["team"]
        assert said["timestamp"] <= before

    def test_full(self, gate, validate):
        """What finds no room is dropped, counted and said."""
        to = "queue:gate?size=5"
        ee.record(EVENT, to)
        assert gate.entered.wait(timeout=60)
        for _ in range(9):
            ee.record(EVENT, to)

        assert {
            "gate": {
                "recorded": 10,
                "written": 0,
                "dropped": {"QueueFull": 5},
                "queued": 5,
            }
        } == ee.health()

        gate.opened.set()
        assert ee.flush()
        ee.record(EVENT, to)
        ee.flush()
        health = ee.health()["gate"]
        messages = [validate(line)["message"] for line in gate.lines]

        assert 1 == messages.count("dropped 5 events")
        assert 0 == health["queued"]
        assert health["recorded"] == health["written"] + 5
        assert len(gate.lines) == health["written"]

    def test_block(self, gate):
        """With full=block a call waits for room, and nothing is lost."""
        to = "queue:gate?size=2&full=block"
        done = threading.Event()

        def work():
            for _ in range(10):
                ee.record(EVENT, to)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert gate.entered.wait(timeout=60)
        assert not done.wait(timeout=0.1)
        gate.opened.set()
        thread.join(timeout=60)
        ee.flush()

        assert done.is_set()
        assert 10 == len(gate.lines)

    def test_flush_gives_up(self, gate):
        """flush() waits no longer than it is told, and says so."""
        ee.record(EVENT, "queue:gate")
        begin = time.monotonic()

        assert not ee.flush(0.05)
        assert time.monotonic() - begin < 5

    def test_inward_options(self, tmp_path):
        """Options that are not the queue's are the inner destination's."""
        ee.record(EVENT, f"queue:file:{tmp_path}/x?size=10&mode=600")
        ee.flush()

        assert 0o600 == (tmp_path / "x").stat().st_mode & 0o777

    def test_same_outlet(self, tmp_path, validate):
        """With and without the queue, lines are numbered together."""
        to = f"file:{tmp_path}/x"
        ee.record(EVENT, to)
        ee.record(EVENT, f"queue:{to}")
        ee.flush()
        ee.record(EVENT, to)
        lines = (tmp_path / "x").read_bytes().splitlines(keepends=True)

        assert [0, 1, 2] == [validate(each)["seq"] for each in lines]
        assert [to] == list(ee.health())

    def test_null(self):
        """A queue to nowhere is nowhere."""
        ee.record(EVENT, "queue:null")

        assert {} == ee.health()

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("queue:", "unknown destination ''"),
            ("queue:fiel", "unknown destination 'fiel'"),
            ("queue:queue:console", "it is a queue already"),
            ("queue:console?size=0", "'size=0' is no option here"),
            ("queue:console?full=maybe", "'full=maybe' is no option here"),
            ("queue:console?mode=600", "'mode=600' is no option here"),
        ],
    )
    def test_malformed(self, name, text):
        """A queue that cannot be is refused with the reason."""
        with pytest.raises(ee.UnknownDestination, match=text):
            ee.record(EVENT, name)


class TestExit:
    def run(self, code, file):
        return subprocess.run(
            [
                sys.executable,
                "-c",
                "import elastic_events as ee, os, sys, time, atexit\n"
                "event = ee.Event('n', ee.EventSource.AGENT)\n"
                f"to = 'queue:file:{file}'\n" + code,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    def test_drained(self, tmp_path, validate):
        """At exit, what is queued is written; what comes later, at once."""
        file = tmp_path / "x.jsonl"
        done = self.run(
            "atexit.register(ee.record, event, to)\n"
            "for _ in range(2000): ee.record(event, to)\n",
            file,
        )
        lines = file.read_bytes().splitlines(keepends=True)

        assert "" == done.stderr
        assert list(range(2001)) == [validate(each)["seq"] for each in lines]

    def test_early_atexit(self, tmp_path):
        """A function registered before the import records too."""
        file = tmp_path / "x.jsonl"
        code = (
            "import atexit\n"
            "atexit.register(lambda: ee.record(event, to))\n"
            "import elastic_events as ee\n"
            "event = ee.Event('n', ee.EventSource.AGENT)\n"
            f"to = 'queue:file:{file}'\n"
            "ee.record(event, to)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

        assert 2 == len(file.read_bytes().splitlines())

    def test_stalled(self, tmp_path):
        """A sink that stalls holds the end up for a bounded time only."""
        begin = time.monotonic()
        done = self.run(
            "ee.register_destination('slow', lambda _: time.sleep(3600))\n"
            "ee.record(event, 'queue:slow')\n"
            "ee.record(event, 'queue:slow')\n",
            tmp_path / "x",
        )

        assert time.monotonic() - begin < 50
        assert "slow: 2 lines were still queued" in done.stderr

    def test_fork(self, tmp_path, validate):
        """A child begins with an empty queue and a thread of its own."""
        file = tmp_path / "x.jsonl"
        self.run(
            "for _ in range(500): ee.record(event, to)\n"
            "child = os.fork()\n"
            "for _ in range(500): ee.record(event, to)\n"
            "if child: os.waitpid(child, 0)\n",
            file,
        )
        lines = file.read_bytes().splitlines(keepends=True)
        said = [validate(each) for each in lines]
        pids = sorted({each["pid"] for each in said})

        assert 2 == len(pids)
        assert [[*range(500)], [*range(1000)]] == sorted(
            sorted(each["seq"] for each in said if each["pid"] == pid)
            for pid in pids
        )


def test_signal_handler(tmp_path):
    """A signal handler that records through a queue is never stuck."""
    code = f"""
import elastic_events as ee, signal, time
event = ee.Event("n", ee.EventSource.AGENT)
to = "queue:file:{tmp_path}/x?size=1000000"
count = 0
def handle(*_):
    global count
    count += 1
    ee.record(event, to)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    count += 1
    ee.record(event, to)
signal.setitimer(signal.ITIMER_REAL, 0)
assert ee.flush(30)
health = ee.health()["file:{tmp_path}/x"]
assert health["recorded"] == health["written"], health
print(health["recorded"] >= count - 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "True\n" == done.stdout
    assert os.path.getsize(tmp_path / "x")
