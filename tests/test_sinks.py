import os
import socket
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


def descriptors_of(file):
    """
    Return the descriptors of this process that are open on *file*.
    """
    return [
        int(number)
        for number in os.listdir("/proc/self/fd")
        if _link(number) == str(file)
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

    def test_dangling_link(self, tmp_path):
        """A symbolic link to a file that is not there yet makes it."""
        target, file = tmp_path / "target", tmp_path / "log.jsonl"
        file.symlink_to(target)
        ee.record(EVENT, f"file:{file}")

        assert 1 == len(target.read_bytes().splitlines())

    def test_high_descriptor(self, file):
        """The descriptor is out of the way of code that closes low ones."""
        ee.record(EVENT, f"file:{file}")
        (number,) = descriptors_of(file)

        assert number >= 512

    def test_closed_descriptor(self, file, validate):
        """A descriptor that someone closed is opened again at once."""
        to = f"file:{file}?check=1000"
        ee.record(EVENT, to)
        (number,) = descriptors_of(file)
        os.close(number)
        ee.record(EVENT, to)

        assert [0, 1] == numbers_in(file, validate)

    def test_foreign_descriptor(self, file, validate):
        """A number that now is another's file is not written to."""
        to = f"file:{file}?check=0"
        ee.record(EVENT, to)
        (number,) = descriptors_of(file)
        foreign = file.with_suffix(".foreign")
        with foreign.open("wb") as stream:
            os.dup2(stream.fileno(), number)
            ee.record(EVENT, to)
            os.close(number)

        assert b"" == foreign.read_bytes()
        assert [0, 1] == numbers_in(file, validate)

    def test_new_folder_in_its_place(self, file, validate):
        """Lines go on to the old file while the path cannot be opened."""
        folder = file.parent / "d"
        to = f"file:{folder}/log.jsonl?check=0"
        ee.record(EVENT, to)
        folder.rename(file.parent / "old")
        folder.touch()
        ee.record(EVENT, to)
        folder.unlink()
        ee.record(EVENT, to)

        assert [0, 1] == numbers_in(file.parent / "old/log.jsonl", validate)
        assert [2] == numbers_in(folder / "log.jsonl", validate)

    def test_lost_for_good(self, file):
        """A removed file that cannot be made anew is a counted loss."""
        folder = file.parent / "d"
        to = f"file:{folder}/log.jsonl?check=0"
        ee.record(EVENT, to)
        (folder / "log.jsonl").unlink()
        folder.rmdir()
        folder.touch()
        ee.record(EVENT, to)

        assert {"ENOTDIR": 1} == (
            ee.health()[f"file:{folder}/log.jsonl"]["dropped"]
        )

    def test_lowered_limit(self, file):
        """Reopening leaks no descriptor where the limit was lowered."""
        code = f"""
import os, resource
import elastic_events as ee
log = ee.get_logger("file:{file}?check=0")
log.info("m")
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
for _ in range(300):
    os.rename("{file}", "{file}.1")
    log.info("m")
print(len(os.listdir("/proc/self/fd")), ee.health())
"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        count, _, health = done.stdout.partition(" ")

        assert int(count) < 20
        assert "'written': 301, 'dropped': {}" in health

    def test_first_lines_of_threads(self, tmp_path, validate):
        """Threads that write the first lines leave one descriptor a file."""
        before = len(os.listdir("/proc/self/fd"))
        files = [tmp_path / f"{number}.jsonl" for number in range(20)]
        for file in files:
            barrier = threading.Barrier(8)
            to = f"file:{file}"

            def work(barrier=barrier, to=to):
                barrier.wait(timeout=60)
                ee.record(EVENT, to)

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=60)

        assert before + len(files) >= len(os.listdir("/proc/self/fd"))
        assert [list(range(8))] * 20 == [
            sorted(numbers_in(file, validate)) for file in files
        ]

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

    def test_truncated(self, file, validate):
        """After a truncation lines begin at the file's start, without NULs."""
        to = f"file:{file}"
        for _ in range(3):
            ee.record(EVENT, to)
        os.truncate(file, 0)
        ee.record(EVENT, to)

        assert [3] == numbers_in(file, validate)

    def test_torn_by_another(self, file, validate):
        """A file that ends within a line is gone on with on the next one."""
        file.write_bytes(b'{"timestamp":1,"ti')
        ee.record(EVENT, f"file:{file}")
        torn, line = file.read_bytes().splitlines(keepends=True)

        assert b'{"timestamp":1,"ti\n' == torn
        assert 0 == validate(line)["seq"]

    @pytest.mark.parametrize(
        ("level", "synced"), [("error", 1), ("info", 2), ("critical", 0)]
    )
    def test_fsync(self, file, validate, monkeypatch, level, synced):
        """Lines of the level and above are synced to the disk."""
        calls = []
        monkeypatch.setattr("os.fdatasync", calls.append)
        log = ee.get_logger(f"file:{file}?fsync={level}")
        log.debug("m")
        log.record(EVENT)
        log.error("m")

        assert synced == len(calls)
        assert [0, 1, 2] == numbers_in(file, validate)

    def test_socket(self, file):
        """A socket in the place of the file is a loss, not a wait."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(file))
            ee.record(EVENT, f"file:{file}")

        assert {"ENXIO": 1} == ee.health()[f"file:{file}"]["dropped"]

    def test_fifo_without_reader(self, file):
        """A FIFO that nobody reads is a loss, not a wait."""
        os.mkfifo(file)
        ee.record(EVENT, f"file:{file}")

        assert {"ENXIO": 1} == ee.health()[f"file:{file}"]["dropped"]

    def test_fifo_that_was_read(self, file):
        """A FIFO whose reader left is a loss, also where SIGPIPE kills."""
        os.mkfifo(file)
        code = f"""
import os, signal
import elastic_events as ee
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
event = ee.Event("n", ee.EventSource.AGENT)
reader = os.open("{file}", os.O_RDONLY | os.O_NONBLOCK)
for _ in range(2): ee.record(event, "file:{file}?fsync=info")
assert 2 == os.read(reader, 65536).count(b"\\n")
os.close(reader)
for _ in range(2): ee.record(event, "file:{file}?fsync=info")
(health,) = ee.health().values()
assert {{"recorded": 4, "written": 2, "dropped": {{"EPIPE": 2}},
        "queued": 0}} == health, health
"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

        assert 0 == done.returncode, done.stderr

    def test_behind_a_link(self, tmp_path):
        """A path through a symbolic link leads where the system says."""
        (tmp_path / "far" / "folder").mkdir(parents=True)
        (tmp_path / "link").symlink_to(tmp_path / "far" / "folder")
        ee.record(EVENT, f"file:{tmp_path}/link/../log.jsonl")

        assert (tmp_path / "far" / "log.jsonl").exists()

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

    def test_names_in_the_child(self, tmp_path, validate):
        """In the child {pid} and the number itself are one destination."""
        to = f"file:{tmp_path}/{{pid}}.jsonl"
        ee.record(EVENT, to)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            ee.record(EVENT, to)
            ee.record(EVENT, f"file:{tmp_path}/{os.getpid()}.jsonl")
            ee.record(EVENT, f"file:{tmp_path}/{parent}.jsonl")
            os._exit(0)
        os.waitpid(child, 0)

        assert [0, 1] == numbers_in(tmp_path / f"{child}.jsonl", validate)
        assert [0, 0] == numbers_in(tmp_path / f"{parent}.jsonl", validate)

    def test_closed_before_the_fork(self, tmp_path, validate):
        """A descriptor that someone closed spoils no other destination."""
        ee.record(EVENT, f"file:{tmp_path}/{{pid}}.jsonl")
        ee.record(EVENT, f"file:{tmp_path}/other.jsonl")
        (number,) = descriptors_of(tmp_path / f"{os.getpid()}.jsonl")
        os.close(number)
        child = os.fork()
        if child == 0:
            ee.record(EVENT, f"file:{tmp_path}/other.jsonl")
            os._exit(0)
        os.waitpid(child, 0)

        assert [0, 0] == numbers_in(tmp_path / "other.jsonl", validate)

    def test_first_record_elsewhere(self, file):
        """A child forked during another thread's first record is not stuck."""
        code = f"""
import os, sys, threading, time
import elastic_events as ee
event = ee.Event("n", ee.EventSource.AGENT)
threading.Thread(target=ee.record, args=(event, "file:{file}")).start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    ee.record(event, "file:{file}")
    os._exit(0)
os.waitpid(child, 0)
"""
        for delay in ("0", "0.001", "0.01", "0.03"):
            subprocess.run(
                [sys.executable, "-c", code, delay], check=True, timeout=60
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
