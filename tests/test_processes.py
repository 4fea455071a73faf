"""
Other processes, signals, and values that record while they are recorded.
"""

import copy
import json
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pytest
import structlog
from pages import DOCS, blocks

import elastic_events as ee


EVENT = ee.Event("n", ee.EventSource.AGENT)


def lines_in(file, validate):
    return [
        validate(line) for line in file.read_bytes().splitlines(keepends=True)
    ]


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def record_elsewhere(log, handler):
    log.info("m", password="p")
    handler.handle(logging.makeLogRecord({"msg": "m", "password": "p"}))


# A queue whose sink holds every line until the functions of `atexit` run.
HOLDING = """
import atexit, signal, sys, threading, time
import elastic_events as ee
ending = threading.Event()
def write(line):
    ending.wait()
    with open(sys.argv[1], "ab") as file:
        file.write(line)
ee.register_destination("held", write)
log = ee.get_logger("queue:held")
for _ in range(3):
    log.info("m")
atexit.register(ending.set)
exec(sys.argv[2])
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


class TestSignals:
    @pytest.fixture(name="ended")
    def _ended(self, tmp_path):
        """
        End a process with lines in its queue by a signal.
        """

        def ended(number, code):
            file = tmp_path / "log.jsonl"
            file.touch()
            with subprocess.Popen(
                [sys.executable, "-c", HOLDING, file, code],
                stdout=subprocess.PIPE,
            ) as process:
                process.stdout.readline()
                process.send_signal(number)
                status = process.wait(timeout=60)
            return status, file

        return ended

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_default_action(self, ended, number):
        """A signal with its default action loses what is queued."""
        status, file = ended(
            number, f"signal.signal({number:d}, signal.SIG_DFL)"
        )

        assert (-number, b"") == (status, file.read_bytes())

    @pytest.mark.parametrize("page", ["destinations.md", "torchrun.md"])
    def test_handler(self, ended, page, validate):
        """The handler of the documentation keeps it."""
        (code,) = {
            block.text
            for block in blocks(DOCS / page, "python")
            if "SIGTERM" in block.text
        }
        status, file = ended(signal.SIGTERM, code)
        said = lines_in(file, validate)

        assert (143, [0, 1, 2]) == (status, [each["seq"] for each in said])


class TestPickling:
    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_another_process(self, tmp_path, validate, method):
        """Loggers and handlers go to processes, and open anew there."""
        file = tmp_path / "log.jsonl"
        processors = [ee.redact()]
        log = ee.get_logger(f"file:{file}", processors=processors).bind(a=1)
        handler = ee.EventHandler(f"file:{file}", processors=processors)
        record_elsewhere(log, handler)
        process = multiprocessing.get_context(method).Process(
            target=record_elsewhere, args=(log, handler)
        )
        process.start()
        process.join(timeout=120)
        said = lines_in(file, validate)

        assert 0 == process.exitcode
        assert [
            (os.getpid(), 0, 1),
            (os.getpid(), 1, None),
            (process.pid, 0, 1),
            (process.pid, 1, None),
        ] == [(each["pid"], each["seq"], each.get("a")) for each in said]
        assert [{"password": "[redacted]"}] * 4 == [
            each["metadata"] for each in said
        ]

    def test_logger(self, sink):
        """A logger keeps its level, name and context."""
        log = ee.get_logger("sink", level="warning", name="mine").bind(a=1)
        again = pickle.loads(pickle.dumps(log))
        again.info("low")
        again.warning("high")

        assert ("high", "mine", 1) == tuple(
            sink.one[key] for key in ("message", "logger", "a")
        )

    def test_configured_logger(self, sink):
        """So does one that structlog.get_logger() gave."""
        ee.configure("sink", level="warning")
        log = structlog.get_logger("mine").bind(a=1)
        again = pickle.loads(pickle.dumps(log))
        again.info("low")
        again.warning("high")

        assert ("high", "mine", 1) == tuple(
            sink.one[key] for key in ("message", "logger", "a")
        )

    def test_handler(self, sink):
        """A handler keeps its level, name and the formatter's processors."""
        handler = ee.EventHandler("sink", level="WARNING")
        handler.name = "mine"
        handler.setFormatter(ee.EventFormatter([ee.redact()]))
        for again in (
            pickle.loads(pickle.dumps(handler)),
            copy.deepcopy(handler),
        ):
            again.warning("m", token="s")

            assert (logging.WARNING, "mine") == (again.level, again.name)
        assert [{"token": "[redacted]"}] * 2 == [
            each["metadata"] for each in sink.said
        ]

    def test_formatter(self):
        """A formatter keeps its processors, and numbers anew."""
        formatter = ee.EventFormatter([ee.redact()])
        record = logging.makeLogRecord({"msg": "m", "token": "s"})
        formatter.format(record)
        again = pickle.loads(pickle.dumps(formatter))
        said = json.loads(again.format(record))

        assert (0, {"token": "[redacted]"}) == (said["seq"], said["metadata"])

    def test_nowhere(self):
        """What records nowhere is pickled too."""
        for nowhere in (ee.get_logger(), ee.get_logging_handler()):
            pickle.loads(pickle.dumps(nowhere)).info("m")


