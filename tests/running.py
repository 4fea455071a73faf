"""
The command line, run in this process, in another, or in a terminal.
"""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

import elastic_events as ee
from elastic_events import cli


EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"step": 1})
# Its numbers, spaces and escapes are not as we write them.
ODD = (
    b'{"kind": "log", "id": 15878708649682983132, "f": 1.10, "m": "\\u00e9"}\n'
)
ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
KEEPALIVE = (
    "dynamic_rendezvous.py:_DistributedRendezvousOpExecutor._keep_alive"
)
SOON = 20
WITHOUT_RICH = (
    "-c",
    "import sys; sys.modules['rich'] = None\n"
    "from elastic_events.cli import main\n"
    "sys.exit(main(sys.argv[1:]))\n",
)


def runner(capture, *first):
    """
    Return what runs the command line in this process.

    Args:
        capture: pytest's ``capfd``, or ``capfdbinary``.

        *first: The first arguments, as a rule the command's name.

    Returns:
        It takes further arguments, and gives back exit status, output and
        errors.
    """

    def run(*arguments):
        try:
            status = cli.main([str(each) for each in (*first, *arguments)])
        except SystemExit as error:
            status = error.code
        sys.stdout.flush()
        return status, *capture.readouterr()

    return run


@pytest.fixture(name="run")
def run_here(capfdbinary):
    """
    Run the command and give back exit status, output and errors.
    """
    here = runner(capfdbinary)

    def run(*arguments):
        status, out, err = here(*arguments)
        return status, out, err.decode()

    return run


@pytest.fixture(name="file")
def file_of_three(tmp_path):
    """
    A file with three lines of different kinds.
    """
    file = tmp_path / "events.jsonl"
    log = ee.get_logger(f"file:{file}", name="trainer").bind(run_id="job-1")
    log.record(EVENT)
    log.record(ee.RdzvEvent("f.py:join", "job-1", "joined", "h", 1, "RUNNING"))
    log.error("broken", reason="disk")
    return file


def line(timestamp=0, **said):
    """
    Return a line that says so.
    """
    every = {"timestamp": timestamp, "level": "info", "kind": "log"}
    return json.dumps({**every, **said}).encode() + b"\n"


def acting(text):
    """
    Return the characters of *text* that could act on a terminal.
    """
    return {
        each
        for each in set(text) - {"\n"}
        if unicodedata.category(each) in ACTING
    }


def start(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "elastic_events", *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )


def read_soon(stream, wanted):
    """
    Return what *stream* gives until it has given *wanted* lines.
    """
    got = b""
    deadline = time.monotonic() + SOON
    while got.count(b"\n") < wanted and time.monotonic() < deadline:
        if select.select([stream], [], [], 0.1)[0]:
            got += os.read(stream.fileno(), 65536)
    return got


def in_terminal(*arguments, streams=("stdout",), **more):
    """
    Run the command with *streams* in a terminal, and return what it shows.
    """
    ours, theirs = pty.openpty()
    others = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    process = start(
        *arguments, **others | dict.fromkeys(streams, theirs), **more
    )
    os.close(theirs)
    shown = b""
    # Linux says EIO where a terminal has no more writers.
    with contextlib.suppress(OSError):
        while block := os.read(ours, 65536):
            shown += block
    os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def having(mark):
    """
    Yield the processes whose environment has *mark* in it.
    """
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                yield path.parent.name


def end_all(mark):
    """
    End the processes whose environment has *mark* in it.
    """
    deadline = time.monotonic() + SOON
    while (found := [*having(mark)]) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.01)


def environment(**variables):
    plain = {
        name: value
        for name, value in os.environ.items()
        if name not in {"NO_COLOR", "FORCE_COLOR", "TERM"}
    }
    return {**plain, "TERM": "xterm", **variables}


def command(*arguments, program=("-m", "elastic_events"), **more):
    return subprocess.run(
        [sys.executable, *program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )
