"""
Made-up jobs: the lines that the agents of a torchrun job would record.

Only what an account of the job needs is here; the texts are torch's.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import datetime, timezone

from elastic_events.schema import KEYS


START = 1_709_210_096_000
API = "torch.distributed.elastic.agent.server.api"
PROCESSES = "torch.distributed.elastic.multiprocessing.api"
PEER_CLOSED = "[pair.cc:553] Connection closed by peer [10.0.0.7]:5011."


@dataclass
class Agent:
    """
    An agent that records: its lines are numbered, its clock may be off.
    """

    node: int
    local_world: int
    run_id: str
    ahead: int = 0
    host: str = ""
    pid: int = 0
    now: int = START
    lines: list[dict] = field(default_factory=list)

    def __post_init__(self):
        self.host = f"node{self.node}"
        self.pid = 4000 + self.node
        self.name_in_rendezvous = ""

    @property
    def id(self):
        return f"{self.host_in_rendezvous}_{self.pid}_0"

    @property
    def host_in_rendezvous(self):
        return self.name_in_rendezvous or f"{self.host}.cluster"

    def say(self, **said):
        time = self.now + self.ahead
        moment = datetime.fromtimestamp(time // 1000, tz=timezone.utc)
        line = {
            "timestamp": time,
            "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{time % 1000:03}Z",
            "level": "info",
            "source": "AGENT",
            "hostname": self.host,
            "pid": self.pid,
            "seq": len(self.lines),
            **said,
        }
        self.lines.append({key: line[key] for key in KEYS if key in line})

    def rendezvous(self, message, **more):
        self.say(
            kind="rdzv",
            name="dynamic_rendezvous.py:DynamicRendezvousHandler.x",
            message=message,
            run_id=self.run_id,
            hostname=self.host_in_rendezvous,
            node_state="RUNNING",
            local_id=0,
            **more,
        )

    def log(self, logger, message, **more):
        self.say(kind="log", logger=logger, message=message, **more)

    def event(self, state, source="AGENT", restart=0, **more):
        name = f"torchelastic.worker.status.{state}"
        failed = state == "FAILED"
        self.say(
            kind="event",
            name=name,
            message=name,
            source=source,
            run_id=self.run_id,
            restart=restart,
            level="error" if failed else "info",
            metadata={"state": state, "group_rank": self.node},
            **more,
        )

    def join(self, number, nodes, restart=0):
        self.rendezvous(
            f"The node '{self.id}' attempts to join the next round of the"
            f" rendezvous '{self.run_id}'."
        )
        self.now += 700
        self.rendezvous(
            f"The node '{self.id}' has joined round {number} of the"
            f" rendezvous '{self.run_id}' as rank {self.node} in a world of"
            f" size {nodes}.",
            rank=self.node,
        )
        self.event("RENDEZVOUS", restart=restart)

    def pids(self, attempt):
        first = 10_000 * (attempt + 1) + 100 * self.node
        return [first + local_rank for local_rank in range(self.local_world)]

    def worker(self, state, attempt, local_rank, nodes, **outcome):
        rank = self.node * self.local_world + local_rank
        trace = outcome.pop("trace", None)
        self.event(
            state,
            "WORKER",
            attempt,
            rank=rank,
            local_rank=local_rank,
            worker={
                "local_rank": local_rank,
                "role_rank": rank,
                "role_world_size": nodes * self.local_world,
                "group_world_size": nodes,
                "pid": self.pids(attempt)[local_rank],
                **outcome,
            },
            **({"error_trace": trace} if trace else {}),
        )

    def give_up(self, other):
        self.rendezvous(
            f"As part of the sync operation the node(s) '{other.id}' have been"
            f" removed from the rendezvous '{self.run_id}' since they had no"
            " heartbeat."
        )

    def told_to_stop(self, number):
        self.log(API, f"Received {number} death signal, shutting down workers")

    def fail_worker(self, message):
        """
        The first worker of two nodes raises, and has an error file.
        """
        error = _error(self, message, "ValueError")
        self.worker("FAILED", 0, 0, 2, exit_code=1, **error)

    def stop(self, attempt, *, but=None):
        for local_rank, pid in enumerate(self.pids(attempt)):
            if local_rank != but:
                self.log(
                    PROCESSES,
                    f"Sending process {pid} closing signal SIGTERM",
                    level="warning",
                )

    def say_exit(self, attempt, local_rank, exit_code):
        pid = self.pids(attempt)[local_rank]
        self.log(
            PROCESSES,
            f"failed (exitcode: {exit_code}) local_rank: {local_rank}"
            f" (pid: {pid}) of binary: python3",
            level="error",
            worker={
                "exit_code": exit_code,
                "local_rank": local_rank,
                "pid": pid,
            },
        )


class Job:
    """
    A job of many nodes, each with its agent.
    """

    def __init__(self, nodes=4, local_world=2, run_id="job", ahead=()):
        self.agents = [
            Agent(node, local_world, run_id, *ahead[node : node + 1])
            for node in range(nodes)
        ]
        self.local_world = local_world

    def begin(self, attempt):
        """
        All nodes meet and start their workers.
        """
        for agent in self.agents:
            agent.join(attempt, len(self.agents), attempt)
            for local_rank in range(self.local_world):
                agent.worker("START", attempt, local_rank, len(self.agents))

    def succeed(self, attempt):
        for agent in self.agents:
            agent.now += 60_000
            for local_rank in range(self.local_world):
                agent.worker(
                    "SUCCEEDED",
                    attempt,
                    local_rank,
                    len(self.agents),
                    exit_code=0,
                )
            agent.event("SUCCEEDED", restart=attempt)

    def fail(self, attempt, rank, *, will_restart=False, exit_code=1):
        """
        A worker raises or is killed; the others are stopped or lose it.
        """
        for agent in self.agents:
            agent.now += 60_000
        node, culprit = divmod(rank, self.local_world)
        for agent in self.agents:
            mine = culprit if agent.node == node else None
            agent.now += 0 if agent.node == node else 400
            self._end_workers(
                agent,
                attempt,
                mine,
                exit_code=exit_code,
                will_restart=will_restart,
            )

    def _end_workers(
        self, agent, attempt, culprit, *, exit_code, will_restart
    ):
        first = 0 if culprit is None else culprit
        agent.stop(attempt, but=first)
        agent.say_exit(attempt, first, exit_code if culprit is not None else 1)
        if will_restart:
            agent.log(
                API,
                "[default] Worker group FAILED. 1/1 attempts left; will"
                " restart worker group",
            )
            return
        for local_rank in range(self.local_world):
            if local_rank != first:
                outcome = {"exit_code": -15}
            elif culprit is None:
                outcome = {"exit_code": 1, **_error(agent, PEER_CLOSED)}
            elif exit_code < 0:
                outcome = {"exit_code": exit_code}
            else:
                outcome = {
                    "exit_code": exit_code,
                    **_error(agent, "loss is nan", "ValueError"),
                }
            agent.worker(
                "FAILED", attempt, local_rank, len(self.agents), **outcome
            )
        # As torch has it.
        agent.event("SUCCEEDED", restart=attempt)

    def lines(self, seed=None):
        """
        Return all lines, from one node after the other, or in any order.
        """
        lines = [line for agent in self.agents for line in agent.lines]
        if seed is not None:
            random.Random(seed).shuffle(lines)
        return lines

    def write(self, folder, seed=None):
        """
        Write the lines to files, one a node, or all to one in any order.
        """
        if seed is not None:
            file = folder / "events.jsonl"
            file.write_text(as_text(self.lines(seed)))
            return [file]
        files = []
        for agent in self.agents:
            file = folder / f"{agent.host}.jsonl"
            file.write_text(as_text(agent.lines))
            files.append(file)
        return files


def as_text(lines):
    return "".join(
        json.dumps(line, separators=(",", ":")) + "\n" for line in lines
    )


def _error(agent, message, kind="RuntimeError"):
    seconds = (agent.now + agent.ahead) // 1000
    return {
        "error": {
            "type": kind,
            "message": message,
            "timestamp": seconds * 1000,
        },
        "trace": f"Traceback (most recent call last):\n{kind}: {message}\n",
    }