class TestFork:
    def test_children(self, tmp_path, validate):
        """Children that write long lines to one file tear none."""
        file = tmp_path / "log.jsonl"
        code = """
import os, sys
import elastic_events as ee
to = f"file:{sys.argv[1]}"
ee.record(ee.Event("first", ee.EventSource.AGENT), to)
children = []
for number in range(32):
    child = os.fork()
    if child == 0:
        text = chr(ord("a") + number % 26) * 10_000
        for _ in range(20):
            ee.record(ee.Event(text[0], ee.EventSource.AGENT, 0, {"x": text}),
                      to)
        os._exit(0)
    children.append(child)
for child in children: os.waitpid(child, 0)
"""
        run(code, file)
        said = lines_in(file, validate)[1:]
        numbers = {}
        for each in said:
            numbers.setdefault(each["pid"], []).append(each["seq"])

        assert [list(range(20))] * 32 == list(numbers.values())
        assert all(
            each["metadata"] == {"x": each["name"] * 10_000} for each in said
        )

    def test_formatter(self):
        """A formatter of its own numbers a child's lines from zero."""
        code = """
import json, logging, os, sys
import elastic_events as ee
formatter = ee.EventFormatter()
record, other = (logging.makeLogRecord({"msg": "m"}) for _ in range(2))
formatter.format(record)
child = os.fork()
if child == 0:
    print(json.loads(formatter.format(record))["seq"], flush=True)
    print(json.loads(formatter.format(other))["seq"], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(json.loads(formatter.format(other))["seq"])
"""
        assert ["0", "1", "1"] == run(code).split()

    @pytest.mark.parametrize(
        "end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit()"]
    )
    def test_end_of_a_child(self, tmp_path, validate, end):
        """A child's lines are written once, however it ends."""
        file = tmp_path / "log.jsonl"
        code = f"""
import os, sys
import elastic_events as ee
to = f"file:{{sys.argv[1]}}"
event = ee.Event("n", ee.EventSource.AGENT)
ee.record(event, to)
child = os.fork()
if child == 0:
    for _ in range(100): ee.record(event, to)
    {end}
os.waitpid(child, 0)
ee.record(event, to)
"""
        run(code, file)
        numbers = [each["seq"] for each in lines_in(file, validate)]

        assert [0, *range(100), 1] == numbers


