import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import pytest
import structlog
from waiting import interrupted_after, run_recording, sums

import elastic_events as ee
from elastic_events.outlets import Outlet
from elastic_events.queued_outlet import QueuedOutlet
from elastic_events.sinks import CallableSink


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

    def test_interrupted_wait(self, gate, monkeypatch):
        """Who is interrupted while it waits for room has lost that line."""
        to = "queue:gate?size=1&full=block"
        ee.record(EVENT, to)
        assert gate.entered.wait(timeout=60)
        with monkeypatch.context() as patched:
            patched.setattr(
                time, "sleep", lambda _: signal.raise_signal(signal.SIGINT)
            )
            with pytest.raises(KeyboardInterrupt):
                ee.record(EVENT, to)

        assert {
            "gate": {
                "recorded": 2,
                "written": 0,
                "dropped": {"KeyboardInterrupt": 1},
                "queued": 1,
            }
        } == ee.health()

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

    def test_memory(self, gate):
        """A line that waits takes little more memory than it has bytes."""
        log = ee.get_logger("queue:gate")
        log.info("first")
        assert gate.entered.wait(timeout=60)
        tracemalloc.start()
        try:
            for _ in range(1000):
                log.info("x")
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert taken < 1000 * 1000

    def test_urgent(self, monkeypatch, tmp_path):
        """A line that is to reach the disk does so from a queue too."""
        synced = []
        monkeypatch.setattr(os, "fdatasync", synced.append)
        monkeypatch.setattr(os, "fsync", synced.append)
        log = ee.get_logger(f"queue:file:{tmp_path}/x?fsync=error")
        log.info("x")
        assert ee.flush(60)
        before = len(synced)
        log.error("y")

        assert ee.flush(60)
        assert (0, 1) == (before, len(synced))

    def test_other_options(self, gate):
        """A queue that is in use cannot be had with other options."""
        ee.record(EVENT, "queue:gate?size=5")
        ee.record(EVENT, "queue:gate")
        ee.record(EVENT, "queue:gate?size=5")
        said = "it is in use with the options {'size': '5'}"
        with pytest.raises(ee.UnknownDestination, match=said):
            ee.record(EVENT, "queue:gate?full=block")
        with pytest.raises(ee.UnknownDestination, match=said):
            ee.record(EVENT, "queue:gate?size=5&full=block")

        assert 3 == ee.health()["gate"]["recorded"]

    def test_registered_anew(self):
        """A queue goes where its destination's name stands for now."""
        before, now = [], []
        ee.register_destination("sink", before.append)
        ee.record(EVENT, "queue:sink?size=5")
        assert ee.flush(60)
        ee.register_destination("sink", now.append)
        ee.record(EVENT, "queue:sink?size=6")
        assert ee.flush(60)

        assert (1, 1) == (len(before), len(now))

    def test_null(self):
        """A queue to nowhere is nowhere."""
        ee.record(EVENT, "queue:null")

        assert {} == ee.health()

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("queue:", "malformed destination 'queue:': expected queue:DEST"),
            ("queue:?size=5", "destination 'queue:.size=5': expected queue:"),
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

    def test_health_at_every_moment(self, switch_often):
        """A line is queued, written or dropped, and never two of these."""

        def sink(_):
            raise OSError

        ee.register_destination("sink", sink)
        log = ee.get_logger("queue:sink")
        thread = threading.Thread(
            target=lambda: [log.record(EVENT) for _ in range(2000)]
        )
        thread.start()
        while thread.is_alive() or ee.health()["sink"]["queued"]:
            said = ee.health()["sink"]

            assert said["written"] >= 0
            assert said["recorded"] == sums(said)


