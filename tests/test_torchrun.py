"""
Real torchrun jobs of real processes on this machine.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import end_all


pytestmark = pytest.mark.torch

SECONDS = 120
TORCHRUN = Path(sys.executable).with_name("torchrun")

OK = r"""
    import os
    import elastic_events as ee

    ee.record(ee.Event("train.step", ee.EventSource.WORKER, 0, {"step": 1}))
    # In one piece: two workers share the pipe.
    os.write(1, b"done\n")
"""
TAKES_OVER_LOGGING = """
    import logging, logging.config, os
    import elastic_events as ee

    event = ee.Event("train.step", ee.EventSource.WORKER, 0, {"x": "y" * 9000})
    for step in range(100):
        if step == 50:
            logging.basicConfig(force=True)
            logging.config.dictConfig(
                {"version": 1, "disable_existing_loggers": True}
            )
        ee.record(event)
"""
CRASH = """
    import os, time
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        if os.environ["RANK"] == "1":
            raise RuntimeError("boom")
        time.sleep(60)

    main()
"""
CRASH_WITHOUT_RECORD = """
    import os, time
    import elastic_events as ee

    @ee.record_failures()
    def main():
        if os.environ["RANK"] == "1":
            raise RuntimeError("boom")
        time.sleep(60)

    main()
"""
CRASH_ONCE = """
    import os, time
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if first and os.environ["RANK"] == "1":
            raise RuntimeError("boom")
        time.sleep(60 if first else 0)

    main()
"""


class Job:
    """
    The outcome of a job: exit status, output, and the lines it recorded.
    """

    def __init__(self, process, output, lines):
        self.status = process.returncode
        self.out, self.err = output
        self.lines = lines

    def events(self, name):
        return [
            each
            for each in self.lines
            if each.get("name") == f"torchelastic.worker.status.{name}"
        ]

    def of_kind(self, kind):
        return [each for each in self.lines if each["kind"] == kind]


@pytest.fixture(name="start")
def _start(tmp_path):
    """
    Start torchrun on a script; whatever was started is ended.
    """
    started = []

    def start(script, *options, command=(TORCHRUN,), **environment):
        path = tmp_path / "script.py"
        path.write_text("\n".join(line[4:] for line in script.splitlines()))
        process = subprocess.Popen(
            [*command, *options, path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "STARTED_IN": str(tmp_path),
                **environment,
            },
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    # Workers are in sessions of their own: an agent does not take them along.
    end_all(f"STARTED_IN={tmp_path}")
    for process in started:
        process.communicate(timeout=SECONDS)


@pytest.fixture(name="torchrun")
def _torchrun(start, tmp_path, validate):
    """
    Run torchrun with two workers and give back the job.
    """

    def torchrun(script, *options, to="file:events.jsonl", **more):
        file = tmp_path / "events.jsonl"
        file.unlink(missing_ok=True)
        if to:
            more["ELASTIC_EVENTS_DESTINATION"] = to
        process = start(
            script, "--standalone", "--nproc-per-node=2", *options, **more
        )
        output = process.communicate(timeout=SECONDS)
        raw = file.read_bytes() if file.exists() else b""
        lines = [validate(each) for each in raw.splitlines(keepends=True)]
        return Job(process, output, lines)

    return torchrun


def json_in(text):
    return [
        line for line in text.splitlines() if line.startswith('{"timestamp"')
    ]


def steady(text):
    """
    Return *text* less what differs in each run: ids, paths and numbers.
    """
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4,12}){4}|\d+|/tmp/\S+", "N", text)


def printed(text):
    """
    Return the lines that torch printed.
    """
    return sorted(
        steady(line)
        for line in text.splitlines()
        if not line.startswith('{"timestamp"')
    )


class TestSuccess:
    def test_job(self, torchrun):
        """A job that succeeds leaves its whole life in the file."""
        job = torchrun(OK)

        assert 0 == job.status
        for name in ("START", "SUCCEEDED"):
            workers = [
                each for each in job.events(name) if each["source"] == "WORKER"
            ]
            assert [0, 1] == sorted(each["rank"] for each in workers)
            assert all("pid" in each["worker"] for each in workers)
        assert 1 == len(job.events("RENDEZVOUS"))
        assert any(
            "as rank 0 in a world of size 1" in each["message"]
            for each in job.of_kind("rdzv")
        )
        assert any(
            each["message"].startswith("Starting elastic_operator")
            for each in job.of_kind("log")
        )

    def test_workers_record(self, torchrun):
        """A worker's own events are in the same file, with its place."""
        job = torchrun(OK)
        steps = [
            each for each in job.lines if each.get("name") == "train.step"
        ]
        (run_id,) = {each["run_id"] for each in job.events("START")}

        assert [(run_id, 0, 0, 0), (run_id, 1, 1, 0)] == sorted(
            (each["run_id"], each["rank"], each["local_rank"], each["restart"])
            for each in steps
        )
        assert {each["worker"]["pid"] for each in job.events("START")} == {
            each["pid"] for each in steps
        }

    def test_logging_taken_over(self, torchrun):
        """A script that takes over logging loses and doubles no event."""
        job = torchrun(TAKES_OVER_LOGGING, "--nproc-per-node=4")
        steps = {rank: [] for rank in range(4)}
        for each in job.lines:
            if each.get("name") == "train.step":
                steps[each["rank"]].append(each["seq"])

        assert {rank: list(range(100)) for rank in range(4)} == steps

    def test_no_text_twice(self, torchrun):
        """The steps of a rendezvous are not recorded as logs again."""
        job = torchrun(OK, TORCH_LOGS="+distributed")

        assert not [
            each
            for each in job.of_kind("log")
            if "rendezvous" in each["logger"]
        ]

    def test_numbers(self, torchrun):
        """Every process's lines are numbered without a gap."""
        job = torchrun(OK)
        pids = {each["pid"] for each in job.lines}

        assert 3 == len(pids)
        for pid in pids:
            numbers = [e["seq"] for e in job.lines if e["pid"] == pid]
            assert list(range(len(numbers))) == sorted(numbers)


