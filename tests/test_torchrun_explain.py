"""
What ``explain`` says of real torchrun jobs, from what they recorded.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from test_torchrun import (
    CRASH,
    CRASH_ONCE,
    CRASH_WITHOUT_RECORD,
    OK,
    SECONDS,
    _start,  # noqa: F401
    _torchrun,  # noqa: F401
    _wait_for,
)


pytestmark = pytest.mark.torch

NO_RECORD = """
    import os, time

    if os.environ["RANK"] == "1":
        raise RuntimeError("boom")
    time.sleep(60)
"""
KILLED = """
    import os, signal, time

    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
"""
# Nobody tells who sends it; it is not the agent.
TERMINATED = """
    import os, signal, time

    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
"""
WAIT = """
    import os, time

    agent = os.getppid()
    while os.getppid() == agent:
        time.sleep(0.1)
"""
# The other ranks wait for one that raises, until gloo tells that it is gone.
TOGETHER = """
    import os, time
    import torch
    import torch.distributed as dist
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
            return
        dist.init_process_group("gloo")
        ones = torch.ones(1)
        dist.all_reduce(ones)
        while True:
            if os.environ.get("CULPRIT") == os.environ["RANK"]:
                raise ValueError("bad batch")
            dist.all_reduce(ones)
            time.sleep(0.05)

    main()