class TestThread:
    @pytest.mark.parametrize("full", ["drop", "block"])
    @pytest.mark.parametrize(
        "error", [SystemExit, KeyboardInterrupt, GeneratorExit, OSError]
    )
    def test_survives(self, error, full):
        """Whatever a sink raises costs that line, and is counted."""
        lines = []

        def sink(line):
            lines.append(line)
            if 1 == len(lines):
                raise error

        ee.register_destination("sink", sink)
        for _ in range(30):
            ee.record(EVENT, f"queue:sink?full={full}")

        assert ee.flush(60)
        assert {
            "sink": {
                "recorded": 31,
                "written": 30,
                "dropped": {error.__name__: 1},
                "queued": 0,
            }
        } == ee.health()

    def test_never_waits_for_itself(self):
        """What a sink records to its own full queue does not wait."""
        to = "queue:sink?size=1&full=block"
        lines = []

        def sink(line):
            lines.append(line)
            if 1 == len(lines):
                ee.record(EVENT, to)

        def work():
            for _ in range(3):
                ee.record(EVENT, to)

        ee.register_destination("sink", sink)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(timeout=60)

        assert not thread.is_alive()
        assert ee.flush(60)
        assert {
            "sink": {
                "recorded": 5,
                "written": 4,
                "dropped": {"QueueFull": 1},
                "queued": 0,
            }
        } == ee.health()

    def test_interrupted(self):
        """Wherever Ctrl-C hits the first line, one thread serves the next."""
        for events in itertools.count(1):
            lines, threads = [], set()

            def sink(line, lines=lines, threads=threads):
                lines.append(line)
                threads.add(threading.get_ident())

            outlet = Outlet(lambda: "sink", CallableSink(sink))
            queue = QueuedOutlet(outlet, size=3, blocks=True)
            interrupted = True
            # threading turns an interrupted wait into a RuntimeError.
            with contextlib.suppress(KeyboardInterrupt, RuntimeError):
                with interrupted_after(events):
                    queue.write(b"1")
                interrupted = False
            queue.write(b"2")
            queue.write(b"3")

            assert queue.backlog.flush(time.monotonic() + 60)
            assert lines in ([b"1", b"2", b"3"], [b"2", b"3"])
            assert 1 == len(threads)
            assert threading.get_ident() not in threads
            if not interrupted:
                break

        assert events > 10

    def test_none_for_a_moment(self, no_threads):
        """A thread that cannot be had is asked for again by the next line."""
        threads = []
        ee.register_destination(
            "sink", lambda _: threads.append(threading.get_ident())
        )
        ee.record(EVENT, "queue:sink")
        at_once = list(threads)
        no_threads.clear()
        ee.record(EVENT, "queue:sink")
        ee.record(EVENT, "queue:sink")

        assert ee.flush(60)
        assert [threading.get_ident()] == at_once
        assert at_once == threads[:1]
        assert 2 == len(threads[1:])
        assert 1 == len({*threads[1:]} - {threading.get_ident()})

    def test_none_while_others_wait(self, monkeypatch):
        """Who gets no thread writes what others left to that thread."""
        lines = []
        outlet = Outlet(lambda: "sink", CallableSink(lines.append))
        queue = QueuedOutlet(outlet, size=3, blocks=True)

        def start(_):
            queue.write(b"0")
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", start)
        queue.write(b"1")

        assert [b"0", b"1"] == lines
        assert 0 == queue.queued()

    def test_interrupted_without(self, no_threads):
        """Wherever ^C hits who gets no thread, the next lines are written."""
        for events in itertools.count(1):
            lines = []
            outlet = Outlet(lambda: "sink", CallableSink(lines.append))
            queue = QueuedOutlet(outlet, size=3, blocks=True)
            queue.backlog.put(b"0")
            interrupted = True
            no_threads[:] = [True]
            with contextlib.suppress(KeyboardInterrupt, RuntimeError):
                with interrupted_after(events):
                    queue.write(b"1")
                interrupted = False
            no_threads.clear()
            queue.write(b"2")
            queue.write(b"3")

            assert queue.backlog.flush(time.monotonic() + 60)
            # Beside them may be one that says what was dropped.
            mine = [each for each in lines if len(each) == 1]
            assert [b"2", b"3"] == mine[-2:]
            assert mine[:-2] in ([b"0", b"1"], [b"0"], [b"1"], [])
            if not interrupted:
                break

        assert events > 10

    def test_flush_while_queues_are_made(self, tmp_path, switch_often):
        """flush() works while another thread makes queues."""

        def work():
            for number in range(1000):
                ee.EventHandler(f"queue:file:{tmp_path}/{number}")

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            assert ee.flush()


@pytest.fixture(name="no_threads")
def _no_threads(monkeypatch):
    """
    As long as it holds something, no thread can be started.
    """
    refused = [True]
    start = threading.Thread.start

    def start_unless_refused(self):
        if refused:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_unless_refused)
    return refused