class TestWaysToAsk:
    @pytest.mark.parametrize(
        ("options", "environment"),
        [
            (["--event-log-handler=elastic_events"], {}),
            (["--event_log_handler", "elastic_events"], {}),
            ([], {"PET_EVENT_LOG_HANDLER": "elastic_events"}),
        ],
    )
    def test_flag(self, torchrun, options, environment):
        """With the flag alone, all of it goes to the console."""
        job = torchrun(OK, *options, to=None, **environment)
        said = [json.loads(line) for line in json_in(job.err)]

        assert 0 == job.status
        assert {"event", "rdzv", "log"} == {each["kind"] for each in said}
        assert 2 == sum(each.get("name") == "train.step" for each in said)

    def test_flag_and_environment(self, torchrun):
        """With both, each event is recorded once, in the file."""
        job = torchrun(OK, "--event-log-handler=elastic_events")

        assert 2 == len(job.events("START"))
        assert [] == json_in(job.err)

    def test_not_asked(self, torchrun):
        """Without either, nothing is recorded and nothing is loaded."""
        script = """
            import sys
            import torch.distributed.checkpoint
            assert "elastic_events_hook" in sys.modules
            assert "elastic_events" not in sys.modules
        """.replace("\n        ", "\n")
        job = torchrun(script, to=None)

        assert (0, [], []) == (job.status, job.lines, json_in(job.err))

    def test_in_a_worker(self, torchrun):
        """In a worker the hook does nothing, also where it is asked for."""
        script = """
            import sys
            import torch.distributed.checkpoint
            from torch.distributed.elastic.events import handlers
            assert "elastic_events" not in handlers._log_handlers
            assert "elastic_events" not in sys.modules
        """.replace("\n        ", "\n")
        job = torchrun(script)

        assert 0 == job.status

    def test_wrapper(self, torchrun):
        """The wrapper records without a flag or environment."""
        command = (sys.executable, "-m", "elastic_events.torchrun")
        job = torchrun(OK, to=None, command=command)
        said = [json.loads(line) for line in json_in(job.err)]

        assert 0 == job.status
        assert 2 == sum(
            each.get("name", "").endswith(".START") for each in said
        )

    def test_program(self, start, tmp_path, validate):
        """A program names the handler in its LaunchConfig."""
        script = """
            import os, sys
            from torch.distributed.launcher.api import (
                LaunchConfig, elastic_launch
            )

            config = LaunchConfig(
                1, 1, 1, rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0",
                event_log_handler="elastic_events",
            )
            elastic_launch(config, sys.executable)("-c", "pass")
        """.replace("\n        ", "\n")
        process = start(script, command=(sys.executable,))
        _, err = process.communicate(timeout=SECONDS)
        names = [json.loads(line).get("name") for line in json_in(err)]

        assert 0 == process.returncode
        assert "torchelastic.worker.status.START" in names

    def test_backend(self, start):
        """Named as a rendezvous backend, it says what to name instead."""
        process = start(
            OK,
            "--nnodes=1",
            "--nproc-per-node=1",
            "--rdzv-backend=elastic_events",
            "--rdzv-endpoint=127.0.0.1:0",
        )
        _, err = process.communicate(timeout=SECONDS)

        assert 1 == process.returncode
        assert (
            "ValueError: 'elastic_events' records events and is no rendezvous"
            " backend: expected --rdzv-backend=c10d, static or etcd-v2"
        ) in err


