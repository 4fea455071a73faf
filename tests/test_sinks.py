import os
import subprocess
import sys
import threading
import time

import pytest

import elastic_events as ee


EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"text": "x" * 100})


@pytest.fixture(name="file")
def _file(tmp_path):
    return tmp_path / "log.jsonl"


def numbers_in(file, validate):
    return [
        validate(line)["seq"]
        for line in file.read_bytes().splitlines(keepends=True)
    ]


class TestFileSink:
    @pytest.mark.parametrize("away", ["rename", "unlink"])
    def test_rotated(self, file, validate, away):
        """A file that was renamed or removed is made anew."""
        to = f"file:{file}?check=0"
        ee.record(EVENT, to)
        if away == "rename":
            file.rename(file.with_suffix(".1"))
        else:
            file.unlink()
        ee.record(EVENT, to)
        ee.record(EVENT, to)

        assert [1, 2] == numbers_in(file, validate)

    def test_folder_removed(self, file, validate):
        """A folder that was removed is made anew."""
        to = f"file:{file.parent}/deep/log.jsonl?check=0"
        ee.record(EVENT, to)
        (file.parent / "deep" / "log.jsonl").unlink()
        (file.parent / "deep").rmdir()
        ee.record(EVENT, to)

        assert [1] == numbers_in(file.parent / "deep/log.jsonl", validate)

    def test_checked_once_a_second(self, file, validate):
        """Between two looks the lines follow the renamed file."""
        to = f"file:{file}?check=1000"
        ee.record(EVENT, to)
        file.rename(file.with_suffix(".1"))
        ee.record(EVENT, to)

        assert [0, 1] == numbers_in(file.with_suffix(".1"), validate)
        assert not file.exists()

    def test_retargeted_link(self, file, validate):
        """A symbolic link that points elsewhere is followed there."""
        first, second = file.with_suffix(".1"), file.with_suffix(".2")
        file.symlink_to(first)
        to = f"file:{file}?check=0"
        ee.record(EVENT, to)
        file.unlink()
        file.symlink_to(second)
        ee.record(EVENT, to)

        assert [0] == numbers_in(first, validate)
        assert [1] == numbers_in(second, validate)

    def test_high_descriptor(self, file):
        """The descriptor is out of the way of code that closes low ones."""
        ee.record(EVENT, f"file:{file}")
        links = [
            int(number)
            for number in os.listdir("/proc/self/fd")
            if _link(number) == str(file)
        ]

        assert 1 == len(links)
        assert links[0] >= 512

    def test_closed_descriptor(self, file, validate):
        """A descriptor that someone closed is opened again at once."""
        to = f"file:{file}?check=1000"
        ee.record(EVENT, to)
        (number,) = [
            each
            for each in os.listdir("/proc/self/fd")
            if _link(each) == str(file)
        ]
        os.close(int(number))
        ee.record(EVENT, to)

        assert [0, 1] == numbers_in(file, validate)

    def test_foreign_descriptor(self, file, validate):
        """A number that now is another's file is not written to."""
        to = f"file:{file}?check=0"
        ee.record(EVENT, to)
        (number,) = [
            each
            for each in os.listdir("/proc/self/fd")
            if _link(each) == str(file)
        ]
        foreign = file.with_suffix(".foreign")
        with foreign.open("wb") as stream:
            os.dup2(stream.fileno(), int(number))
            ee.record(EVENT, to)
            os.close(int(number))

        assert b"" == foreign.read_bytes()
        assert [0, 1] == numbers_in(file, validate)

    def test_short_write(self, file, validate, monkeypatch):
        """After a line that was cut, the next begins on its own line."""
        to = f"file:{file}"
        ee.record(EVENT, to)
        real = os.write
        monkeypatch.setattr("os.write", lambda fd, line: real(fd, line[:50]))
        ee.record(EVENT, to)
        monkeypatch.undo()
        ee.record(EVENT, to)
        lines = file.read_bytes().splitlines(keepends=True)

        assert 50 + 1 == len(lines[1])
        assert "dropped 1 events" == validate(lines[2])["message"]
        assert 2 == validate(lines[3])["seq"]

    def test_fifo_without_reader(self, file):
        """A FIFO that nobody reads is a loss, not a wait."""
        os.mkfifo(file)
        ee.record(EVENT, f"file:{file}")

        assert {"ENXIO": 1} == ee.health()[f"file:{file}"]["dropped"]

    def test_threads(self, file, validate):
        """Threads lose no line and number each once."""

        def work():
            for _ in range(200):
                ee.record(EVENT, f"file:{file}")

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)

        assert list(range(1600)) == sorted(numbers_in(file, validate))

    def test_processes(self, file, validate):
        """Processes that share a file keep each other's lines whole."""
        code = (
            "import elastic_events as ee\n"
            "e = ee.Event('n', ee.EventSource.AGENT, 0, {'x': 'y' * 5000})\n"
            f"for _ in range(300): ee.record(e, 'file:{file}')\n"
        )
        workers = [
            subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)
        ]
        codes = [worker.wait(timeout=60) for worker in workers]

        assert [0] * 4 == codes
        assert sorted([*range(300)] * 4) == sorted(numbers_in(file, validate))

    def test_killed(self, file, validate):
        """What record() returned from survives kill -9."""
        code = (
            "import elastic_events as ee, os, signal\n"
            "e = ee.Event('n', ee.EventSource.AGENT)\n"
            f"for _ in range(50): ee.record(e, 'file:{file}')\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, timeout=60
        )

        assert -9 == done.returncode
        assert list(range(50)) == numbers_in(file, validate)


class TestFork:
    def test_child(self, file, validate):
        """A forked child has its own pid, and numbers from zero."""
        to = f"file:{file}"
        ee.record(EVENT, to)
        ee.record(EVENT, to)
        child = os.fork()
        if child == 0:
            ee.record(EVENT, to)
            os._exit(0)
        os.waitpid(child, 0)
        ee.record(EVENT, to)
        said = [
            validate(line)
            for line in file.read_bytes().splitlines(keepends=True)
        ]

        assert [
            (os.getpid(), 0),
            (os.getpid(), 1),
            (child, 0),
            (os.getpid(), 2),
        ] == [(each["pid"], each["seq"]) for each in said]
        assert 3 == ee.health()[f"file:{file}"]["written"]

    def test_own_file(self, tmp_path):
        """A path with {pid} is another file in the child."""
        to = f"file:{tmp_path}/{{pid}}.jsonl"
        ee.record(EVENT, to)
        child = os.fork()
        if child == 0:
            ee.record(EVENT, to)
            os._exit(0)
        os.waitpid(child, 0)

        assert sorted((f"{os.getpid()}.jsonl", f"{child}.jsonl")) == sorted(
            os.listdir(tmp_path)
        )

    def test_while_threads_record(self, file):
        """A child of a process whose threads record is never stuck."""
        stop = threading.Event()

        def work():
            while not stop.is_set():
                ee.record(EVENT, f"file:{file}")

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(50):
                child = os.fork()
                if child == 0:
                    ee.record(EVENT, f"file:{file}")
                    os._exit(7)
                assert 7 == _exit_code(child, seconds=10)
        finally:
            stop.set()
            for thread in threads:
                thread.join(timeout=60)


def _link(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


def _exit_code(child, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "stuck"
