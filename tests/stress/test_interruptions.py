"""
Forks, signals and the end of the process, in the middle of recording.
"""

import subprocess
import sys

import orjson
import pytest


FORKS = """
import logging, os, sys, threading, time
import elastic_events as ee
to, door, forks = sys.argv[1], sys.argv[2], int(sys.argv[3])
event = ee.Event("n", ee.EventSource.AGENT)
logger = logging.getLogger("door")
logger.addHandler(ee.get_logging_handler(to))
logger.setLevel(1)
record = {"record": lambda: ee.record(event, to),
          "stdlib": lambda: logger.info("m")}[door]
stop = threading.Event()
def work():
    while not stop.is_set():
        record()
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads: thread.start()
hung = 0
for _ in range(forks):
    child = os.fork()
    if child == 0:
        record()
        os._exit(0)
    end = time.monotonic() + 10
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            hung += 1
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.0002)
stop.set()
for thread in threads: thread.join(timeout=60)
print(hung, os.getpid())
"""

SIGNALS = """
import signal, sys, time
import elastic_events as ee
to, seconds = sys.argv[1], float(sys.argv[2])
event = ee.Event("n", ee.EventSource.AGENT)
calls = 0
def handle(*_):
    global calls
    ee.record(event, to)
    calls += 1
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
end = time.monotonic() + seconds
own = 0
while time.monotonic() < end:
    ee.record(event, to)
    own += 1
signal.setitimer(signal.ITIMER_REAL, 0)
(health,) = ee.health().values()
assert health == {"recorded": own + calls, "written": own + calls,
                  "dropped": {}, "queued": 0}, (own, calls, health)
print(own + calls)
"""


LOSSES = """
import signal, sys, time
import elastic_events as ee
def refuse(line):
    raise OSError(28, "full")
ee.register_destination("refusing", refuse)
event = ee.Event("n", ee.EventSource.AGENT)
calls = 0
def handle(*_):
    global calls
    ee.record(event, "refusing")
    calls += 1
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
end = time.monotonic() + float(sys.argv[1])
own = 0
while time.monotonic() < end:
    ee.record(event, "refusing")
    own += 1
signal.setitimer(signal.ITIMER_REAL, 0)
lost = own + calls
(health,) = ee.health().values()
assert health == {"recorded": lost, "written": 0,
                  "dropped": {"ENOSPC": lost}, "queued": 0}, (lost, health)
"""


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("door", ["record", "stdlib"])
def test_forks(scale, tmp_path, door):
    """A child forked while threads record is never stuck."""
    file = tmp_path / "log.jsonl"
    forks = scale(250, 10_000)
    hung, parent = map(int, run(FORKS, f"file:{file}", door, forks))
    children = {}
    with file.open("rb") as lines:
        for line in lines:
            said = orjson.loads(line)
            if said["pid"] != parent:
                children.setdefault(said["pid"], []).append(said["seq"])

    assert 0 == hung
    assert forks == sum(len(numbers) for numbers in children.values())
    assert {0} == {number for each in children.values() for number in each}


@pytest.mark.parametrize("kind", ["file", "queue:file"])
def test_signal_handler(scale, tmp_path, kind):
    """A signal handler that records in between loses nothing."""
    file = tmp_path / "log.jsonl"
    seconds = scale(1, 5)
    to = f"{kind}:{file}" + ("?size=10000000" if "queue" in kind else "")
    code = SIGNALS
    if "queue" in kind:
        code = code.replace("(health,)", "ee.flush(60)\n(health,)")
    (count,) = map(int, run(code, to, seconds))
    with file.open("rb") as lines:
        numbers = sorted(orjson.loads(line)["seq"] for line in lines)

    assert list(range(count)) == numbers


def test_losses_in_signal_handlers(scale):
    """What a signal handler loses in between is counted too."""
    run(LOSSES, scale(1, 5))


@pytest.mark.parametrize(
    "where",
    [
        "atexit.register(record)",
        "holder.value = Dying()",
        "import logging; logging.shutdown(); record()",
        "threading.Thread(target=record, daemon=True).start(); record()",
        "sys.modules['keep'] = Dying()",
    ],
)
def test_end_of_the_process(tmp_path, where):
    """Recording at the end works, or does nothing, but says nothing."""
    file = tmp_path / "log.jsonl"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"""
import atexit, sys, threading, types
import elastic_events as ee
event = ee.Event("n", ee.EventSource.AGENT, 0, {{"odd": {{1, 2}}}})
holder = types.SimpleNamespace()
def record(ee=ee, event=event): ee.record(event, "file:{file}")
class Dying:
    def __del__(self, record=record): record()
record()
{where}
""",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = file.read_bytes().splitlines()

    assert "" == done.stderr
    assert len(lines) >= 2
    assert all(orjson.loads(line) for line in lines)
