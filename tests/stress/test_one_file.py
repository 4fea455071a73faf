"""
Many writers on one file: whole lines, all of them, each written at once.
"""

import json
import mmap
import os
import random
import re
import signal
import struct
import time

import orjson
import pytest

import elastic_events as ee


WRITER = """
import os, sys
calls = 0
real = os.write
def counted(descriptor, data):
    global calls
    calls += 1
    return real(descriptor, data)
os.write = counted
import elastic_events as ee
to, count = sys.argv[1], int(sys.argv[2])
for number in range(count):
    ee.record(ee.Event("n", ee.EventSource.AGENT, 0, {"x": "y" * 100}), to)
assert calls == count, (calls, count)
"""

# Each acknowledged event is counted in memory that survives the process.
ACKNOWLEDGING = """
import mmap, os, random, struct, sys
import elastic_events as ee
to, slots, slot, size = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5])
file = open(slots, "r+b")
memory = mmap.mmap(file.fileno(), 0)
random.seed(slot)
number = 0
while True:
    text = "x" * int(200 * (size / 200) ** random.random())
    event = ee.Event("n", ee.EventSource.AGENT, 0, {"slot": slot, "x": text})
    ee.record(event, to)
    number += 1
    struct.pack_into("q", memory, 8 * slot, number)
"""

MARKER = re.compile(rb'\{"timestamp":-?\d+,"time":"')


def test_every_line_of_every_writer(scale, python, tmp_path):
    """No line is torn, doubled or lost, and each is one write."""
    file = tmp_path / "log.jsonl"
    writers, count = scale((8, 2_000), (16, 20_000))
    started = [python(WRITER, f"file:{file}", count) for _ in range(writers)]
    codes = [process.wait(timeout=600) for process in started]
    numbers = {}
    with file.open("rb") as lines:
        for line in lines:
            if line == b"\n":
                # Between a writer's first line and another that was at it.
                continue
            said = orjson.loads(line)
            numbers.setdefault(said["pid"], []).append(said["seq"])

    assert [0] * writers == codes
    assert {process.pid for process in started} == set(numbers)
    assert [list(range(count))] * writers == list(numbers.values())


def salvaged(line):
    """
    Yield the records in a *line* that may begin with the rest of another.
    """
    starts = [match.start() for match in MARKER.finditer(line)]
    ends = [*starts[1:], len(line)] if starts else []
    for start, end in zip(starts, ends, strict=True):
        try:
            yield json.loads(line[start:end])
        except ValueError:
            continue


def naive(line):
    try:
        yield json.loads(line)
    except ValueError:
        return


@pytest.mark.parametrize("size", [600, 1_000_000])
def test_killed_writers(scale, python, tmp_path, size):
    """No acknowledged event is missing, whoever is killed in a write."""
    file, slots = tmp_path / "log.jsonl", tmp_path / "slots"
    kills = scale(12, 200)
    slots.write_bytes(bytes(8 * (kills + 6)))
    random.seed(size)
    running = {}
    for slot in range(kills + 6):
        running[slot] = python(
            ACKNOWLEDGING, f"file:{file}", slots, slot, size
        )
        if slot == 5:
            wait_for_all(slots, 6)
        if len(running) > 6:
            time.sleep(random.uniform(0.01, 0.05))
            victim = random.choice(sorted(running))
            sign = random.choice([signal.SIGKILL, signal.SIGTERM])
            process = running.pop(victim)
            process.send_signal(sign)
            process.wait(timeout=60)
    for process in running.values():
        process.kill()
        process.wait(timeout=60)
    counts = counts_in(slots)
    acknowledged = {
        (slot, number)
        for slot, count in enumerate(counts)
        for number in range(count)
    }

    assert acknowledged
    assert not acknowledged - recorded(file, salvaged)
    # Tears are rare: that some writer's line is behind one takes many kills.
    if size > 1000 and kills >= 200:
        assert acknowledged - recorded(file, naive)


def counts_in(slots):
    """
    Return how many events of each writer were acknowledged.
    """
    with slots.open("rb") as stream:
        memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        counts = struct.unpack(f"{len(memory) // 8}q", memory)
        memory.close()
    return counts


def wait_for_all(slots, writers):
    """
    Wait until each of the first *writers* has had an event acknowledged.
    """
    deadline = time.monotonic() + 60
    while not all(counts_in(slots)[:writers]):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def recorded(file, read):
    """
    Return slot and number of each event that *read* finds in the file.
    """
    with file.open("rb") as lines:
        return {
            (said["metadata"]["slot"], said["seq"])
            for line in lines
            for said in read(line)
            if said["kind"] == "event"
        }


def test_what_salvage_is_for(tmp_path):
    """A record behind a torn one is lost without salvage, with it not."""
    file = tmp_path / "log.jsonl"
    for number in range(3):
        event = ee.Event("n", ee.EventSource.AGENT, metadata={"slot": 0})
        ee.record(event, f"file:{file}")
        if number == 1:
            # What a writer leaves that was killed in its write.
            with file.open("ab") as torn:
                torn.write(file.read_bytes()[:40])

    assert {(0, 0), (0, 1)} == recorded(file, naive)
    assert {(0, 0), (0, 1), (0, 2)} == recorded(file, salvaged)


def test_rotation(scale, python, tmp_path):
    """Rotating by rename loses no line of any writer."""
    file = tmp_path / "log.jsonl"
    count = scale(4_000, 40_000)
    code = """
import sys, time
import elastic_events as ee
to, count = sys.argv[1], int(sys.argv[2])
for number in range(count):
    ee.record(ee.Event("n", ee.EventSource.AGENT), to)
    if number % 20 == 0: time.sleep(0.001)
"""
    started = [
        python(code, f"file:{file}?check=0.01", count) for _ in range(4)
    ]
    rotations = 0
    deadline = time.monotonic() + 600
    while any(process.poll() is None for process in started):
        assert time.monotonic() < deadline
        time.sleep(0.03)
        if file.exists():
            file.rename(tmp_path / f"log.{rotations}")
            rotations += 1
    numbers = {process.pid: [] for process in started}
    for part in tmp_path.iterdir():
        for line in filter(None, part.read_bytes().splitlines()):
            said = orjson.loads(line)
            numbers[said["pid"]].append(said["seq"])

    assert rotations > 3
    assert [list(range(count))] * 4 == [
        sorted(each) for each in numbers.values()
    ]


def test_closed_descriptors(python, tmp_path):
    """Code that closes every descriptor costs no event and no file."""
    code = """
import os, sys
import elastic_events as ee
folder = sys.argv[1]
to = f"file:{folder}/log.jsonl"
event = ee.Event("n", ee.EventSource.AGENT)
ee.record(event, to)
os.closerange(3, 4096)
files = [open(f"{folder}/foreign{n}", "wb") for n in range(100)]
for _ in range(10):
    ee.record(event, to)
for file in files: file.close()
assert {"recorded": 11, "written": 11, "dropped": {}, "queued": 0} in (
    ee.health().values()
), ee.health()
"""
    process = python(code, tmp_path)

    assert 0 == process.wait(timeout=60)
    assert 11 == len((tmp_path / "log.jsonl").read_bytes().splitlines())
    assert 0 == sum(
        os.path.getsize(file) for file in tmp_path.glob("foreign*")
    )
