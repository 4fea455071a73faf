"""
Every call to the system fails once, or from then on: what must hold holds.
"""

import contextlib
import errno
import json
import os
import subprocess
import sys

import pytest

import elastic_events as ee


ERRNOS = (
    errno.ENOSPC,
    errno.EIO,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EBADF,
    errno.EACCES,
    errno.EINTR,
)
CALLS = ("open", "write", "stat", "fstat", "dup2", "makedirs", "close")
EVENTS = 12


class Failing:
    """
    Has the Nth call of the module `os` fail, and counts.
    """

    def __init__(self, monkeypatch, nth, error, *, for_ever):
        self.calls = 0
        self.nth = nth
        self.error = error
        self.for_ever = for_ever
        self.failed = []
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name))

    def wrapped(self, name):
        real = getattr(os, name)

        def call(*args, **kwargs):
            self.calls += 1
            due = self.calls == self.nth
            if due or (self.for_ever and self.calls > self.nth):
                self.failed.append(name)
                if name == "close":
                    # Linux closes it all the same.
                    real(*args, **kwargs)
                if isinstance(self.error, int):
                    raise OSError(self.error, os.strerror(self.error))
                if name == "write":
                    data = bytes(args[1])
                    return real(args[0], self.error(data))
            return real(*args, **kwargs)

        return call


def outcome(monkeypatch, folder, nth, error, *, for_ever):
    """
    Record events while calls fail, rotate in the middle, and recover.
    """
    file = folder / "log.jsonl"
    for old in folder.iterdir():
        old.unlink()
    to = f"file:{file}?check=0"
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        failing = Failing(patch, nth, error, for_ever=for_ever)
        for number in range(EVENTS):
            if number == EVENTS // 2:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(file, folder / "log.1")
            ee.record(event(number), to)
        calls, failed = failing.calls, failing.failed
    ee.record(event(EVENTS), to)
    (health,) = ee.health().values()
    after = len(os.listdir("/proc/self/fd"))
    return calls, health, after - before, failed


def event(number):
    return ee.Event(
        "n", ee.EventSource.AGENT, metadata={"n": number, "x": "y" * 50}
    )


def whole_lines(folder, validate):
    said = []
    for file in sorted(folder.iterdir()):
        for line in file.read_bytes().splitlines(keepends=True):
            # What is torn is no line; what lacks its end only, is.
            with contextlib.suppress(AssertionError, ValueError):
                said.append(validate(line.rstrip(b"\n") + b"\n"))
    return said


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize(
    "error",
    [
        *ERRNOS,
        lambda data: b"",
        lambda data: data[:1],
        lambda data: data[:-1],
    ],
    ids=[*map(errno.errorcode.get, ERRNOS), "0 bytes", "1 byte", "all but 1"],
)
def test_nth_call_fails(
    monkeypatch, tmp_path, reset, validate, error, for_ever
):
    """Nothing raises, the accounts add up, and what was written is whole."""
    nth, calls = 0, 1
    while nth < calls:
        nth += 1
        reset()
        calls, health, leaked, failed = outcome(
            monkeypatch, tmp_path, nth, error, for_ever=for_ever
        )
        said = whole_lines(tmp_path, validate)
        numbers = [
            each["metadata"]["n"] for each in said if each["kind"] == "event"
        ]
        drops = [each for each in said if each["kind"] == "log"]
        dropped = sum(health["dropped"].values())

        assert health["recorded"] == health["written"] + dropped
        assert EVENTS + 1 == health["recorded"] - len(drops)
        assert len(numbers) == len(set(numbers))
        assert EVENTS in numbers
        assert len(said) >= health["written"]
        assert dropped == sum(each["metadata"]["dropped"] for each in drops)
        # A call that lies of a descriptor that is open costs that one.
        assert leaked <= 1 + (error == errno.EBADF), failed


FILL = """
import json, os, sys
import elastic_events as ee
event = ee.Event("n", ee.EventSource.AGENT, 0, {"x": "y" * 300})
to = f"file:{sys.argv[1]}"
make_full, make_room = sys.argv[2:]
exec(make_full)
for _ in range(10_000): ee.record(event, to)
exec(make_room)
(health,) = ee.health().values()
ee.record(event, to)
print(json.dumps(health))
"""


def check_full(file, make_full, make_room, reasons, validate):
    """
    Record to a file that can no longer grow, then once more when it can.
    """
    done = subprocess.run(
        [sys.executable, "-c", FILL, file, make_full, make_room],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    health = json.loads(done.stdout)
    dropped = sum(health["dropped"].values())
    raw = file.read_bytes().splitlines(keepends=True)
    whole = []
    for line in raw[:-2]:
        # The one that the end of the disk cut.
        with contextlib.suppress(ValueError):
            whole.append(validate(line))

    assert 10_000 == health["recorded"] == health["written"] + dropped
    assert reasons == set(health["dropped"])
    assert f"dropped {dropped} events" == validate(raw[-2])["message"]
    assert "n" == validate(raw[-1])["name"]
    assert health["written"] == len(whole) >= len(raw) - 3


def test_longest_file(tmp_path, validate):
    """A limit of files raises nothing; the first line after it is whole."""
    check_full(
        tmp_path / "log.jsonl",
        "import resource, signal; limit = resource.RLIMIT_FSIZE;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "soft, hard = resource.getrlimit(limit);"
        "resource.setrlimit(limit, (65536, hard))",
        "resource.setrlimit(limit, (soft, hard))",
        {"EIO", "EFBIG"},
        validate,
    )


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path):
    """
    A file system of 64 KB.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk],
        capture_output=True,
        timeout=60,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed")
    yield disk
    subprocess.run(["umount", disk], timeout=60, check=True)


def test_full_disk(small_disk, validate):
    """A disk that fills raises nothing; the first line after is whole."""
    (small_disk / "filler").write_bytes(bytes(16384))
    check_full(
        small_disk / "log.jsonl",
        "",
        f"os.remove({str(small_disk / 'filler')!r})",
        {"EIO", "ENOSPC"},
        validate,
    )