class TestWithinARecord:
    def test_value_that_logs(self, sink):
        """A value that logs when it is made text gives a line of its own."""
        log = ee.get_logger("sink")

        class Logging:
            def __str__(self):
                log.info("inner")
                return "text"

        log.info("outer", value=Logging())

        assert ["inner", "outer"] == [each["message"] for each in sink.said]
        assert {"value": "text"} == sink.said[1]["metadata"]

    def test_value_that_logs_itself(self, sink):
        """A value that logs itself without end is cut."""
        log = ee.get_logger("sink")

        class Endless:
            def __str__(self):
                log.info("inner", value=self)
                return "text"

        def deeper(left):
            if left:
                return deeper(left - 1)
            return log.info("outer", value=Endless())

        # Wherever in the package the stack comes to its end.
        for depth in range(40):
            sink.clear()
            deeper(depth)

            assert "outer" == sink.said[-1]["message"]
            assert 1 < len(sink) < 1000
            assert [line for line in sink if b"RecursionError" in line]

    def test_finalizer(self, tmp_path, validate):
        """A finalizer that records in the middle of a write tears nothing."""
        file = tmp_path / "log.jsonl"
        code = """
import gc, os, sys
import elastic_events as ee
to = f"file:{sys.argv[1]}"
class Cycle:
    def __init__(self): self.me = self
    def __del__(self): ee.record(ee.Event("d", ee.EventSource.AGENT), to)
gc.disable()
real = os.write
def write(descriptor, data):
    gc.collect()
    return real(descriptor, data)
os.write = write
for _ in range(50):
    Cycle()
    ee.record(ee.Event("n", ee.EventSource.AGENT), to)
gc.collect()
"""
        run(code, file)
        said = lines_in(file, validate)

        assert ["d", "n"] * 50 == [each["name"] for each in said]
        assert list(range(100)) == sorted(each["seq"] for each in said)


def test_reconfigured_by_a_signal(tmp_path, validate):
    """A signal that configures logging anew loses no record."""
    file = tmp_path / "log.jsonl"
    code = """
import logging, logging.config, os, signal, sys
import elastic_events as ee
to = f"file:{sys.argv[1]}"
def configure(*_):
    logging.config.dictConfig({
        "version": 1, "disable_existing_loggers": False,
        "handlers": {"h": {"class": "elastic_events.EventHandler",
                           "destination": to}},
        "root": {"handlers": ["h"], "level": "INFO"}})
configure()
signal.signal(signal.SIGHUP, configure)
for number in range(200):
    if number % 10 == 0: os.kill(os.getpid(), signal.SIGHUP)
    logging.info("m")
    ee.record(ee.Event("n", ee.EventSource.AGENT), to)
"""
    run(code, file)

    assert ["m", "n"] * 200 == [
        each["message"] for each in lines_in(file, validate)
    ]


def test_logging_reconfigured_by_others(tmp_path, validate):
    """Code that takes over logging does not take over record()."""
    file = tmp_path / "log.jsonl"
    code = """
import logging, logging.config, sys
import elastic_events as ee
to = f"file:{sys.argv[1]}"
logger = ee._get_or_create_logger(to)
event = ee.Event("n", ee.EventSource.AGENT)
ee.record(event, to)
logging.basicConfig(force=True)
logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
logging.disable(logging.CRITICAL)
ee.record(event, to)
ee.get_logger(to).info("m")
"""
    run(code, file)

    assert ["n", "n", "m"] == [
        each["message"] for each in lines_in(file, validate)
    ]


def test_no_import_while_recording(tmp_path):
    """Once a destination is in use, recording imports nothing."""
    code = """
import sys
import elastic_events as ee
to = f"file:{sys.argv[1]}"
odd = {"set": {1}, "object": object(), "big": 2**70, "x": float("nan")}
log = ee.get_logger(to)
ee.record(ee.Event("n", ee.EventSource.AGENT, 0, odd), to)
before = set(sys.modules)
ee.record(ee.Event("n", ee.EventSource.AGENT, 0, odd), to)
log.info("m %s", 1, step=2)
sys.meta_path = None
try: raise ValueError
except ValueError: log.exception("m")
print(sorted(set(sys.modules) - before))
"""
    assert "[]\n" == run(code, tmp_path / "log.jsonl")
