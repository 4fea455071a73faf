"""
logrotate rotates a file while processes write to it.
"""

import gzip
import json
import subprocess
import sys

import pytest


WRITERS = 4
LINES = 20_000
ROTATIONS = 12
# It writes a part of its lines for each line that it is given.
WRITER = """
import sys, time
import elastic_events as ee

destination, lines, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for part in range(parts):
    sys.stdin.readline()
    for number in range(part * lines // parts, (part + 1) * lines // parts):
        event = ee.Event("n", ee.EventSource.WORKER, metadata={"n": number})
        ee.record(event, destination)
        if number % 50 == 0:
            time.sleep(0.001)
    print("done", flush=True)
(counts,) = ee.health().values()
print(counts["written"], counts["dropped"], flush=True)
"""


@pytest.fixture(name="writers")
def _writers(tmp_path):
    """
    Four processes that write to one file, and notice rotation at once.
    """
    destination = f"file:{tmp_path}/logs/events.jsonl?check=0"
    words = (destination, str(LINES), str(ROTATIONS + 1))
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(WRITERS)
    ]
    yield writers
    for writer in writers:
        writer.kill()
        writer.communicate()


def lines_in(folder):
    """
    Return the lines of all files, of which none may end within one.
    """
    found = []
    for file in folder.iterdir():
        raw = file.read_bytes()
        raw = gzip.decompress(raw) if file.suffix == ".gz" else raw
        *lines, rest = raw.split(b"\n")
        assert b"" == rest
        found += lines
    return found


class TestRotation:
    @pytest.mark.parametrize("new_file", ["nocreate", "create"])
    def test_rotation(self, rotate, writers, tmp_path, validate, new_file):
        """
        Of 80 000 lines that four processes write meanwhile none is lost, torn
        or there twice.
        """
        complaints = []
        for part in range(ROTATIONS + 1):
            for writer in writers:
                writer.stdin.write("\n")
                writer.stdin.flush()
            if part:
                complaints.append(rotate(new_file))
            for writer in writers:
                assert "done\n" == writer.stdout.readline()
        found = {writer.pid: [] for writer in writers}
        lines = lines_in(tmp_path / "logs")
        for line in map(json.loads, lines):
            assert line["seq"] == line["metadata"]["n"]
            found[line["pid"]].append(line["seq"])
        for raw in lines[::1000]:
            validate(raw + b"\n")

        assert [f"{LINES} {{}}\n"] * WRITERS == [
            writer.stdout.readline() for writer in writers
        ]
        assert [[*range(LINES)]] * WRITERS == [
            sorted(numbers) for numbers in found.values()
        ]
        assert 1 < len([*(tmp_path / "logs").iterdir()])
        if new_file == "nocreate":
            assert {""} == {*complaints}
        for complaint in "".join(complaints).splitlines():
            assert "already exists, renaming to" in complaint
