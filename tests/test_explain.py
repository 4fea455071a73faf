"""
What came of a run, and why: told from lines, whatever their order.
"""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from pathlib import Path

import jobs
import pytest
from hypothesis import given, settings, strategies as st
from valid import validated

from elastic_events import cli
from elastic_events.reading import accounts, causes, explaining
from elastic_events.reading.painting import plain
from elastic_events.reading.records import Record
from elastic_events.reading.sources import read
from elastic_events.reading.story import Story


RAW = Path(__file__).parent / "data" / "torchrun"


def verdicts_on(lines):
    """
    Return the verdicts on lines that need no file; all are valid.
    """
    for line in lines:
        validated(jobs.as_text([line]).encode())
    return verdicts_on_any(lines)


def verdicts_on_any(lines):
    story = Story()
    for number, line in enumerate(lines, start=1):
        story.see(Record("f", number, b"", line))
    return [causes.verdict(run) for run in story.runs()]


def verdict_on(lines):
    (verdict,) = verdicts_on(lines)
    return verdict


def account_of(*names):
    """
    Return the account of the raw streams of *names*.
    """
    story, findings = Story(), []
    files = [str(RAW / f"{name}.jsonl") for name in names]
    for record in read(files, findings.append):
        story.see(record)
    (run,) = story.runs()
    assert [] == findings
    return accounts.account(causes.verdict(run))


def short(cause):
    return cause and (cause.kind, cause.attempt, cause.node, cause.rank)


def explained(verdict, **how):
    return list(explaining.explained(verdict, {}, paint=plain, **how))


def _can_act(character):
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


