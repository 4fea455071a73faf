"""
What recording takes: no memory, no threads, no network.
"""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from strategies import ANY_METADATA

import elastic_events as ee


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_memory(scale, tmp_path):
    """A process that records for long does not grow."""
    code = """
import sys, os
import elastic_events as ee
to, count = sys.argv[1], int(sys.argv[2])
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def record(count):
    for number in range(count):
        ee.record(ee.Event("n", ee.EventSource.AGENT, 0, {"n": number}), to)
record(10_000)
before = resident()
record(count)
print(resident() - before)
"""
    count = scale(100_000, 1_000_000)

    assert int(run(code, f"file:{tmp_path}/log.jsonl", count)) < 1 << 20


def test_no_network(tmp_path):
    """Import and records ask no name server, and start no thread."""
    code = """
import socket, sys, threading, time
def slow(*_): time.sleep(30); raise OSError
for name in ("getfqdn", "gethostbyname", "gethostbyaddr", "getaddrinfo"):
    setattr(socket, name, slow)
socket.socket.connect = slow
import elastic_events as ee
begin = time.monotonic()
ee.record(ee.Event("n", ee.EventSource.AGENT), sys.argv[1])
ee.register_destination("dynamic_rendezvous", sys.argv[1])
ee.construct_and_record_rdzv_event("r", "m", ee.NodeState.FAILED)
assert 1 == threading.active_count()
print(time.monotonic() - begin)
"""

    assert float(run(code, f"file:{tmp_path}/log.jsonl")) < 10


@pytest.mark.parametrize("door", ["record", "log"])
def test_any_metadata(scale, validate, door):
    """Any values give exactly one valid line each, and no exception."""

    @settings(max_examples=scale(200, 100_000))
    @given(ANY_METADATA)
    def check(metadata):
        lines = []
        ee.register_destination("lines", lines.append)
        if door == "record":
            event = ee.Event("n", ee.EventSource.AGENT, metadata=metadata)
            ee.record(event, "lines")
        else:
            ee.get_logger("lines").info("m", value=metadata)
        validate(lines[0])
        assert 1 == len(lines)

    check()
