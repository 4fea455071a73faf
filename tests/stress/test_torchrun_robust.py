"""
torchrun with something broken: no job hangs, and none ends another way.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import end_all


pytestmark = pytest.mark.torch

TORCHRUN = Path(sys.executable).with_name("torchrun")
SECONDS = 120

WAIT = """
import os, time
if os.environ["RANK"] == "0":
    open("started", "w").close()
time.sleep(60)
"""
KILLED = """
import os, signal, time
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""


@pytest.fixture(name="status_of")
def _status_of(tmp_path):
    """
    Run a job and give back its exit status; its agent ends with the test.
    """
    started = []

    def status_of(script, destination, *, stop=None):
        (tmp_path / "started").unlink(missing_ok=True)
        (tmp_path / "job.py").write_text(script)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "STARTED_IN": str(tmp_path),
        }
        if destination:
            environment["ELASTIC_EVENTS_DESTINATION"] = destination
        agent = subprocess.Popen(
            [TORCHRUN, "--standalone", "--nproc-per-node=2", "job.py"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(agent)
        if stop is not None:
            deadline = time.monotonic() + SECONDS
            while not (tmp_path / "started").exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            agent.send_signal(stop)
        return agent.wait(timeout=SECONDS)

    yield status_of
    end_all(f"STARTED_IN={tmp_path}")
    for agent in started:
        agent.wait(timeout=SECONDS)


@pytest.mark.parametrize(
    ("script", "stop"),
    [(KILLED, None), (WAIT, signal.SIGTERM)],
    ids=["worker killed", "agent stopped"],
)
@pytest.mark.parametrize(
    "destination", ["file:log.jsonl", "file:/dev/full", "file:/proc/no/x"]
)
def test_exit_status(scale, status_of, script, stop, destination):
    """With any destination a job ends as it ends without."""
    without = status_of(script, None, stop=stop)
    runs = scale(1, 5)

    assert [without] * runs == [
        status_of(script, destination, stop=stop) for _ in range(runs)
    ]
