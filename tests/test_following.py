"""
Files that grow, and what happens to them meanwhile.
"""

import json
import os

import pytest

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