class TestFailure:
    def test_torchs_record(self, torchrun):
        """A worker that raises under torch's @record is told in full."""
        job = torchrun(CRASH)
        failed = {each["rank"]: each for each in job.events("FAILED")}

        assert 1 == job.status
        assert -15 == failed[0]["worker"]["exit_code"]
        assert "error" not in failed[0]["worker"]
        assert 1 == failed[1]["worker"]["exit_code"]
        error = failed[1]["worker"]["error"]
        assert ("RuntimeError", "boom") == (error["type"], error["message"])
        assert failed[1]["error_trace"].endswith("RuntimeError: boom\n")
        assert "error" == failed[1]["level"]

    def test_record_failures(self, torchrun):
        """Without torch's @record, record_failures tells the error."""
        job = torchrun(CRASH_WITHOUT_RECORD)
        by_worker = [
            each
            for each in job.events("FAILED")
            if each["pid"] == each["worker"]["pid"]
        ]

        assert 1 == job.status
        (said,) = by_worker
        assert {"rank": 1, "local_rank": 1, "restart": 0}.items() <= (
            said.items()
        )
        error = said["worker"]["error"]
        assert ("RuntimeError", "boom") == (error["type"], error["message"])

    def test_restarted(self, torchrun):
        """Why a restarted attempt failed is stated, typed."""
        job = torchrun(CRASH_ONCE, "--max-restarts=1")
        started = {
            each["worker"]["pid"]: each
            for each in job.events("START")
            if each["restart"] == 0
        }
        exited = [
            each
            for each in job.of_kind("log")
            if "exit_code" in each.get("worker", {})
        ]
        errors = [
            each
            for each in job.of_kind("log")
            if "error" in each.get("worker", {})
        ]

        assert 0 == job.status
        (said,) = exited
        assert ("error", 1, 1) == (
            said["level"],
            said["worker"]["local_rank"],
            said["worker"]["exit_code"],
        )
        assert 1 == started[said["worker"]["pid"]]["rank"]
        assert {("RuntimeError", "boom")} == {
            (
                each["worker"]["error"]["type"],
                each["worker"]["error"]["message"],
            )
            for each in errors
        }
        assert all(
            each["error_trace"].endswith("RuntimeError: boom\n")
            for each in errors
        )
        assert {0, 1} == {each["restart"] for each in job.events("START")}

    def test_log_level(self, torchrun):
        """LOGLEVEL=WARNING loses no event and no log."""

        def messages(job, kind):
            # How many workers are left to be stopped is a matter of time.
            return sorted(
                steady(each["message"])
                for each in job.of_kind(kind)
                if "Sending process" not in each["message"]
            )

        usual = torchrun(CRASH_ONCE, "--max-restarts=1")
        quiet = torchrun(CRASH_ONCE, "--max-restarts=1", LOGLEVEL="WARNING")

        for kind in ("event", "log"):
            assert messages(usual, kind) == messages(quiet, kind)


