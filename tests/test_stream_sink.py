"""
Standard error as other programs leave it: gone, full, shared, dead.
"""

import io
import os
import socket
import subprocess
import sys
import time

import pytest

import elastic_events as ee


EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"x": "y" * 300})
RECORD = """
import elastic_events as ee, os, sys, time
event = ee.Event("n", ee.EventSource.WORKER, 0, {"x": "y" * 300})
def record(count):
    begin = time.monotonic()
    for _ in range(count):
        ee.record(event, "console")
    return time.monotonic() - begin
def report(*values):
    print(*values, ee.health()["console"])
"""


def run(code, **more):
    return subprocess.Popen(
        [sys.executable, "-c", RECORD + code],
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )


class TestStreamSink:
    @pytest.mark.parametrize("replacement", [None, "closed"])
    def test_no_stream(self, monkeypatch, replacement):
        """Without a stream, or a closed one, lines are lost and counted."""
        stream = None
        if replacement:
            stream = io.StringIO()
            stream.close()
        monkeypatch.setattr(sys, "stderr", stream)
        ee.record(EVENT, "console")

        assert 1 == sum(ee.health()["console"]["dropped"].values())

    def test_closed_descriptor(self):
        """Started without a standard error, a program ends as it would."""
        with run(
            "record(3); report()\nraise SystemExit(7)",
            preexec_fn=lambda: os.close(2),
        ) as process:
            out, _ = process.communicate(timeout=60)

        assert 7 == process.returncode
        assert "'recorded': 3, 'written': 0" in out

    def test_file_with_text(self, tmp_path, validate):
        """In a file that others write to, nothing is overwritten."""
        file = tmp_path / "err.txt"
        code = (
            "import subprocess\n"
            "sys.stderr.write('mine\\n')\n"
            "record(1)\n"
            "subprocess.run(['sh', '-c', 'echo theirs >&2'])\n"
            "record(1)\n"
        )
        with file.open("wb") as stderr:
            stderr.write(b"before\n")
            stderr.flush()
            with run(code, stderr=stderr) as process:
                process.communicate(timeout=60)
        before, mine, first, theirs, second = file.read_bytes().splitlines(
            keepends=True
        )

        assert (b"before\n", b"mine\n", b"theirs\n") == (before, mine, theirs)
        assert [0, 1] == [validate(first)["seq"], validate(second)["seq"]]

    def test_dead_pipe(self):
        """A reader that died costs the lines, and not the program."""
        reading, writing = os.pipe()
        os.close(reading)
        with run("report(record(1000) < 10)", stderr=writing) as process:
            os.close(writing)
            out, _ = process.communicate(timeout=60)

        assert 0 == process.returncode
        assert "'written': 0, 'dropped': {'EPIPE': 1000}" in out
        assert out.startswith("True")

    def test_dead_pipe_that_kills(self):
        """Where SIGPIPE kills, a dead reader is seen before writing."""
        reading, writing = os.pipe()
        os.close(reading)
        code = (
            "import signal\n"
            "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
            "record(3)\n"
            "assert signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL\n"
        )
        with run(code, stderr=writing) as process:
            os.close(writing)
            process.communicate(timeout=60)

        assert 0 == process.returncode

    @pytest.mark.parametrize("kind", ["pipe", "socket"])
    def test_stalled_reader(self, kind, validate):
        """
        A reader that stalls costs one bounded wait; then lines are lost.

        When it reads again, lines come again, and one says what was lost.
        """
        if kind == "pipe":
            reading, writing = os.pipe()
        else:
            ours, theirs = socket.socketpair()
            reading, writing = ours.detach(), theirs.detach()
        code = (
            "import fcntl\n"
            "flags = fcntl.fcntl(2, fcntl.F_GETFL)\n"
            "first, second = record(3000), record(3000)\n"
            "print(first, second, flush=True)\n"
            "sys.stdin.read()\n"
            "record(1)\n"
            "report(flags == fcntl.fcntl(2, fcntl.F_GETFL))\n"
        )
        with run(code, stderr=writing, stdin=subprocess.PIPE) as process:
            os.close(writing)
            first, second = map(float, process.stdout.readline().split())
            os.set_blocking(reading, False)
            got = _read_all(reading)
            process.stdin.close()
            out = process.stdout.read()
            process.wait(timeout=60)
            got += _read_all(reading)
        os.close(reading)
        lines = got.splitlines(keepends=True)

        assert first < 10
        assert second < 10
        assert 0 == process.returncode
        assert out.startswith("True")
        assert "'EAGAIN': " in out
        assert "n" == validate(lines[-1])["name"]
        assert validate(lines[-2])["message"].startswith("dropped ")

    def test_slow_reader(self, validate):
        """A reader that keeps up, if slowly, gets every line."""
        reading, writing = os.pipe()
        with run("report(record(400))", stderr=writing) as process:
            os.close(writing)
            got = b""
            while piece := os.read(reading, 20_000):
                got += piece
                time.sleep(0.001)
            process.communicate(timeout=60)
        os.close(reading)

        assert list(range(400)) == [
            validate(line)["seq"] for line in got.splitlines(keepends=True)
        ]

    def test_non_blocking(self, validate):
        """A descriptor that never waits loses nothing to a quick reader."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        with run("report(record(400))", stderr=writing) as process:
            os.close(writing)
            got = b""
            while piece := os.read(reading, 65_536):
                got += piece
            out, _ = process.communicate(timeout=60)
        os.close(reading)

        assert "'written': 400" in out
        assert 400 == len([validate(e) for e in got.splitlines(True)])

    def test_terminal(self, validate):
        """On a terminal each line is a row."""
        import pty

        reading, writing = pty.openpty()
        with run("record(3)", stderr=writing) as process:
            process.communicate(timeout=60)
        os.close(writing)
        os.set_blocking(reading, False)
        rows = _read_all(reading).replace(b"\r\n", b"\n")
        os.close(reading)

        assert [0, 1, 2] == [
            validate(row)["seq"] for row in rows.splitlines(keepends=True)
        ]

    def test_descriptors(self, tmp_path, monkeypatch):
        """A stream that is replaced again and again leaks no descriptor."""
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            reading, writing = os.pipe()
            with open(writing, "w") as stream:
                monkeypatch.setattr(sys, "stderr", stream)
                ee.record(EVENT, "console")
            os.close(reading)
        monkeypatch.undo()

        assert before + 1 >= len(os.listdir("/proc/self/fd"))


def test_complaint_to_a_stalled_reader(tmp_path):
    """A complaint does not wait for a reader that stalls either."""
    reading, writing = os.pipe()
    code = (
        "os.set_blocking(2, False)\n"
        "try:\n"
        "    while True: os.write(2, b'x' * 4096)\n"
        "except BlockingIOError: os.set_blocking(2, True)\n"
        "ee.record(event, 'file:/proc/no/x')\n"
        "print('done')\n"
    )
    with run(code, stderr=writing) as process:
        os.close(writing)
        out = process.stdout.readline()
        process.wait(timeout=60)
    os.close(reading)

    assert "done\n" == out


def _read_all(descriptor):
    got = b""
    while True:
        try:
            piece = os.read(descriptor, 1 << 20)
        except (BlockingIOError, OSError):
            return got
        if not piece:
            return got
        got += piece