class TestManyNodes:
    @pytest.mark.parametrize("seed", range(5))
    def test_one_failure(self, seed):
        """Of 512 workers the one that failed is found, in any order."""
        dice = random.Random(seed)
        ahead = [dice.randint(-9000, 9000) for _ in range(64)]
        job = jobs.Job(64, 8, ahead=ahead)
        rank = dice.randrange(512)
        job.begin(0)
        job.fail(0, rank)
        verdict = verdict_on(job.lines(seed))

        node = job.agents[rank // 8].id
        assert "failed" == verdict.outcome
        assert ("worker", 0, node, rank) == short(verdict.cause)
        assert verdict.cause.certain
        assert "ValueError" == verdict.cause.error.type
        assert 511 == len(verdict.victims)
        whys = [victim.why for victim in verdict.victims]
        assert {"peer_closed": 63, "stopped_by_agent": 448} == {
            why: whys.count(why) for why in sorted(set(whys))
        }
        (attempt,) = verdict.attempts
        assert 512 == attempt.attempt.world_size
        assert [agent.id for agent in job.agents] == attempt.attempt.nodes

    @pytest.mark.parametrize("seed", range(3))
    def test_killed(self, seed):
        """A worker that was killed is told from those that were stopped."""
        job = jobs.Job(64, 8)
        job.begin(0)
        job.fail(0, 77, exit_code=-9)
        verdict = verdict_on(job.lines(seed))

        assert ("worker", 0, job.agents[9].id, 77) == short(verdict.cause)
        assert (-9, "SIGKILL") == (
            verdict.cause.exit_code,
            verdict.cause.signal,
        )

    def test_order(self):
        """The account of a job is the same in whatever order it is read."""
        job = jobs.Job(8, 4)
        job.begin(0)
        job.fail(0, 5, will_restart=True)
        job.begin(1)
        job.succeed(1)
        told = [
            accounts.account(verdict_on(job.lines(seed)))
            for seed in (None, 1, 2, 3)
        ]
        for account in told:
            for each in account["attempts"]:
                # Where a line stands depends on the order, of course.
                if each["cause"]:
                    each["cause"]["lines"] = len(each["cause"]["lines"])

        assert [told[0]] * 3 == told[1:]

    def test_one_screen(self):
        """Many nodes and attempts are explained on a screen or two."""
        job = jobs.Job(100, 8)
        for attempt in range(20):
            job.begin(attempt)
            job.fail(attempt, 5, will_restart=attempt < 19)
        (verdict,) = verdicts_on_any(job.lines())
        rows = explained(verdict)

        assert 60 > len(rows)
        assert 500 > max(map(len, rows))


class TestOutcome:
    def test_success(self):
        """A run whose workers all succeeded has succeeded."""
        job = jobs.Job()
        job.begin(0)
        job.succeed(0)
        verdict = verdict_on(job.lines())

        assert ("succeeded", None) == (verdict.outcome, verdict.cause)

    def test_restart(self):
        """After a restart the cause is that of the attempt, not the run's."""
        job = jobs.Job()
        job.begin(0)
        job.fail(0, 3, will_restart=True)
        job.begin(1)
        job.succeed(1)
        verdict = verdict_on(job.lines())
        first, second = verdict.attempts

        assert ("succeeded", None) == (verdict.outcome, verdict.cause)
        assert ("failed", 3) == (first.outcome, first.cause.rank)
        assert ("succeeded", None) == (second.outcome, second.cause)
        assert (0, 1) == (first.attempt.restart, second.attempt.restart)

    def test_restart_in_vain(self):
        """The cause of a run that failed again is that of its last attempt."""
        job = jobs.Job()
        job.begin(0)
        job.fail(0, 3, will_restart=True)
        job.begin(1)
        job.fail(1, 6)
        verdict = verdict_on(job.lines())

        assert ("failed", 1, 6) == (
            verdict.outcome,
            verdict.cause.attempt,
            verdict.cause.rank,
        )
        assert [3, 6] == [each.cause.rank for each in verdict.attempts]

    def test_running(self):
        """A run of which no end is recorded may be running."""
        job = jobs.Job()
        job.begin(0)
        verdict = verdict_on(job.lines())

        assert ("running", "running") == (
            verdict.outcome,
            verdict.attempts[0].outcome,
        )

    def test_between_attempts(self):
        """A run that failed, but will start again, is running."""
        job = jobs.Job()
        job.begin(0)
        job.fail(0, 3, will_restart=True)
        verdict = verdict_on(job.lines())

        assert ("running", "failed") == (
            verdict.outcome,
            verdict.attempts[0].outcome,
        )

    def test_agent_success_is_not_believed(self):
        """That torch calls the agent of a failed job a success is ignored."""
        job = jobs.Job()
        job.begin(0)
        job.fail(0, 3)

        assert "succeeded" not in explained(verdict_on(job.lines()))[0].lower()

    def test_only_steps(self):
        """Of a run known by its workers' events alone, nothing is invented."""
        job = jobs.Job(1)
        job.agents[0].say(
            kind="event",
            name="train.step",
            message="train.step",
            source="WORKER",
            run_id="job",
            rank=0,
            metadata={},
        )
        verdict = verdict_on(job.lines())

        assert ("unknown", None, ()) == (
            verdict.outcome,
            verdict.cause,
            verdict.attempts,
        )


class TestCause:
    def test_two_failures(self):
        """Where the times do not tell which was first, it is not certain."""
        job = jobs.Job(2, 1)
        job.begin(0)
        for agent in job.agents:
            agent.now += 60_000
            agent.worker(
                "FAILED",
                0,
                0,
                2,
                exit_code=1,
                **jobs._error(agent, "nan", "ValueError"),
            )
            agent.event("SUCCEEDED")
        verdict = verdict_on(job.lines())

        assert ("failed", False) == (verdict.outcome, verdict.cause.certain)
        assert any("failed first" in e for e in account(verdict)["unknown"])

    def test_earlier_failure(self):
        """Of two that failed by themselves, the earlier is the cause."""
        job = jobs.Job(2, 1)
        job.begin(0)
        for agent, later in zip(job.agents, (9000, 0), strict=True):
            agent.now += 60_000 + later
            agent.worker(
                "FAILED",
                0,
                0,
                2,
                exit_code=1,
                **jobs._error(agent, "nan", "ValueError"),
            )
        verdict = verdict_on(job.lines())

        assert (1, True) == (verdict.cause.rank, verdict.cause.certain)

    def test_lost_node(self):
        """Workers that lose their peer are victims of a node that is gone."""
        job = jobs.Job(3, 1)
        job.begin(0)
        survivors, lost = job.agents[:2], job.agents[2]
        for agent in survivors:
            agent.now += 60_000
            agent.worker(
                "FAILED",
                0,
                0,
                3,
                exit_code=1,
                **jobs._error(agent, jobs.PEER_CLOSED),
            )
            agent.event("FAILED")
        survivors[0].rendezvous(
            f"As part of the sync operation the node(s) '{lost.id}' have been"
            " removed from the rendezvous 'job' since they had no heartbeat."
        )
        verdict = verdict_on(job.lines())

        assert ("node_lost", 0, lost.id, None) == short(verdict.cause)
        assert verdict.cause.certain
        assert [lost.id] == [each.id for each in verdict.lost_nodes]
        assert [(0, "peer_closed"), (1, "peer_closed")] == [
            (victim.rank, victim.why) for victim in verdict.victims
        ]

    def test_false_alarm(self):
        """A node that was given up, but went on, is not lost."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.agents[0].rendezvous(
            "As part of the sync operation the node(s)"
            f" '{job.agents[1].id}' have been removed from the rendezvous"
            " 'job' since they had no heartbeat."
        )
        job.succeed(0)
        verdict = verdict_on(job.lines())

        assert ("succeeded", ()) == (verdict.outcome, verdict.lost_nodes)

    def test_silent_node(self):
        """A node that is silent when all others have ended may be lost."""
        job = jobs.Job(2, 1)
        job.begin(0)
        agent = job.agents[0]
        agent.now += 60_000
        agent.worker(
            "FAILED",
            0,
            0,
            2,
            exit_code=1,
            **jobs._error(agent, jobs.PEER_CLOSED),
        )
        agent.event("SUCCEEDED")
        verdict = verdict_on(job.lines())

        assert ("node_lost", job.agents[1].id, False) == (
            verdict.cause.kind,
            verdict.cause.node,
            verdict.cause.certain,
        )

    def test_told_to_stop(self):
        """A signal to an agent is the cause, its workers are victims."""
        job = jobs.Job(1)
        job.begin(0)
        agent = job.agents[0]
        agent.log(jobs.API, "Received 15 death signal, shutting down workers")
        agent.stop(0)
        agent.event("FAILED")
        verdict = verdict_on(job.lines())

        assert ("signal", "SIGTERM") == (
            verdict.cause.kind,
            verdict.cause.signal,
        )
        assert ["stopped_by_agent"] * 2 == [v.why for v in verdict.victims]

    def test_membership_change(self):
        """An attempt that ends because a node came is no failure."""
        job = jobs.Job(2, 1)
        job.begin(0)
        for agent in job.agents:
            agent.now += 60_000
            agent.log(
                jobs.API,
                "[default] Detected 1 new nodes from group_rank=0; will"
                " restart worker group",
            )
            agent.stop(0)
        job.begin(1)
        job.succeed(1)
        verdict = verdict_on(job.lines())

        assert ["restarted", "succeeded"] == [
            each.outcome for each in verdict.attempts
        ]

    def test_own_words(self):
        """What a worker recorded of its end is more than its agent heard."""
        job = jobs.Job(1, 2)
        job.begin(0)
        job.fail(0, 1)
        agent = job.agents[0]
        worker = jobs.Agent(0, 2, "job")
        worker.pid = agent.pids(0)[1]
        worker.now = agent.now - 123
        worker.worker(
            "FAILED",
            0,
            1,
            1,
            error={"type": "MemoryError", "message": "no"},
            trace="Traceback (most recent call last):\nMemoryError: no\n",
        )
        verdict = verdict_on([*job.lines(), *worker.lines])

        assert ("MemoryError", worker.now, 1) == (
            verdict.cause.error.type,
            verdict.cause.time,
            verdict.cause.exit_code,
        )

    def test_without_agents(self):
        """Workers whose agents recorded nothing are explained as well."""
        worker = jobs.Agent(0, 1, "job")
        worker.pid = worker.pids(0)[0]
        worker.worker(
            "FAILED", 0, 0, 1, error={"type": "MemoryError", "message": "no"}
        )
        verdict = verdict_on(worker.lines)

        assert ("failed", "worker", "node0", 0) == (
            verdict.outcome,
            verdict.cause.kind,
            verdict.cause.node,
            verdict.cause.rank,
        )


class TestRuns:
    def test_apart(self):
        """Runs are told apart by their ids, in the order of time."""
        first, second = jobs.Job(run_id="a"), jobs.Job(run_id="b")
        for agent in second.agents:
            agent.now += 1_000_000
            agent.pid += 100
        for job in first, second:
            job.begin(0)
        first.succeed(0)
        second.fail(0, 1)
        told = verdicts_on([*second.lines(), *first.lines()])

        assert [("a", "succeeded"), ("b", "failed")] == [
            (each.run.run_id, each.outcome) for each in told
        ]

    def test_started_again(self):
        """A job that was started again under its id has further attempts."""
        first, second = jobs.Job(), jobs.Job()
        for agent in second.agents:
            agent.now += 1_000_000
            agent.pid += 100
        for job in first, second:
            job.begin(0)
        first.fail(0, 1)
        second.succeed(0)
        verdict = verdict_on([*second.lines(), *first.lines()])

        assert "succeeded" == verdict.outcome
        assert ["failed", "succeeded"] == [
            each.outcome for each in verdict.attempts
        ]

    def test_one_name_for_two_processes(self):
        """The same pid on two hosts is not one agent."""
        job = jobs.Job(2)
        for agent in job.agents:
            agent.pid = 7
        job.begin(0)
        job.fail(0, 3)
        verdict = verdict_on(job.lines(1))

        assert ("worker", 0, job.agents[1].id, 3) == short(verdict.cause)
        assert 2 == len(verdict.run.nodes)


class TestRawStreams:
    """Streams of real jobs as torch writes them: no time, file order only."""

    @pytest.mark.parametrize(
        ("names", "outcome", "cause", "attempts"),
        [
            (["standalone_ok"], "succeeded", None, ["succeeded"]),
            (["static_ok"], "succeeded", None, ["succeeded"]),
            (
                ["two_agents_ok.node0", "two_agents_ok.node1"],
                "succeeded",
                None,
                ["succeeded"],
            ),
            (
                ["crash_no_restart"],
                "failed",
                ("worker", "localhost_7410_0", 1, 1, True),
                ["failed"],
            ),
            (["restart_then_ok"], "succeeded", None, ["failed", "succeeded"]),
            (
                ["rdzv_connection_error"],
                "failed",
                ("rendezvous", "localhost_11931", None, None, True),
                [],
            ),
            (
                [
                    "lost_node_during_join.node0",
                    "lost_node_during_join.node1",
                ],
                "failed",
                ("node_lost", "localhost_15841_0", None, None, False),
                ["restarted", "failed"],
            ),
        ],
        ids=lambda value: value[0] if value and type(value) is list else "",
    )
    def test_verdict(self, names, outcome, cause, attempts):
        """Outcome, cause and node are right, and nothing is invented."""
        account = account_of(*names)
        told = account["cause"] and tuple(
            account["cause"][key]
            for key in ("kind", "node", "rank", "exit_code", "certain")
        )

        assert (outcome, cause) == (account["outcome"], told)
        assert attempts == [each["outcome"] for each in account["attempts"]]

    def test_whole(self):
        """The account is all that is promised, and has no more."""
        account = account_of("crash_no_restart")
        trace = account["cause"]["error"].pop("traceback")
        file = RAW / "crash_no_restart.jsonl"
        cause = {
            "kind": "worker",
            "attempt": 0,
            "node": "localhost_7410_0",
            "rank": 1,
            "local_rank": 1,
            "pid": 7449,
            "exit_code": 1,
            "signal": None,
            "error": {
                "type": "RuntimeError",
                "message": "boom: simulated failure on rank 1",
            },
            "time": 1796003614000,
            "certain": True,
            "lines": [f"{file}:11", f"{file}:16"],
        }
        victims = [
            {
                "node": "localhost_7410_0",
                "rank": 0,
                "exit_code": -15,
                "why": "stopped_by_agent",
            }
        ]

        assert trace.endswith("boom: simulated failure on rank 1\n")
        account["attempts"][0]["cause"]["error"].pop("traceback", None)
        assert {
            "run_id": account["run_id"],
            "outcome": "failed",
            "started": None,
            "ended": None,
            "cause": cause,
            "victims": victims,
            "lost_nodes": [],
            "attempts": [
                {
                    "attempt": 0,
                    "round": 0,
                    "restart": 0,
                    "outcome": "failed",
                    "started": None,
                    "ended": None,
                    "world_size": 2,
                    "nodes": ["localhost_7410_0"],
                    "cause": cause,
                    "victims": victims,
                }
            ],
            "unknown": [],
        } == account

    def test_restart_without_a_reason(self):
        """Why an attempt failed that torch's events hide is not invented."""
        account = account_of("restart_then_ok")
        (unknown,) = account["unknown"]

        assert "unknown" == account["attempts"][0]["cause"]["kind"]
        assert "ELASTIC_EVENTS_DESTINATION" in unknown


class TestText:
    def test_whole(self):
        """The verdict stands first, then the victims and the attempts."""
        job = jobs.Job(2, 2)
        job.begin(0)
        job.fail(0, 1, will_restart=True)
        job.begin(1)
        job.fail(1, 2)
        text = "\n".join(explained(verdict_on(job.lines())))

        assert (
            """\
Run job: FAILED
  2 attempts, 2 min 02 s, from 2024-02-29 12:34:56.000 UTC

First cause: rank 2 failed with exit code 1: ValueError: loss is nan
  on node1.cluster_4001_0, local rank 0, pid 20100, attempt 1, at 12:36:57.000
  see f:34

Victims: 3 workers
  stopped by their agents: rank 1 on node0.cluster_4000_0; rank 3 on\
 node1.cluster_4001_0
  lost the connection to a peer: rank 0 on node0.cluster_4000_0

Attempts
  0: failed, restart 0, 2 nodes, 4 workers, from 12:34:56.700, for 1 min 00 s
     rank 1 failed with exit code 1, on node0.cluster_4000_0 (not certain)
     2 workers stopped by their agents; 1 worker ended too, why is not known
     0.7 s until workers ran again
  1: failed, restart 1, 2 nodes, 4 workers, from 12:35:57.400, for 1 min 00 s

Not known
  - why rank 1 failed: it left no error; decorate its entry\
 point with torch's @record or with elastic_events.record_failures()"""
            == text
        )

    def test_traceback(self):
        """The traceback is shown when it is asked for."""
        job = jobs.Job(1)
        job.begin(0)
        job.fail(0, 1)
        verdict = verdict_on(job.lines())

        assert not [e for e in explained(verdict) if "Traceback" in e]
        assert "    ValueError: loss is nan" in explained(
            verdict, is_verbose=True
        )

    @given(st.text(min_size=1, max_size=20))
    @settings(max_examples=200)
    def test_terminal_safety(self, evil):
        """Nothing that a line says can act on the terminal."""
        job = jobs.Job(1, 2, run_id=evil)
        for agent in job.agents:
            agent.host = evil
        job.begin(0)
        job.fail(0, 1)
        for line in job.lines():
            if "worker" in line and "error" in line["worker"]:
                line["worker"]["error"] = {"type": evil, "message": evil}
                line["error_trace"] = evil
        for verdict in verdicts_on_any(job.lines()):
            for row in explained(verdict, is_verbose=True):
                assert not any(map(_can_act, row))


class TestCommand:
    @pytest.fixture(name="run")
    def _run(self, capfd, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        def run(*arguments):
            try:
                status = cli.main(["explain", *map(str, arguments)])
            except SystemExit as error:
                status = error.code
            sys.stdout.flush()
            return status, *capfd.readouterr()

        return run

    @pytest.mark.parametrize(
        ("end", "status"), [("succeed", 0), ("fail", 1), ("", 3)]
    )
    def test_status(self, run, tmp_path, end, status):
        """The exit status tells success, failure, and neither."""
        job = jobs.Job()
        job.begin(0)
        if end:
            getattr(job, end)(0, *([1] if end == "fail" else []))
        files = job.write(tmp_path)

        assert status == run(*files)[0]
        assert status == run(*files, "-o", "json")[0]

    def test_several_runs(self, run, tmp_path):
        """Several runs are listed, and one is picked by its id."""
        text = ""
        for number, name in enumerate("ab"):
            job = jobs.Job(run_id=name)
            for agent in job.agents:
                agent.pid += 100 * number
            job.begin(0)
            job.fail(0, 1)
            text += jobs.as_text(job.lines())
        file = tmp_path / "both.jsonl"
        file.write_text(text)
        status, out, _ = run(file, "-o", "json")

        assert (1, ["a", "b"]) == (
            status,
            [each["run_id"] for each in json.loads(out)],
        )
        picked = json.loads(run(file, "-o", "json", "--run-id", "b")[1])
        assert ("b", "worker") == (picked["run_id"], picked["cause"]["kind"])
        assert "--run-id picks one" in run(file)[1]

    def test_no_such_run(self, run, tmp_path):
        """A run that is not there is a usage error that says so."""
        job = jobs.Job()
        job.begin(0)
        (file,) = job.write(tmp_path, seed=1)
        status, out, err = run(file, "--run-id", "x")

        assert (2, "") == (status, out)
        assert err.startswith("elastic-events: no such run: x")

    def test_clocks(self, run, tmp_path):
        """A node whose clock is off is told of, and nothing is corrected."""
        job = jobs.Job(3, ahead=[0, 0, 900_000])
        job.begin(0)
        job.fail(0, 1)
        _, out, _ = run(*job.write(tmp_path), "-o", "json")

        assert any(
            "the clock of node2" in each and "900.0 s ahead" in each
            for each in json.loads(out)["unknown"]
        )


def account(verdict):
    return accounts.account(verdict)
