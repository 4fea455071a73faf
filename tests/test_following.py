"""
Files that grow, and what happens to them meanwhile.
"""

import gzip
import itertools
import json
import os
import threading

import pytest

from elastic_events.reading import following, growing
from elastic_events.reading.following import follow


def line(number):
    said = {"timestamp": number, "kind": "log", "message": f"m{number}"}
    return json.dumps(said).encode() + b"\n"


class Following:
    def __init__(self, paths, **options):
        self.findings = []
        self._records = follow(
            map(str, paths), self.findings.append, poll=0, **options
        )

    def news(self):
        numbers = []
        for record in self._records:
            if record is None:
                break
            numbers.append(record.said["timestamp"])
        return numbers

    def close(self):
        self._records.close()


@pytest.fixture(name="start")
def _start():
    """
    Begin to follow paths.
    """
    started = []

    def start(*paths, **options):
        started.append(Following(paths, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(name="file")
def _file(tmp_path):
    """
    A file with three lines.
    """
    file = tmp_path / "a.jsonl"
    file.write_bytes(line(1) + line(2) + line(3))
    return file


def append(file, data):
    with file.open("ab") as stream:
        stream.write(data)


class TestFollow:
    def test_growth(self, start, file):
        """What is there comes first, then what is added, once."""
        following = start(file)

        assert [1, 2, 3] == following.news()
        assert [] == following.news()
        append(file, line(4))
        assert [4] == following.news()
        assert [] == following.findings

    def test_pieces(self, start, file):
        """A line is held back until its line feed is there."""
        following = start(file)
        following.news()
        for byte in line(4)[:-1]:
            append(file, bytes((byte,)))
            assert [] == following.news()
        append(file, b"\n")

        assert [4] == following.news()
        assert [] == following.findings

    @pytest.mark.parametrize(
        ("last", "numbers"), [(0, []), (2, [3, 4]), (9, [1, 2, 3, 4])]
    )
    def test_last(self, start, file, last, numbers):
        """Of what is there only the last are given, bad lines apart."""
        append(file, b"bad\n" + line(4) + b"bad\nbad\n" + line(5)[:9])
        following = start(file, last=last)

        assert numbers == following.news()
        append(file, line(5)[9:])
        assert [5] == following.news()
        assert all(each.number in (4, 6, 7) for each in following.findings)

    def test_several(self, start, file, tmp_path):
        """What is there in several files is merged by time."""
        other = tmp_path / "b.jsonl"
        other.write_bytes(line(2) + line(9))

        assert [1, 2, 2, 3, 9] == start(file, other).news()
        assert [3, 9] == start(file, other, last=2).news()

    def test_rotation(self, start, file, tmp_path):
        """The old file is read to its end, even late, and the new begun."""
        following = start(file)
        following.news()
        old = tmp_path / "old"
        file.rename(old)
        append(old, line(4))
        assert [4] == following.news()
        file.write_bytes(line(5))
        append(old, line(6))

        assert [6, 5] == following.news()
        append(old, line(7))
        assert [7] == following.news()
        assert [] == following.findings

    def test_rotation_in_pattern(self, start, file, tmp_path):
        """A file that gets another name of a pattern is not read again."""
        following = start(tmp_path / "a.jsonl*")
        following.news()
        os.rename(file, tmp_path / "a.jsonl.1")
        file.write_bytes(line(5))

        assert [5] == following.news()
        assert [] == following.news()

    def test_rotation_again(self, start, file, tmp_path, monkeypatch):
        """However often a file gets another name, it is followed, once."""
        monkeypatch.setattr(growing, "_LINGER", 0)
        follower = start(tmp_path / "a.jsonl*")
        follower.news()
        for number in range(3):
            file = file.rename(tmp_path / f"a.jsonl.{number}")
            assert [] == follower.news()
            append(file, line(number))
            assert [number] == follower.news()

        assert [] == follower.findings

    def test_renamed_meanwhile(self, start, file, tmp_path, monkeypatch):
        """A name that comes to a known file while it is opened is no other."""
        other = tmp_path / "b.jsonl"
        os.link(file, other)
        numbers = itertools.count()
        monkeypatch.setattr(
            following, "identity_of", lambda _: (0, next(numbers))
        )
        follower = start(file, other)

        assert [1, 2, 3] == follower.news()
        assert [] == follower.news()

    @pytest.mark.parametrize("last", [0, 1])
    def test_truncation_of_unread(self, start, file, last):
        """That it was cut off is seen where little or nothing was shown."""
        follower = start(file, last=last)
        follower.news()
        numbers = list(range(10, 20))
        file.write_bytes(b"".join(map(line, numbers)))

        assert numbers == follower.news()

    @pytest.mark.parametrize("last", [None, 0, 2])
    def test_gzip(self, start, file, last):
        """What is gzip is read once, also if it was empty at first."""
        numbers = [1, 2, 3]
        zipped = gzip.compress(file.read_bytes())
        file.write_bytes(zipped)
        there = start(file, last=last)
        shown = numbers if last is None else numbers[3 - last :]
        assert [shown, []] == [there.news(), there.news()]

        file.write_bytes(b"")
        coming = start(file, last=last)
        assert [] == coming.news()
        append(file, zipped)

        assert [numbers, []] == [coming.news(), coming.news()]
        assert [] == there.findings + coming.findings

    def test_fifo(self, start, file, tmp_path):
        """A pipe is read to its end, as a part of what is there."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(line(2),))
        writer.start()
        follower = start(file, pipe)

        assert [1, 2, 2, 3] == follower.news()
        writer.join()
        append(file, line(4))
        assert [4] == follower.news()
        assert [] == follower.findings

    def test_long_line(self, start, file):
        """What is longer than asked for is told of, now and later."""
        append(file, line("x" * 100))
        follower = start(file, max_line=90)

        assert [1, 2, 3] == follower.news()
        append(file, line("x" * 100) + line(4))
        assert [4] == follower.news()
        assert [(4, True), (5, True)] == [
            (each.number, "the limit is 90" in each.what)
            for each in follower.findings
        ]

    @pytest.mark.parametrize("more", [1, 2, 3, 50])
    def test_truncation(self, start, file, more):
        """A file that was cut off is read from its start."""
        following = start(file)
        following.news()
        numbers = [100 + each for each in range(more)]
        file.write_bytes(b"".join(map(line, numbers)))

        assert numbers == following.news()
        assert [] == following.findings

    def test_not_there_yet(self, start, tmp_path):
        """A path need not exist yet; that is said once."""
        file = tmp_path / "new.jsonl"
        following = start(file)

        assert [[], []] == [following.news(), following.news()]
        file.write_bytes(line(1))
        assert [1] == following.news()
        file.unlink()
        assert [] == following.news()
        file.write_bytes(line(2))
        assert [2] == following.news()
        assert [f"{file}: No such file or directory (yet)"] == list(
            map(str, following.findings)
        )

    def test_closed(self, start, file):
        """No file is left open in the end."""
        before = len(os.listdir("/proc/self/fd"))
        following = start(file)
        following.news()
        following.close()

        assert before == len(os.listdir("/proc/self/fd"))
