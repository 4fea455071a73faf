"""
The timeline of a job that torchrun runs now.
"""

import json
import subprocess
import sys

import pytest
from browsing import (
    _browser,  # noqa: F401
    _show,  # noqa: F401
    assert_drawn,
    open_all,
    told_by_files,
)
from test_torchrun import SECONDS, _start  # noqa: F401


pytestmark = pytest.mark.torch

# Rank 1 is killed at first, raises after the restart.
FAILS_TWICE = """
    import os, signal, time
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        if os.environ["RANK"] == "1":
            time.sleep(1)
            if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("loss is nan")
        time.sleep(60)

    main()
"""


def test_job(start, show, tmp_path):
    """The page of a job that fails twice draws what ``explain`` tells."""
    file = tmp_path / "events.jsonl"
    agent = start(
        FAILS_TWICE,
        *("--standalone", "--nproc-per-node=2", "--max-restarts=1"),
        ELASTIC_EVENTS_DESTINATION=f"file:{file}",
    )
    agent.communicate(timeout=SECONDS)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "elastic_events", "explain"),
            *("-o", "json", file),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    account = json.loads(done.stdout)
    told = told_by_files(file)
    (drawn,) = told.pictures
    shown = show(told.html)
    open_all(shown)

    assert_drawn(shown, drawn)
    assert account["run_id"] == drawn.run_id
    assert account["outcome"] == drawn.outcome == "failed"
    names = {lane.name for lane in drawn.lanes}
    assert names == {*account["attempts"][0]["nodes"], "rank 0", "rank 1"}
    ends = {
        (span.attempt, drawn.lanes[span.lane].name): span.kind
        for span in drawn.spans
        if drawn.lanes[span.lane].node != span.lane
    }
    assert ("killed", "failed") == (ends[0, "rank 1"], ends[1, "rank 1"])
    causes = {
        (mark.attempt, drawn.lanes[mark.lane].name)
        for mark in drawn.marks
        if mark.kind == "cause"
    }
    assert {
        (each["attempt"], f"rank {each['cause']['rank']}")
        for each in account["attempts"]
        if each["cause"]
    } == causes