"""


@pytest.fixture(name="explain")
def _explain(tmp_path):
    """
    Explain what was recorded and give back the account and exit status.
    """

    def explain():
        files = sorted(tmp_path.glob("*.jsonl"))
        command = [sys.executable, "-m", "elastic_events", "explain"]
        done = subprocess.run(
            [*command, "-o", "json", *files],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "" == done.stderr
        account = json.loads(done.stdout)
        statuses = {"succeeded": 0, "failed": 1}
        assert statuses.get(account["outcome"], 3) == done.returncode
        return account

    return explain


@pytest.fixture(name="agents")
def _agents(start, tmp_path):
    """
    Start two agents with a file each that meet over c10d.
    """

    def agents(script, *options, nodes="2", count=2, **more):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{free.getsockname()[1]}"
        started = []
        for node in range(count):
            process = start(
                script,
                f"--nnodes={nodes}",
                "--nproc-per-node=1",
                "--rdzv-backend=c10d",
                f"--rdzv-endpoint={endpoint}",
                "--rdzv-id=job-9",
                "--local-addr=127.0.0.1",
                *options,
                ELASTIC_EVENTS_DESTINATION=f"file:node{node}.jsonl",
                **more,
            )
            started.append(process)
        return started, [
            tmp_path / f"node{node}.jsonl" for node in range(count)
        ]

    return agents


def of(cause, *keys):
    return tuple(cause[key] for key in keys)


class TestOneNode:
    def test_success(self, torchrun, explain):
        """A job that succeeded has no cause and no victims."""
        torchrun(OK)
        account = explain()

        assert ("succeeded", None, [], [], []) == of(
            account, "outcome", "cause", "victims", "lost_nodes", "unknown"
        )
        assert [("succeeded", 0, 0, 2)] == [
            of(each, "outcome", "round", "restart", "world_size")
            for each in account["attempts"]
        ]
        assert account["started"] < account["ended"]

    @pytest.mark.parametrize(
        ("script", "error"),
        [
            (CRASH, ("RuntimeError", "boom")),
            (CRASH_WITHOUT_RECORD, ("RuntimeError", "boom")),
            (NO_RECORD, None),
            (KILLED, None),
            (TERMINATED, None),
        ],
        ids=[
            "torch's record",
            "record_failures",
            "no record",
            "killed",
            "terminated",
        ],
    )
    def test_failure(self, torchrun, explain, script, error):
        """The worker that failed is the cause, the stopped one a victim."""
        job = torchrun(script)
        account = explain()
        cause = account["cause"]
        (started,) = (
            each for each in job.events("START") if each["rank"] == 1
        )

        assert "failed" == account["outcome"]
        assert ("worker", 0, 1, 1, started["worker"]["pid"], True) == of(
            cause, "kind", "attempt", "rank", "local_rank", "pid", "certain"
        )
        signals = {KILLED: (-9, "SIGKILL"), TERMINATED: (-15, "SIGTERM")}
        how = signals.get(script, (1, None))
        assert how == of(cause, "exit_code", "signal")
        assert error == (
            cause["error"] and of(cause["error"], "type", "message")
        )
        assert [(0, "stopped_by_agent")] == [
            of(each, "rank", "why") for each in account["victims"]
        ]
        assert {cause["node"]} == {e["node"] for e in account["victims"]}
        assert bool(account["unknown"]) is (error is None)

    def test_restart(self, torchrun, explain):
        """A restart that helped leaves the cause in its attempt."""
        torchrun(CRASH_ONCE, "--max-restarts=1")
        account = explain()
        first, second = account["attempts"]

        assert ("succeeded", None) == of(account, "outcome", "cause")
        assert ("failed", 0, 0) == of(first, "outcome", "round", "restart")
        assert ("succeeded", 1, 1) == of(second, "outcome", "round", "restart")
        assert ("worker", 1, 1) == of(
            first["cause"], "kind", "rank", "exit_code"
        )
        assert "boom" == first["cause"]["error"]["message"]
        assert [0] == [each["rank"] for each in first["victims"]]
        assert first["ended"] <= second["started"]

    def test_restart_in_vain(self, torchrun, explain):
        """The cause of a job that failed again is that of the last attempt."""
        torchrun(CRASH, "--max-restarts=1")
        account = explain()

        assert ("failed", 1, 1) == (
            account["outcome"],
            *of(account["cause"], "attempt", "rank"),
        )
        assert ["failed", "failed"] == [
            each["outcome"] for each in account["attempts"]
        ]
        assert ["boom", "boom"] == [
            each["cause"]["error"]["message"] for each in account["attempts"]
        ]

    def test_told_to_stop(self, start, explain, tmp_path):
        """An agent that gets SIGTERM is the cause, and its workers victims."""
        agent = start(
            WAIT,
            "--standalone",
            "--nproc-per-node=2",
            ELASTIC_EVENTS_DESTINATION="file:events.jsonl",
        )
        started = "torchelastic.worker.status.START"
        _wait_for([tmp_path / "events.jsonl"], started, [agent])
        time.sleep(0.5)
        agent.send_signal(signal.SIGTERM)
        agent.communicate(timeout=SECONDS)
        account = explain()

        assert "failed" == account["outcome"]
        assert ("signal", "SIGTERM", agent.pid, True) == of(
            account["cause"], "kind", "signal", "pid", "certain"
        )
        assert [(0, "stopped_by_agent"), (1, "stopped_by_agent")] == [
            of(each, "rank", "why") for each in account["victims"]
        ]

    def test_still_running(self, start, explain, tmp_path):
        """A job of which no end is recorded may still be running."""
        agent = start(
            WAIT,
            "--standalone",
            "--nproc-per-node=1",
            ELASTIC_EVENTS_DESTINATION="file:events.jsonl",
        )
        started = "torchelastic.worker.status.START"
        _wait_for([tmp_path / "events.jsonl"], started, [agent])

        assert ("running", None, None) == of(
            explain(), "outcome", "ended", "cause"
        )


class TestTwoNodes:
    def test_peer(self, agents, explain):
        """Whose worker raised is told from who saw the connection closed."""
        started, files = agents(TOGETHER, CULPRIT="1")
        for agent in started:
            agent.communicate(timeout=SECONDS)
        account = explain()
        (culprit,) = (
            each
            for file in files
            for each in map(json.loads, file.read_text().splitlines())
            if each.get("name") == "torchelastic.worker.status.START"
            and each["rank"] == 1
        )

        assert "failed" == account["outcome"]
        assert ("worker", 1, "ValueError", True) == (
            *of(account["cause"], "kind", "rank"),
            account["cause"]["error"]["type"],
            account["cause"]["certain"],
        )
        assert account["cause"]["node"].endswith(f"_{culprit['pid']}_0")
        (victim,) = account["victims"]
        # One that is slow to see it is stopped by its agent, which lost the
        # rendezvous.
        saw_it = victim["exit_code"] == 1
        why = "peer_closed" if saw_it else "stopped_by_agent"
        assert (0, why) == of(victim, "rank", "why")
        assert victim["node"] != account["cause"]["node"]

    @pytest.mark.parametrize(
        ("nodes", "outcome"), [("1:2", "succeeded"), ("2", "failed")]
    )
    def test_lost_node(self, agents, explain, nodes, outcome):
        """A node that was killed is the cause, its peer's worker a victim."""
        started, files = agents(
            TOGETHER,
            "--max-restarts=1",
            "--rdzv-conf=join_timeout=20,last_call_timeout=2,"
            "keep_alive_interval=2,keep_alive_max_attempt=3",
            nodes=nodes,
        )
        host = _wait_for(files, "hosts the TCP store", started)
        began = "torchelastic.worker.status.START"
        _wait_for(files, began, started, both=True)
        time.sleep(4)
        lost, survivor = started[1 - host], started[host]
        _kill_machine(lost)
        survivor.communicate(timeout=SECONDS)
        account = explain()
        attempt = account["attempts"][0]
        (gone,) = account["lost_nodes"]

        assert outcome == account["outcome"]
        assert gone.endswith(f"_{lost.pid}_0")
        assert ("node_lost", gone, True) == of(
            attempt["cause"], "kind", "node", "certain"
        )
        assert ["peer_closed"] == [each["why"] for each in attempt["victims"]]
        if outcome == "failed":
            assert attempt["cause"] == account["cause"]
        else:
            assert [2, 1] == [e["world_size"] for e in account["attempts"]]

    def test_static(self, start, explain):
        """Nodes that meet without a rendezvous are told apart as well."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        started = [
            start(
                TOGETHER,
                "--nnodes=2",
                "--nproc-per-node=1",
                f"--node-rank={node}",
                "--master-addr=127.0.0.1",
                f"--master-port={port}",
                CULPRIT="1",
                ELASTIC_EVENTS_DESTINATION=f"file:node{node}.jsonl",
            )
            for node in range(2)
        ]
        for agent in started:
            agent.communicate(timeout=SECONDS)
        account = explain()
        (attempt,) = account["attempts"]

        assert ("failed", 2) == (account["outcome"], attempt["world_size"])
        assert 2 == len(attempt["nodes"])
        assert ("worker", 1, True) == of(
            account["cause"], "kind", "rank", "certain"
        )
        assert [(0, "peer_closed")] == [
            of(each, "rank", "why") for each in account["victims"]
        ]

    def test_one_told_to_stop(self, agents, explain):
        """A signal to one agent is the cause of what its peer sees."""
        started, files = agents(TOGETHER)
        host = _wait_for(files, "hosts the TCP store", started)
        began = "torchelastic.worker.status.START"
        _wait_for(files, began, started, both=True)
        time.sleep(4)
        stopped = started[1 - host]
        stopped.send_signal(signal.SIGTERM)
        for agent in started:
            agent.communicate(timeout=SECONDS)
        account = explain()
        whys = {each["node"]: each["why"] for each in account["victims"]}

        assert ("failed", "signal", "SIGTERM", stopped.pid, True) == (
            account["outcome"],
            *of(account["cause"], "kind", "signal", "pid", "certain"),
        )
        assert "stopped_by_agent" == whys.pop(account["cause"]["node"])
        assert ["peer_closed"] == list(whys.values())

    def test_store_gone(self, agents, explain):
        """An agent that goes with its store leaves the other one without."""
        started, files = agents(WAIT)
        host = _wait_for(files, "hosts the TCP store", started)
        began = "torchelastic.worker.status.START"
        _wait_for(files, began, started, both=True)
        _kill_machine(started[host])
        started[1 - host].communicate(timeout=SECONDS)
        account = explain()
        (gone,) = account["lost_nodes"]

        assert gone.endswith(f"_{started[host].pid}_0")
        assert ("failed", "node_lost", gone, False) == (
            account["outcome"],
            *of(account["cause"], "kind", "node", "certain"),
        )

    def test_missing_node(self, agents, explain):
        """Who did not come to a rendezvous is said as far as it is known."""
        started, _ = agents(OK, "--rdzv-conf=join_timeout=3", count=1)
        started[0].communicate(timeout=SECONDS)
        account = explain()

        assert ("failed", []) == of(account, "outcome", "attempts")
        assert ("rendezvous", "RendezvousTimeoutError") == (
            account["cause"]["kind"],
            account["cause"]["error"]["type"],
        )
        assert account["cause"]["node"].endswith(f"_{started[0].pid}_0")
        assert any("1 of at least 2" in each for each in account["unknown"])

    def test_no_store(self, agents, explain):
        """A store that cannot be reached is the cause."""
        started, _ = agents(
            OK, "--rdzv-conf=is_host=0,read_timeout=3", count=1
        )
        started[0].communicate(timeout=SECONDS)
        account = explain()

        assert ("failed", "rendezvous", "RendezvousConnectionError") == (
            account["outcome"],
            account["cause"]["kind"],
            account["cause"]["error"]["type"],
        )
        assert any("127.0.0.1:" in each for each in account["unknown"])


def _kill_machine(agent):
    """
    Kill an agent and its workers at once, as when the power fails.
    """
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(agent.pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    for pid in [agent.pid, *map(int, children.stdout.split())]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