class TestNothingElseChanges:
    @pytest.mark.parametrize(
        ("script", "status"),
        [(OK, 0), (CRASH, 1), (CRASH_ONCE, 0)],
        ids=["ok", "crash", "restart"],
    )
    @pytest.mark.parametrize("level", [None, "INFO"])
    def test_output(self, torchrun, script, status, level):
        """Exit status and output are the same with and without."""
        more = {"LOGLEVEL": level} if level else {}
        without = torchrun(script, "--max-restarts=1", to=None, **more)
        with_it = torchrun(script, "--max-restarts=1", **more)

        assert status == without.status == with_it.status
        assert without.out == with_it.out
        assert printed(without.err) == printed(with_it.err)
        assert with_it.lines

    def test_bad_destination(self, torchrun):
        """A bad destination is said in one line, and the job runs."""
        job = torchrun(CRASH_ONCE, "--max-restarts=1", to="fiel")
        said = [
            line
            for line in job.err.splitlines()
            if line.startswith("elastic_events: ")
        ]

        assert 0 == job.status
        assert [
            "elastic_events: ELASTIC_EVENTS_DESTINATION: unknown destination"
            " 'fiel': expected one of null, console, stdout, file:PATH,"
            " otlp:URL, queue:DESTINATION, dynamic_rendezvous; nothing is"
            " recorded"
        ] == said

    def test_unwritable_file(self, torchrun):
        """A file that cannot be written is said, and the job runs."""
        job = torchrun(CRASH_ONCE, "--max-restarts=1", to="file:/proc/no/x")

        assert 0 == job.status
        assert 1 == job.err.count("elastic_events: file:/proc/no/x")


class TestTwoAgents:
    def test_success(self, start, tmp_path, validate):
        """Two agents that meet over c10d share one file, line by line."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{free.getsockname()[1]}"
        agents = [
            start(
                OK,
                "--nnodes=2",
                "--nproc-per-node=1",
                "--rdzv-backend=c10d",
                f"--rdzv-endpoint={endpoint}",
                "--rdzv-id=job-2",
                "--local-addr=127.0.0.1",
                ELASTIC_EVENTS_DESTINATION="file:events.jsonl",
                ELASTIC_EVENTS_KEEPALIVE="off",
            )
            for _ in range(2)
        ]
        for agent in agents:
            agent.communicate(timeout=SECONDS)
        raw = (tmp_path / "events.jsonl").read_bytes()
        lines = [validate(each) for each in raw.splitlines(keepends=True)]
        steps = [each for each in lines if each.get("name") == "train.step"]
        agents_pids = {agent.pid for agent in agents}

        assert [0, 0] == [agent.returncode for agent in agents]
        assert [0, 1] == sorted(each["rank"] for each in steps)
        assert agents_pids == {
            each["pid"]
            for each in lines
            if each.get("name", "").endswith(".START")
        }
        assert {"job-2"} == {
            each["run_id"] for each in lines if each["kind"] != "log"
        }
        assert not [
            each
            for each in lines
            if each.get("name", "").endswith("_keep_alive")
        ]

    def test_lost_node(self, start, tmp_path, validate):
        """Which node was lost is recorded, without torch's debug output."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{free.getsockname()[1]}"
        wait = """
            import os, time
            agent = os.getppid()
            while os.getppid() == agent:
                time.sleep(0.1)
        """.replace("\n        ", "\n")
        agents = [
            start(
                wait,
                "--nnodes=1:2",
                "--nproc-per-node=1",
                "--rdzv-backend=c10d",
                f"--rdzv-endpoint={endpoint}",
                "--rdzv-id=job-3",
                "--rdzv-conf=last_call_timeout=2,"
                "keep_alive_interval=1,keep_alive_max_attempt=3",
                "--local-addr=127.0.0.1",
                f"--node-rank={node}",
                ELASTIC_EVENTS_DESTINATION=f"file:node{node}.jsonl",
            )
            for node in range(2)
        ]
        files = [tmp_path / f"node{node}.jsonl" for node in range(2)]
        host = _wait_for(files, "hosts the TCP store", agents)
        _wait_for(files, "torchelastic.worker.status.START", agents, both=True)
        lost = 1 - host
        agents[lost].kill()
        _wait_for(
            [files[host]],
            f"_{agents[lost].pid}_0' have been removed",
            agents,
        )
        removed = [
            said
            for said in map(validate, _whole_lines(files[host]))
            if "have been removed" in said["message"]
        ]

        assert "rdzv" == removed[0]["kind"]


def _whole_lines(file):
    raw = file.read_bytes() if file.exists() else b""
    return [
        each for each in raw.splitlines(keepends=True) if each[-1:] == b"\n"
    ]


def _wait_for(files, text, agents, *, both=False):
    """
    Wait until *text* is in one of *files*, or in all; tell in which.
    """
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = [
            number
            for number, file in enumerate(files)
            if any(text.encode() in line for line in _whole_lines(file))
        ]
        if len(found) == (len(files) if both else 1):
            return found[0]
        if all(agent.poll() is not None for agent in agents):
            break
        time.sleep(0.05)
    raise AssertionError(f"{text!r} did not come")
