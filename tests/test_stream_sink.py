"""
Standard error as other programs leave it: gone, full, shared, dead.
"""

import gzip
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
def fill(descriptor, size=4096):
    os.set_blocking(descriptor, False)
    try:
        while True: os.write(descriptor, b"x" * size)
    except BlockingIOError: os.set_blocking(descriptor, True)
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

        assert before == len(os.listdir("/proc/self/fd"))

    def test_end_of_a_pipe(self):
        """Who reads gets the end of the pipe as soon as we let go of it."""
        reading, writing = os.pipe()
        code = (
            "record(1)\n"
            "os.dup2(os.open('/dev/null', os.O_WRONLY), 2)\n"
            "sys.stdin.read()\n"
        )
        with run(code, stderr=writing, stdin=subprocess.PIPE) as process:
            os.close(writing)
            with open(reading, "rb") as reader:
                got = reader.read()
            still_runs = process.poll() is None
            process.communicate(timeout=60)

        assert 1 == got.count(b"\n")
        assert still_runs

    def test_numbers_given_to_others(self, tmp_path, validate):
        """Code that closes all it does not know gets its own files only."""
        reading, writing = os.pipe()
        code = (
            "record(1)\n"
            "os.closerange(3, 256)\n"
            "files = [open(name, 'w+b') for name in 'abcdef']\n"
            "record(1)\n"
            "os.dup2(os.open('/dev/null', os.O_WRONLY), 2)\n"
            "record(1)\n"
            "report([os.fstat(file.fileno()).st_size for file in files])\n"
        )
        with run(code, stderr=writing, cwd=tmp_path) as process:
            os.close(writing)
            out, _ = process.communicate(timeout=60)
        with open(reading, "rb") as reader:
            lines = reader.readlines()

        assert [0, 1] == [validate(line)["seq"] for line in lines]
        assert out.startswith("[0, 0, 0, 0, 0, 0] {'recorded': 3")

    @pytest.mark.parametrize("option", ["-b", "-u"])
    def test_printed_before(self, option, validate):
        """On a pipe, too, what was printed before comes before."""
        code = "print('mine'); ee.record(event, 'stdout'); print('last')"
        with subprocess.Popen(
            [sys.executable, option, "-c", RECORD + code],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        ) as process:
            out, _ = process.communicate(timeout=60)
        mine, line, last = out.splitlines(keepends=True)

        assert (b"mine\n", b"last\n") == (mine, last)
        assert "n" == validate(line)["name"]

    @pytest.mark.parametrize("kind", ["pipe", "socket"])
    @pytest.mark.parametrize("size", [7000, 900_000])
    @pytest.mark.parametrize("free", [1, 9])
    def test_printed_before_a_stalled_reader(self, kind, size, free):
        """What was printed before is not waited for either."""
        if kind == "pipe":
            reading, writing = os.pipe()
        else:
            ours, theirs = socket.socketpair()
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            reading, writing = ours.detach(), theirs.detach()
        # A little more than half of each page of the pipe is used.
        code = f"""
if {kind == "pipe"}:
    fill(1, 2100)
    for _ in range({free}): os.read({reading}, 2100)
sys.stdout = open(1, "w", {max(size + 1, 8192)}, closefd=False)
sys.stdout.write("y" * {size})
ee.record(event, "stdout")
sys.stderr.write(str(ee.health()["stdout"]))
os._exit(0)
"""
        with subprocess.Popen(
            [sys.executable, "-c", RECORD + code],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[reading],
        ) as process:
            os.close(writing)
            try:
                _, err = process.communicate(timeout=20)
            finally:
                process.kill()
        os.close(reading)

        assert 0 == process.returncode
        assert err.startswith("{'recorded': 1, 'written': 1")

    def test_dead_socket_that_kills(self):
        """Where SIGPIPE kills, a closed socket costs lines only."""
        ours, theirs = socket.socketpair()
        code = (
            "import signal, socket\n"
            "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
            "record(3)\n"
            "socket.setdefaulttimeout(1)\n"
            "record(3)\n"
            "report()\n"
        )
        ours.close()
        with theirs, run(code, stderr=theirs) as process:
            out, _ = process.communicate(timeout=60)

        assert 0 == process.returncode
        assert "'written': 0, 'dropped': {'EPIPE': 6}" in out

    def test_socket_with_a_default_timeout(self):
        """A timeout for new sockets does not reach those of others."""
        ours, theirs = socket.socketpair()
        code = (
            "import socket\n"
            "socket.setdefaulttimeout(1)\n"
            "record(1)\n"
            "report(os.get_blocking(2))\n"
        )
        with ours, theirs, run(code, stderr=theirs) as process:
            out, _ = process.communicate(timeout=60)

        assert "True" == out.split()[0]
        assert "'written': 1" in out

    def test_no_free_descriptor(self):
        """Without a free descriptor a stalled reader is not waited for."""
        reading, writing = os.pipe()
        code = (
            "import resource\n"
            "event.metadata['x'] = 'y' * 9000\n"
            "record(1)\n"
            "fill(2)\n"
            f"os.read({reading}, 4096)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
            "report(record(2) < 5)\n"
        )
        with run(code, stderr=writing, pass_fds=[reading]) as process:
            os.close(writing)
            try:
                out, _ = process.communicate(timeout=20)
            finally:
                process.kill()
        os.close(reading)

        assert out.startswith("True")
        assert "'written': 1, 'dropped': {'EAGAIN': 2}" in out

    @pytest.mark.parametrize("size", [100, 6000])
    def test_threads(self, size, validate):
        """Lines of threads are whole, and so is a complaint among them."""
        code = f"""
import threading
log = ee.get_logger("console")
def work():
    for _ in range(50): log.info("x" * {size})
threads = [threading.Thread(target=work) for _ in range(8)]
for each in threads: each.start()
ee.record(event, "file:/proc/no/x")
for each in threads: each.join()
print(sum(sum(each["dropped"].values()) for each in ee.health().values()))
"""
        out, got = _read_slowly(code)
        lines = [e for e in got if not e.startswith(b"elastic_events: ")]

        assert "1\n" == out
        assert 1 == len(got) - len(lines)
        assert 400 == len([validate(line) for line in lines])

    def test_signal_handler(self, validate):
        """A line of a signal handler comes whole, after the one it finds."""
        code = """
import signal
count = 0
def handle(*_):
    global count
    count += 1
    log.info("signal")
log = ee.get_logger("console")
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for _ in range(60): log.info("x" * 12_000)
signal.setitimer(signal.ITIMER_REAL, 0)
report(60 + count)
"""
        out, got = _read_slowly(code)
        numbers = sorted(validate(line)["seq"] for line in got)
        total = int(out.split()[0])

        assert total > 60
        assert list(range(total)) == numbers
        assert f"'written': {total}, 'dropped': {{}}" in out

    @pytest.mark.parametrize("more", [0, 1])
    def test_signal_handler_and_a_stalled_reader(self, more, validate):
        """A line of a signal handler is not lost with the one it finds."""
        reading, writing = os.pipe()
        code = f"""
import signal
signal.signal(signal.SIGALRM, lambda *_: log.info("signal"))
log = ee.get_logger("console")
fill(2)
os.read({reading}, 4096)
signal.setitimer(signal.ITIMER_REAL, 0.3)
log.info("y" * 12_000)
report()
sys.stdout.flush()
sys.stdin.read()
for _ in range({more}): log.info("more")
"""
        with run(
            code, stderr=writing, stdin=subprocess.PIPE, pass_fds=[reading]
        ) as process:
            os.close(writing)
            out = process.stdout.readline()
            os.set_blocking(reading, False)
            _read_all(reading)
            process.communicate(timeout=60)
            lines = _read_all(reading).splitlines(keepends=True)
        os.close(reading)
        said = [validate(line)["message"] for line in lines if line != b"\n"]

        assert "'written': 1, 'dropped': {'EAGAIN': 1}" in out
        assert ["signal", "dropped 1 events", "more"][: 1 + 2 * more] == said

    def test_signal_handler_that_raises(self, validate):
        """Whatever a signal handler breaks off, the others go on."""
        code = """
import signal, threading
def handle(*_): raise KeyboardInterrupt
log = ee.get_logger("console")
signal.signal(signal.SIGALRM, handle)
raised = 0
until = time.monotonic() + 2
while time.monotonic() < until:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        for _ in range(2000): log.info("x")
    except KeyboardInterrupt: raised += 1
before = time.monotonic()
thread = threading.Thread(target=log.info, args=("thread",))
thread.start()
thread.join()
log.info("last")
print(raised > 100, time.monotonic() - before < 0.5, ee.health()["console"])
"""
        out, got = _read_slowly(code)

        assert out.startswith("True True")
        assert ["thread", "last"] == [
            validate(line)["message"] for line in got[-2:]
        ]

    def test_threads_and_a_stalled_reader(self):
        """All threads together wait for a stalled reader once."""
        reading, writing = os.pipe()
        code = """
import threading
fill(2)
threads = [threading.Thread(target=record, args=(50,)) for _ in range(8)]
begin = time.monotonic()
for each in threads: each.start()
for each in threads: each.join()
report(time.monotonic() - begin < 2)
"""
        with run(code, stderr=writing) as process:
            os.close(writing)
            out, _ = process.communicate(timeout=60)
        os.close(reading)

        assert out.startswith("True")
        assert "'written': 0, 'dropped': {'EAGAIN': 400}" in out

    def test_fork_while_a_thread_writes(self, validate):
        """A child does not wait for a thread that it does not have."""
        code = """
import threading
event.metadata["x"] = "y" * 12_000
thread = threading.Thread(target=record, args=(200,))
thread.start()
for _ in range(20):
    child = os.fork()
    if not child:
        lost = record(1) > 0.9 or ee.health()["console"]["dropped"]
        os._exit(bool(lost))
    print(os.waitpid(child, 0)[1])
thread.join()
"""
        out, _ = _read_slowly(code)

        assert 20 * "0\n" == out

    def test_stream_that_records(self):
        """A stream that records what it is given does not go on for ever."""
        code = """
class Stream:
    def write(self, text): ee.record(event, "console")
    def flush(self): pass
sys.stderr = Stream()
record(3)
sys.stderr = None
report()
"""
        with run(code) as process:
            out, _ = process.communicate(timeout=60)

        assert 0 == process.returncode
        assert "'queued': 0" in out

    def test_compressed(self, tmp_path, validate):
        """A stream that compresses what it is given goes on doing so."""
        file = tmp_path / "out.gz"
        code = (
            "import contextlib, gzip\n"
            f"with gzip.open({str(file)!r}, 'wt') as stream:\n"
            "    with contextlib.redirect_stdout(stream):\n"
            "        print('before')\n"
            "        ee.record(event, 'stdout')\n"
            "        print('after')\n"
        )
        with run(code) as process:
            process.communicate(timeout=60)
        before, line, after = gzip.decompress(file.read_bytes()).splitlines(
            keepends=True
        )

        assert (b"before\n", b"after\n") == (before, after)
        assert "n" == validate(line)["name"]

    def test_cost_of_a_stalled_reader(self):
        """Together with the complaint, a reader that stalls costs a second."""
        reading, writing = os.pipe()
        with run(
            "fill(2)\nreport(record(3) < 1.8)", stderr=writing
        ) as process:
            os.close(writing)
            out, _ = process.communicate(timeout=60)
        os.close(reading)

        assert out.startswith("True")
        assert "'EAGAIN': 3" in out


def test_complaint_to_a_stalled_reader(tmp_path):
    """A complaint does not wait for a reader that stalls either."""
    reading, writing = os.pipe()
    code = "fill(2)\nee.record(event, 'file:/proc/no/x')\nprint('done')\n"
    with run(code, stderr=writing) as process:
        os.close(writing)
        out = process.stdout.readline()
        process.wait(timeout=60)
    os.close(reading)

    assert "done\n" == out


def _read_slowly(code):
    """
    Return the output of *code*, and the lines of its standard error.
    """
    reading, writing = os.pipe()
    with run(code, stderr=writing) as process:
        os.close(writing)
        got = b""
        while piece := os.read(reading, 3000):
            got += piece
            time.sleep(0.0002)
        out, _ = process.communicate(timeout=60)
    os.close(reading)
    return out, got.splitlines(keepends=True)


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