@pytest.fixture(name="switch_often")
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class TestExit:
    def run(self, code, file):
        return run_recording(f"queue:file:{file}", code)

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
        assert "slow: 2 lines were not written" in done.stderr

    def test_stalled_and_late(self, tmp_path):
        """What is recorded later does not wait for such a sink either."""
        begin = time.monotonic()
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import atexit, time\n"
                "atexit.register(lambda: print(log.info('2')))\n"
                "atexit.register(lambda: log.info('3'))\n"
                "import elastic_events as ee\n"
                "def stall(line): print(line); time.sleep(3600)\n"
                "ee.register_destination('slow', stall)\n"
                "log = ee.get_logger('queue:slow')\n"
                "log.info('1')\n",
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )

        assert time.monotonic() - begin < 50
        assert "slow: 1 lines were not written" in done.stderr
        assert 1 == done.stdout.count('"message"')
        assert done.stdout.endswith("None\n")

    def test_last_moment(self, tmp_path, validate):
        """What is recorded when all threads stand still is written."""
        file = tmp_path / "x.jsonl"
        done = self.run(
            "class Last:\n"
            "    def __init__(self): self.say = ee.get_logger(to).record\n"
            "    def __del__(self, event=event): self.say(event)\n"
            "_last = Last()\n"
            "ee.record(event, to)\n",
            file,
        )
        lines = file.read_bytes().splitlines(keepends=True)

        assert "" == done.stderr
        assert [0, 1] == [validate(each)["seq"] for each in lines]

    def test_sink_that_records_late(self, tmp_path):
        """What a sink itself records at the end does not wait for itself."""
        done = self.run(
            "lines = []\n"
            "def sink(line):\n"
            "    lines.append(line)\n"
            "    if 2 == len(lines):\n"
            "        begin = time.monotonic()\n"
            "        ee.record(event, 'queue:sink')\n"
            "        print(time.monotonic() - begin < 4)\n"
            "ee.register_destination('sink', sink)\n"
            "import elastic_events.backlog as own\n"
            "atexit.unregister(own._at_exit)\n"
            "atexit.register(lambda: (ee.flush(), print(len(lines))))\n"
            "atexit.register(ee.record, event, 'queue:sink')\n"
            "atexit.register(own._at_exit)\n"
            "ee.record(event, 'queue:sink')\n",
            tmp_path / "x",
        )

        assert ("", "True\n3\n") == (done.stderr, done.stdout)

    def test_waits_once(self, gate):
        """What has been given up is not waited for again."""
        outlet = Outlet(lambda: "gate", CallableSink(gate))
        queue = QueuedOutlet(outlet, size=10, blocks=False)
        queue.write(b"1")
        begin = time.monotonic()
        queue.backlog.close(begin + 0.05)
        queue.backlog.close(begin + 60)

        assert time.monotonic() - begin < 30

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

    def test_child_of_multiprocessing(self, tmp_path, validate):
        """A child of multiprocessing, and a child's child, ends drained."""
        file = tmp_path / "x.jsonl"
        done = self.run(
            "import multiprocessing\n"
            "fork = multiprocessing.get_context('fork')\n"
            "def write_slowly(line):\n"
            "    time.sleep(0.01)\n"
            f"    with open('{file}', 'ab') as file: file.write(line)\n"
            "def work(generations):\n"
            "    for _ in range(20): ee.record(event, 'queue:slow')\n"
            "    if generations > 1:\n"
            "        args = [generations - 1]\n"
            "        child = fork.Process(target=work, args=args)\n"
            "        child.start()\n"
            "        child.join()\n"
            "        assert 0 == child.exitcode\n"
            "ee.register_destination('slow', write_slowly)\n"
            "work(3)\n",
            file,
        )
        lines = file.read_bytes().splitlines(keepends=True)
        said = [validate(each) for each in lines]
        pids = {each["pid"] for each in said}

        assert "" == done.stderr
        assert 3 == len(pids)
        for pid in pids:
            assert list(range(20)) == [
                each["seq"] for each in said if each["pid"] == pid
            ]

    def test_stalled_child_of_multiprocessing(self, tmp_path):
        """A sink that stalls holds a child's end up for a bounded time."""
        begin = time.monotonic()
        done = self.run(
            "import multiprocessing\n"
            "fork = multiprocessing.get_context('fork')\n"
            "ee.register_destination('slow', lambda _: time.sleep(3600))\n"
            "args = (event, 'queue:slow')\n"
            "child = fork.Process(target=ee.record, args=args)\n"
            "child.start()\n"
            "child.join()\n"
            "print(child.exitcode)\n",
            tmp_path / "x",
        )

        assert time.monotonic() - begin < 50
        assert "0\n" == done.stdout
        assert "slow: 1 lines were not written" in done.stderr

    @pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
    def test_start_methods(self, tmp_path, method):
        """However multiprocessing starts a child, its lines are written."""
        file = tmp_path / "x.jsonl"
        done = self.run(
            "import multiprocessing\n"
            f"context = multiprocessing.get_context('{method}')\n"
            "for _ in range(3):\n"
            "    child = context.Process(target=ee.record, args=(event, to))\n"
            "    child.start()\n"
            "    child.join()\n",
            file,
        )

        assert "" == done.stderr
        assert 3 == len(file.read_bytes().splitlines())

    def test_fork_in_a_sink(self, tmp_path, validate):
        """A process that a sink forks writes nothing of its parent's."""
        file = tmp_path / "x.jsonl"
        self.run(
            "def write_and_fork(line):\n"
            f"    with open('{file}', 'ab') as file: file.write(line)\n"
            "    if not children:\n"
            "        time.sleep(0.1)\n"
            "        children.append(os.fork())\n"
            "        if not children[0]: sys.exit()\n"
            "children = []\n"
            "ee.register_destination('fork', write_and_fork)\n"
            "for _ in range(20): ee.record(event, 'queue:fork')\n"
            "assert ee.flush(30)\n"
            "os.waitpid(children[0], 0)\n",
            file,
        )
        lines = file.read_bytes().splitlines(keepends=True)

        assert list(range(20)) == [validate(each)["seq"] for each in lines]


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
