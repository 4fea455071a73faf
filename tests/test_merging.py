"""
Records of many nodes by time, and clocks that cannot be trusted.
"""

import json
import subprocess
import sys
import time

import pytest
from hypothesis import given, strategies as st

from elastic_events.reading.clocks import ClockWatch
from elastic_events.reading.merging import merged
from elastic_events.reading.records import Record


JOINED = "The node '{}_1_0' has joined round 0 of the rendezvous 'job' as rank {} in a world of size {}."  # noqa: E501


@pytest.fixture(name="merge")
def _merge(tmp_path):
    """
    Write files with these times, and return (file, line) as merged.
    """

    def merge(*files):
        paths = []
        for number, times in enumerate(files):
            path = tmp_path / str(number)
            path.write_text(
                "".join(json.dumps({"timestamp": t}) + "\n" for t in times)
            )
            paths.append(str(path))
        return [
            (paths.index(record.file), record.number)
            for record in merged(paths, [].append)
        ]

    return merge


class TestMerged:
    def test_time(self, merge):
        """Earlier comes first, of the same time the earlier file."""
        assert [(1, 1), (0, 1), (1, 2), (0, 2)] == merge([2, 5], [1, 2])

    def test_own_order(self, merge):
        """What has no time, or an earlier one, follows the line above it."""
        assert [(0, 1), (1, 1), (1, 2), (1, 3), (0, 2)] == merge(
            [1, 9], [5, "x", 2]
        )

    def test_no_time(self, merge):
        """Files without any time come first, each in its order."""
        assert [(1, 1), (1, 2), (0, 1)] == merge([5], [None, None])

    @given(st.lists(st.lists(st.integers(0, 9) | st.none()), max_size=4))
    def test_each_in_order(self, merge, files):
        """Every record comes once, each file's in their order."""
        places = merge(*files)

        assert [
            (file, number + 1)
            for file, times in enumerate(files)
            for number in range(len(times))
        ] == sorted(places)
        for file, times in enumerate(files):
            numbers = [number for each, number in places if each == file]
            assert list(range(1, len(times) + 1)) == numbers


class TestManyFiles:
    @pytest.mark.parametrize(
        ("function", "soft", "hard", "lines"),
        [
            ("merged", 70, 300, 100),
            ("follow", 70, 300, 100),
            ("merged", 70, 70, 0),
            ("follow", 70, 70, 0),
        ],
    )
    def test_limit(self, tmp_path, function, soft, hard, lines):
        """The limit of open files is raised; if it cannot be, that is said."""
        for number in range(100):
            (tmp_path / str(number)).write_text('{"timestamp":1}\n')
        script = f"""
import itertools, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from elastic_events.reading.following import follow
from elastic_events.reading.merging import merged
try:
    records = {function}(sys.argv[1:], print)
    print(len(list(itertools.takewhile(bool, records))))
except OSError as error:
    print(0, error.strerror)
"""
        done = subprocess.run(
            [sys.executable, "-c", script, f"{tmp_path}/*"],
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
        )

        found, *what = done.stdout.split(maxsplit=1)
        assert lines == int(found)
        assert what == [] or what[0].startswith(
            "100 files are too many to read at once: the limit of open files"
            " is 70"
        )


def watched(*said):
    watch = ClockWatch()
    for number, each in enumerate(said, 1):
        watch.see(Record("f", number, b"", each))
    return watch


def joined(*times):
    return watched(
        *(
            {
                "timestamp": time,
                "kind": "rdzv",
                "hostname": f"h{rank}",
                "pid": 1,
                "message": JOINED.format(f"h{rank}", rank, len(times)),
            }
            for rank, time in enumerate(times)
        )
    )


class TestClockWatch:
    def test_step_back(self):
        """A writer whose time goes back is told of once."""
        times = (0, 9000, 8500, 2000, 1000)
        watch = watched(
            *({"timestamp": t, "hostname": "h", "pid": 12} for t in times)
        )

        assert [
            "f:4: time of h pid 12 goes back by 7.0 s (a clock that was set,"
            " or events that bring their own time)"
        ] == list(map(str, watch.findings()))

    def test_off(self):
        """A node whose clock is off is named, with the seconds."""
        watch = joined(1000, 61_000, 1500)

        assert {"h1": 59.5} == watch.offsets()
        assert [
            "f:2: the clock of h1 is 59.5 s ahead of those of the other nodes"
        ] == list(map(str, watch.findings()))

    def test_two(self):
        """Of two nodes nobody knows which is right."""
        watch = joined(61_000, 1000)

        assert {"h0": 60.0} == watch.offsets()
        assert [
            "f:1: the clocks of h0 and h1 differ by 60.0 s: h0 is ahead, or"
            " h1 behind"
        ] == list(map(str, watch.findings()))

    @pytest.mark.parametrize("times", [(10**400, 5), (10**400, 10**399, 5)])
    def test_impossible(self, times):
        """A time outside the years 1 to 9999 says nothing of a clock."""
        watch = watched(
            *({"timestamp": t, "hostname": "h", "pid": 1} for t in times)
        )

        assert [] == joined(*times).findings() + watch.findings()

    def test_again_and_again(self):
        """A node that joins one round very often takes no longer for it."""
        said = {
            "timestamp": 1,
            "kind": "rdzv",
            "hostname": "h",
            "pid": 1,
            "message": JOINED.format("h", 0, 2),
        }
        begin = time.monotonic()
        watched(*[said] * 50_000)

        assert time.monotonic() - begin < 8

    def test_together(self):
        """Nodes that join within seconds are fine."""
        assert [] == joined(1000, 2000, 3500, 5000).findings()
