"""
What came of a run, and why: told from lines, whatever their order.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import unicodedata
from pathlib import Path

import jobs
import pytest
from hypothesis import given, settings, strategies as st
from running import runner
from valid import validated

from elastic_events.reading import accounts, causes, explaining
from elastic_events.reading.facts import Error
from elastic_events.reading.painting import plain
from elastic_events.reading.records import Record
from elastic_events.reading.sources import read
from elastic_events.reading.story import Story
from elastic_events.reading.summary import summary
from elastic_events.reading.verdicts import Cause


RAW = Path(__file__).parent / "data" / "torchrun"


def verdicts_on(lines):
    """
    Return the verdicts on lines that need no file; all are valid.
    """
    for line in lines:
        validated(jobs.as_text([line]).encode())
    return verdicts_on_any(lines)


def verdicts_on_any(lines):
    return [causes.verdict(run) for run in story_of(lines).runs()]


def story_of(lines):
    story = Story()
    for number, line in enumerate(lines, start=1):
        story.see(Record("f", number, b"", line))
    return story


def verdict_on(lines):
    (verdict,) = verdicts_on(lines)
    return verdict


def account_of(*names):
    """
    Return the account of the raw streams of *names*.
    """
    return account_of_files(*(RAW / f"{name}.jsonl" for name in names))


def account_of_files(*files):
    """
    Return the account of the one run that *files* tell of.
    """
    story, findings = Story(), []
    for record in read(map(str, files), findings.append):
        story.see(record)
    (run,) = story.runs()
    assert [] == findings
    return accounts.account(causes.verdict(run))


def scripts(run_id):
    """
    Return what a prolog records before a job, and an epilog after it.
    """
    (login,) = jobs.Job(1, 1).agents
    for name, when in ("slurm.prolog", -90_000), ("slurm.epilog", 900_000):
        login.now = jobs.START + when
        login.pid += 100
        login.say(
            kind="event",
            name=name,
            message=name,
            run_id=run_id,
            metadata={},
            seq=0,
        )
    return login.lines


def short(cause):
    return cause and (cause.kind, cause.attempt, cause.node, cause.rank)


def explained(verdict, **how):
    return list(explaining.explained(verdict, {}, paint=plain, **how))


ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["AGENT", "WORKER", "FAILED", "START", "rdzv", "log"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["error", "state", "x"]), inner)
    ),
    max_leaves=4,
)
OUTCOMES = {"succeeded", "failed", "running", "unknown"}
TYPES = {
    "attempt": (int,),
    "round": (int, type(None)),
    "restart": (int, type(None)),
    "started": (int, type(None)),
    "ended": (int, type(None)),
    "world_size": (int, type(None)),
    "node": (str, type(None)),
    "rank": (int, type(None)),
    "local_rank": (int, type(None)),
    "pid": (int, type(None)),
    "exit_code": (int, type(None)),
    "signal": (str, type(None)),
    "time": (int, type(None)),
    "certain": (bool,),
    "run_id": (str,),
    "error": (dict, type(None)),
    "cause": (dict, type(None)),
    "lines": (list,),
    "nodes": (list,),
    "lost_nodes": (list,),
    "unknown": (list,),
    "attempts": (list,),
    "victims": (list,),
    "outcome": (str,),
    "kind": (str,),
    "why": (str,),
}
OPEN_END = (
    "how it ended: no end was recorded; it may still be running, or its agents"
    " were killed, or lines are missing"
)
CAUSE = (
    "kind attempt node rank local_rank pid exit_code signal error time certain"
    " lines"
)


def check_contract(account):
    """
    Check the keys, types and sets of values of an account.
    """
    check(
        account,
        "run_id outcome started ended cause victims lost_nodes attempts"
        " unknown",
    )
    assert account["outcome"] in OUTCOMES
    for each in account["attempts"]:
        check(
            each,
            "attempt round restart outcome started ended world_size nodes"
            " cause victims",
        )
        assert each["outcome"] in OUTCOMES | {"restarted"}
    for each in [account, *account["attempts"]]:
        check_cause(each["cause"])
        for victim in each["victims"]:
            check(victim, "node rank exit_code why")
            assert victim["why"] in explaining._WHY


def check_cause(cause):
    if cause is None:
        return
    check(cause | {"attempt": cause["attempt"] or 0}, CAUSE)
    assert cause["kind"] in (
        "worker signal agent rendezvous node_lost unknown"
    )
    for text in (cause["error"] or {}).values():
        assert type(text) in (str, type(None))


def check(mapping, keys):
    assert keys.split() == list(mapping)
    for key, value in mapping.items():
        assert type(value) in TYPES[key]


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

    def test_starting(self):
        """A run whose nodes have met, but have no workers yet, is running."""
        job = jobs.Job(2, 1)
        for agent in job.agents:
            agent.join(0, 2)

        assert "running" == verdict_on(job.lines()).outcome

    def test_finished_node(self):
        """A node that is done, and waits for the others, is not lost."""
        job = jobs.Job(2, 1)
        job.begin(0)
        done, other = job.agents
        done.log(
            jobs.API,
            "[default] worker group successfully finished. Waiting 300 seconds"
            " for other agents to finish.",
        )
        other.give_up(done)
        verdict = verdict_on(job.lines())

        assert ("running", ()) == (verdict.outcome, verdict.lost_nodes)

    def test_silent_node(self):
        """Of a run without an end it is told who waits, and who is silent."""
        job = jobs.Job(2, 1)
        job.begin(0)
        done, silent = job.agents
        done.now += 199_300
        done.log(
            jobs.API,
            "[default] worker group successfully finished. Waiting 300 seconds"
            " for other agents to finish.",
        )
        verdict = verdict_on(job.lines())

        assert "running" == verdict.outcome
        assert [
            f"{OPEN_END}; {done.id} has finished, and waits for the others",
            f"what became of {silent.id}: it was last heard of at"
            " 2024-02-29T12:34:56.700Z, 3 min 19 s before the last line of"
            " the others",
        ] == account(verdict)["unknown"]

    def test_silent_nodes(self):
        """Of many only some are named; the others are counted."""
        job = jobs.Job(12, 1)
        job.begin(0)
        for agent in job.agents[:6]:
            agent.now += 60_000
            agent.rendezvous(
                f"The node '{agent.id}' attempts to join the next round of the"
                " rendezvous 'job'."
            )
        told = account(verdict_on(job.lines()))["unknown"]

        assert f"{OPEN_END}; 6 nodes wait in the rendezvous" == told[0]
        assert [agent.id for agent in job.agents[6:9]] == [
            each.partition(":")[0].removeprefix("what became of ")
            for each in told[1:4]
        ]
        assert [
            "what became of 3 nodes more, of which nothing was heard for the"
            " last 15 s or longer"
        ] == told[4:]

    def test_running_node(self):
        """Of nodes that have been heard of just now nothing is told."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.agents[0].now += 15_000
        job.agents[0].log(jobs.API, "still there")

        assert [OPEN_END] == account(verdict_on(job.lines()))["unknown"]

    def test_other_launch(self):
        """That an earlier launch was stopped is no cause of a later end."""
        first, second = jobs.Job(1, 1), jobs.Job(1, 1)
        second.agents[0].now += 1_000_000
        second.agents[0].pid += 1
        for job, number in (first, 15), (second, 2):
            job.begin(0)
            job.agents[0].told_to_stop(number)
        verdict = verdict_on([*first.lines(), *second.lines()])

        assert ["SIGTERM", "SIGINT"] == [
            each.cause.signal for each in verdict.attempts
        ]
        assert "SIGINT" == verdict.cause.signal

    def test_left(self):
        """Who lost a peer that was told to leave is a victim of the signal."""
        job = jobs.Job(2, 1)
        job.begin(0)
        stays, leaves = job.agents
        leaves.told_to_stop(15)
        leaves.now += 100
        leaves.event("FAILED")
        stays.log(
            jobs.API,
            "[default] Worker group FAILED. 1/1 attempts left; will restart"
            " worker group",
        )
        stays.join(1, 1, 1)
        stays.worker("START", 1, 0, 1)
        stays.worker("SUCCEEDED", 1, 0, 1, exit_code=0)
        verdict = verdict_on(job.lines())

        assert ["failed", "succeeded"] == [
            each.outcome for each in verdict.attempts
        ]
        assert ("signal", 0, leaves.id, None) == short(
            verdict.attempts[0].cause
        )

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
            agent.fail_worker("nan")
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
            agent.fail_worker("nan")
        verdict = verdict_on(job.lines())

        assert (1, True) == (verdict.cause.rank, verdict.cause.certain)

    def test_lost_node(self):
        """Workers that lose their peer are victims of a node that is gone."""
        job = jobs.Job(3, 1)
        job.begin(0)
        survivors, lost = job.agents[:2], job.agents[2]
        for agent in survivors:
            agent.now += 60_000
            agent.fail_worker(jobs.PEER_CLOSED)
            agent.event("FAILED")
        survivors[0].give_up(lost)
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
        job.agents[0].give_up(job.agents[1])
        job.succeed(0)
        verdict = verdict_on(job.lines())

        assert ("succeeded", ()) == (verdict.outcome, verdict.lost_nodes)

    def test_silent_node(self):
        """A node that is silent when all others have ended may be lost."""
        job = jobs.Job(2, 1)
        job.begin(0)
        agent = job.agents[0]
        agent.now += 60_000
        agent.fail_worker(jobs.PEER_CLOSED)
        agent.event("SUCCEEDED")
        verdict = verdict_on(job.lines())

        assert ("node_lost", job.agents[1].id, False) == (
            verdict.cause.kind,
            verdict.cause.node,
            verdict.cause.certain,
        )

    def test_lines_of_a_lost_node(self):
        """That a node whose lines were not given was lost is not certain."""
        job = jobs.Job(2, 1)
        job.begin(0)
        survivor, lost = job.agents
        survivor.now += 60_000
        survivor.worker("FAILED", 0, 0, 2, exit_code=-6)
        survivor.give_up(lost)
        survivor.event("SUCCEEDED")
        survivor.say(
            kind="rdzv",
            name="dynamic_rendezvous.py:DynamicRendezvousHandler.x",
            message="RendezvousConnectionError: The connection has failed.",
            run_id="job",
            level="error",
            node_state="FAILED",
        )
        survivor.lines = [
            line
            for line in survivor.lines
            if line["name"] != "torchelastic.worker.status.FAILED"
        ]
        verdict = verdict_on(survivor.lines)

        assert ("node_lost", 0, lost.id, None) == short(verdict.cause)
        assert not verdict.cause.certain

    def test_error_after_a_loss(self):
        """An error that came after a node was lost may have come of that."""
        job = jobs.Job(2, 1)
        job.begin(0)
        survivor, lost = job.agents
        lost.now += 30_000
        lost.event("RUNNING")
        survivor.now += 60_000
        survivor.give_up(lost)
        survivor.fail_worker("NCCL timeout")
        verdict = verdict_on(job.lines())

        assert ("worker", False) == (
            verdict.cause.kind,
            verdict.cause.certain,
        )

    def test_slow_to_stop(self):
        """A worker failed when its agent began to stop the others."""
        job = jobs.Job(2, 2)
        job.begin(0)
        culprit, later = job.agents
        culprit.now += 60_000
        culprit.stop(0, but=1)
        # Until the other was killed.
        culprit.now += 30_000
        culprit.say_exit(0, 1, 3)
        later.now += 70_000
        later.stop(0, but=0)
        later.say_exit(0, 0, -6)
        verdict = verdict_on(job.lines())

        assert ("worker", 0, culprit.id, 1) == short(verdict.cause)
        assert verdict.cause.certain
        assert jobs.START + 60_700 == verdict.cause.time

    def test_slow_to_tell(self):
        """An event that comes when all have stopped proves no order."""
        job = jobs.Job(2, 2)
        job.begin(0)
        culprit, later = job.agents
        culprit.now += 90_000
        culprit.worker("FAILED", 0, 1, 2, exit_code=3)
        later.now += 70_000
        later.fail_worker("gave up")
        verdict = verdict_on(job.lines())

        assert ("worker", 0, later.id, 2) == short(verdict.cause)
        assert not verdict.cause.certain

    def test_at_once(self):
        """Of two that fail on one node at once, none is certainly first."""
        job = jobs.Job(1, 2)
        job.begin(0)
        (agent,) = job.agents
        agent.say_exit(0, 0, 3)
        for local_rank in range(2):
            agent.worker("FAILED", 0, local_rank, 1, exit_code=3 + local_rank)
        verdict = verdict_on(job.lines())

        assert (0, False) == (verdict.cause.rank, verdict.cause.certain)

    def test_without_a_node(self):
        """Nothing is certain where the lines of a node were not given."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.fail(0, 0)
        told = verdict_on(job.agents[0].lines)

        assert ("worker", 0, job.agents[0].id, 0) == short(told.cause)
        assert not told.cause.certain
        assert [
            "what happened on 1 of 2 nodes of attempt 0: their lines were not"
            " given"
        ] == account(told)["unknown"]

    @pytest.mark.parametrize("ahead", [0, 300_000])
    def test_wrong_clock(self, ahead):
        """Times of a clock that is off prove no order."""
        job = jobs.Job(3, 1, ahead=[ahead])
        job.begin(0)
        for agent in job.agents[:2]:
            agent.now += 60_000 + agent.node * 9000
            agent.fail_worker("nan")
        (run,) = story_of(job.lines()).runs()
        clocks = {"node0.cluster": 300.0} if ahead else {}
        cause = causes.verdict(run, clocks).cause

        assert (1 if ahead else 0, not ahead) == (cause.rank, cause.certain)

    def test_store_gone(self):
        """An agent that lost the store may be a victim of a silent one."""
        job = jobs.Job(3, 1)
        job.begin(0)
        victim = job.agents[0]
        victim.now += 60_000
        victim.event(
            "FAILED",
            error_trace="Traceback:\nRendezvousConnectionError: no store\n",
        )
        verdict = verdict_on(job.lines())

        assert ("rendezvous", 0, victim.id, None) == short(verdict.cause)
        assert not verdict.cause.certain

    @pytest.mark.parametrize(
        ("exit_code", "question"),
        [
            (-9, "who killed rank 1"),
            (-11, "where rank 1 crashed: PYTHONFAULTHANDLER=1"),
            (-6, "where rank 1 crashed: PYTHONFAULTHANDLER=1"),
            (-15, "who sent SIGTERM to rank 1: not its agent"),
            (3, "why rank 1 failed"),
            (137, "who killed rank 1 (exit code 137 is a shell's for SIGK"),
            (139, "where rank 1 (exit code 139 is a shell's for SIGSEGV) c"),
            (200, "why rank 1 failed"),
        ],
    )
    def test_questions(self, exit_code, question):
        """What would tell more depends on how a worker ended."""
        job = jobs.Job(1, 2)
        job.begin(0)
        job.agents[0].stop(0, but=1)
        job.agents[0].say_exit(0, 1, exit_code)
        verdict = verdict_on(job.lines())
        (unknown,) = account(verdict)["unknown"]

        assert (1, exit_code, True) == (
            verdict.cause.rank,
            verdict.cause.exit_code,
            verdict.cause.certain,
        )
        assert unknown.startswith(question)

    @pytest.mark.parametrize(
        ("exit_codes", "kind", "exit_code"),
        [
            ((137, 143), "worker", 137),
            ((143, 1), "worker", 1),
            ((143, 143), "unknown", None),
        ],
    )
    def test_shells(self, exit_codes, kind, exit_code):
        """By events alone a shell's 137 and 143 may be its agent's doing."""
        job = jobs.Job(1, 2)
        job.begin(0)
        (agent,) = job.agents
        for local_rank, each in enumerate(exit_codes):
            agent.worker("FAILED", 0, local_rank, 1, exit_code=each)
        cause = verdict_on(job.lines()).cause

        assert (kind, exit_code) == (cause.kind, cause.exit_code)
        assert cause.certain is (exit_code == 1)

    def test_waited_in_vain(self):
        """Who only waited too long for another need not be to blame."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.agents[0].now += 600_000
        job.agents[0].fail_worker(
            "Watchdog caught collective operation timeout:"
            " WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000)"
        )
        job.agents[1].now += 610_000
        job.agents[1].fail_worker(jobs.PEER_CLOSED)
        verdict = verdict_on(job.lines())

        assert 0 == verdict.cause.rank
        assert [
            "for whom rank 0 waited in vain: a worker that is slow or hangs"
            " need not fail; look at what those without this error did"
        ] == account(verdict)["unknown"]

    @pytest.mark.parametrize("jump", [-3_600_000, 0])
    def test_clock_set_back(self, jump):
        """Nothing is certain by a clock that was set back meanwhile."""
        job = jobs.Job(2, 1)
        job.begin(0)
        first, second = job.agents
        first.now += 60_000
        second.now += 69_000
        second.ahead = jump
        for agent in job.agents:
            agent.fail_worker("nan")
        verdict = verdict_on(job.lines())

        assert (1 if jump else 0, not jump) == (
            verdict.cause.rank,
            verdict.cause.certain,
        )
        assert bool(jump) is (
            f"what was first on {second.id}, and when: its clock went back by"
            " 3531.0 s meanwhile; times are shown as they are"
            in account(verdict)["unknown"]
        )

    def test_no_negative_time(self):
        """An attempt that ends before it begins has no length."""
        job = jobs.Job(1, 1)
        job.begin(0)
        job.agents[0].ahead = -3_600_000
        job.succeed(0)
        rows = explained(verdict_on(job.lines()))

        assert (
            "  0: succeeded, restart 0, 1 node, 1 worker, from 12:34:56.700"
            in rows
        )

    def test_error_file_of_another(self):
        """The error file beside a killed worker is another worker's."""
        job = jobs.Job(1, 2)
        job.begin(0)
        agent = job.agents[0]
        agent.now += 60_000
        agent.log(
            "torch.distributed.elastic.multiprocessing.errors",
            "User process failed with error data: {}",
            level="debug",
            worker={"error": jobs._error(agent, jobs.PEER_CLOSED)["error"]},
        )
        agent.stop(0, but=1)
        agent.say_exit(0, 1, -9)
        verdict = verdict_on(job.lines())

        assert ("worker", 1, "SIGKILL", None) == (
            verdict.cause.kind,
            verdict.cause.rank,
            verdict.cause.signal,
            verdict.cause.error,
        )

    def test_rendezvous_closed(self):
        """An agent that comes back when all is over is a victim."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.fail(0, 1, will_restart=True)
        late, done = job.agents
        done.event("SUCCEEDED")
        late.say(
            kind="rdzv",
            level="error",
            name="dynamic_rendezvous.py:DynamicRendezvousHandler.x",
            message="RendezvousClosedError: ",
            run_id="job",
            node_state="FAILED",
            error_trace="RendezvousClosedError\n",
        )
        late.event("FAILED", error_trace="RendezvousClosedError\n")
        verdict = verdict_on(job.lines())

        assert ("failed", 1) == (verdict.outcome, verdict.cause.rank)
        assert (late.id, "rendezvous_closed") in [
            (victim.node, victim.why) for victim in verdict.victims
        ]

    def test_told_to_stop(self):
        """A signal to an agent is the cause, its workers are victims."""
        job = jobs.Job(1)
        job.begin(0)
        agent = job.agents[0]
        agent.told_to_stop(15)
        agent.stop(0)
        agent.event("FAILED")
        verdict = verdict_on(job.lines())

        assert ("signal", "SIGTERM") == (
            verdict.cause.kind,
            verdict.cause.signal,
        )
        assert ["stopped_by_agent"] * 2 == [v.why for v in verdict.victims]

    @pytest.mark.parametrize(
        ("number", "outcome"),
        [
            (15, {"exit_code": -15}),
            (15, {"exit_code": 143}),
            (2, {"exit_code": -2}),
            (2, {"exit_code": 1, "error": {"type": "KeyboardInterrupt"}}),
        ],
    )
    def test_signal_to_all(self, number, outcome):
        """A signal that agent and workers got is not a worker's failure."""
        job = jobs.Job(1, 2)
        job.begin(0)
        (agent,) = job.agents
        agent.told_to_stop(number)
        for local_rank in range(2):
            agent.worker("FAILED", 0, local_rank, 1, **outcome)
        agent.event("FAILED")
        verdict = verdict_on(job.lines())

        assert ("signal", True) == (verdict.cause.kind, verdict.cause.certain)
        assert [0, 1] == [victim.rank for victim in verdict.victims]

    def test_signal_of_an_earlier_attempt(self):
        """A signal that a worker got before its agent did is its own."""
        job = jobs.Job(1, 2)
        job.begin(0)
        job.fail(0, 1, exit_code=-15, will_restart=True)
        job.begin(1)
        job.agents[0].told_to_stop(15)
        first, second = verdict_on(job.lines()).attempts

        assert ("worker", "signal") == (first.cause.kind, second.cause.kind)

    def test_peer_done(self):
        """Who may have closed a connection because it was done is told."""
        job = jobs.Job(2, 1)
        job.begin(0)
        done, late = job.agents
        done.worker("SUCCEEDED", 0, 0, 2, exit_code=0)
        done.event("SUCCEEDED")
        late.fail_worker(jobs.PEER_CLOSED)
        late.event("SUCCEEDED")

        assert [
            "who closed the connection that rank 1 lost: nothing that was"
            " recorded tells of another failure; rank 0 had ended well"
        ] == account(verdict_on(job.lines()))["unknown"]

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

    def test_only_workers_of_agents(self):
        """What an agent says of its workers is not their own words."""
        job = jobs.Job(2, 2)
        job.begin(0)
        job.fail(0, 1)
        verdict = verdict_on(
            [line for line in job.lines() if line["source"] == "WORKER"]
        )

        assert ("node0_4000", 1, 10_001, "ValueError") == (
            verdict.cause.node,
            verdict.cause.rank,
            verdict.cause.pid,
            verdict.cause.error.type,
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

    @pytest.mark.parametrize("run_id", ["job", "77"])
    def test_scripts(self, run_id):
        """What scripts record is no run of its own, nor stretches another."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.succeed(0)
        (expected,) = verdicts_on(job.lines())
        (told,) = verdicts_on([*job.lines(), *scripts(run_id)])

        assert account(expected) == account(told)

    def test_only_scripts(self):
        """Where nothing else tells of a run, what scripts record is one."""
        verdict = verdict_on(scripts("77"))

        assert (
            "77",
            "unknown",
            jobs.START - 90_000,
            jobs.START + 900_000,
        ) == (
            verdict.run.run_id,
            verdict.outcome,
            verdict.run.started,
            verdict.run.last,
        )

    def test_worker_goes_on(self):
        """A run lasts as long as its workers tell anything."""
        job = jobs.Job(1, 1)
        job.begin(0)
        agent = job.agents[0]
        agent.now += 60_000
        agent.say(
            kind="log",
            source="WORKER",
            run_id="job",
            rank=0,
            message="step",
            logger="train",
            pid=agent.pids(0)[0],
            seq=0,
        )

        assert agent.now == verdict_on(job.lines()).run.last

    def test_shared_id(self):
        """Jobs of one id at the same time are several runs, each its own."""
        failed, well = (jobs.Job(1, 2, run_id="none") for _ in range(2))
        well.agents[0].now += 10_000
        well.agents[0].pid += 1
        for job in failed, well:
            job.begin(0)
        well.succeed(0)
        failed.agents[0].now += 100_000
        failed.fail(0, 1)
        told = verdicts_on([*failed.lines(), *well.lines()])

        assert [("none", "failed", 1), ("none", "succeeded", 1)] == [
            (each.run.run_id, each.outcome, len(each.attempts))
            for each in told
        ]
        assert all(
            "another one had the same run id" in account(each)["unknown"][-1]
            for each in told
        )

    def test_two_destinations(self):
        """The lines of an agent in two files, numbered apart, are in order."""
        job = jobs.Job(1, 2)
        job.begin(0)
        job.fail(0, 1, will_restart=True)
        job.begin(1)
        job.succeed(1)
        story = Story()
        for name in "rdzv", "others":
            number = 0
            for line in job.lines():
                if (line["kind"] == "rdzv") is (name == "rdzv"):
                    said = {**line, "seq": number}
                    number += 1
                    story.see(Record(name, number, b"", said))
        (run,) = story.runs()

        assert ["failed", "succeeded"] == [
            each.outcome for each in causes.verdict(run).attempts
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

    @pytest.mark.parametrize("seed", [None, *range(3)])
    @pytest.mark.parametrize(
        "name", ["localhost", "10.0.0.{}", "node{}.cluster"]
    )
    def test_names_in_a_rendezvous(self, name, seed):
        """However a rendezvous calls the hosts, each agent is one node."""
        job = jobs.Job(2)
        for agent in job.agents:
            agent.name_in_rendezvous = name.format(agent.node)
        job.begin(0)
        job.fail(0, 3)
        verdict = verdict_on(
            [line for line in job.lines(seed) if line["kind"] != "log"]
        )

        assert [agent.id for agent in job.agents] == [
            node.id
            for node in sorted(verdict.run.nodes, key=lambda node: node.pid)
        ]
        assert ("worker", 0, job.agents[1].id, 3) == short(verdict.cause)

    def test_addresses(self):
        """Two hosts known by their addresses are two nodes."""
        job = jobs.Job(2)
        for agent in job.agents:
            agent.pid = 7
            agent.host = agent.name_in_rendezvous = f"10.0.0.{agent.node}"
        job.begin(0)
        job.fail(0, 3)
        verdict = verdict_on(job.lines())

        assert ("worker", 0, "10.0.0.1_7_0", 3) == short(verdict.cause)
        assert 2 == len(verdict.run.nodes)

    def test_started_again_without_a_rendezvous(self):
        """A static job that was started again has two attempts."""
        first, second = jobs.Job(1, run_id="none"), jobs.Job(1, run_id="none")
        second.agents[0].now += 1_000_000
        second.agents[0].pid += 1
        for job in first, second:
            job.begin(0)
        first.fail(0, 1)
        second.succeed(0)
        verdict = verdict_on(
            [
                line
                for line in [*first.lines(), *second.lines()]
                if line["kind"] != "rdzv"
            ]
        )

        assert ["failed", "succeeded"] == [
            each.outcome for each in verdict.attempts
        ]
        assert [1, 1] == [each.attempt.group_size for each in verdict.attempts]

    @pytest.mark.parametrize("name", ["localhost", ""])
    def test_started_again_in_a_container(self, name):
        """An agent with the host and pid of an earlier one is another one."""
        lines = []
        for launch, end in enumerate((jobs.Job.fail, jobs.Job.succeed)):
            job = jobs.Job(1)
            (agent,) = job.agents
            agent.pid = 1
            agent.name_in_rendezvous = name
            agent.now += launch * 1_000_000
            agent.log(jobs.API, "[default] starting workers")
            job.begin(0)
            end(job, 0, *([1] if end is jobs.Job.fail else []))
            lines += job.lines()
        verdict = verdict_on(lines)

        assert ["failed", "succeeded"] == [
            each.outcome for each in verdict.attempts
        ]
        assert ("worker", 0, agent.id, 1) == short(verdict.attempts[0].cause)

    def test_twice_the_same_line(self):
        """A first line that was delivered twice begins no other process."""
        job = jobs.Job(1)
        job.begin(0)
        job.succeed(0)
        lines = job.lines()
        verdict = verdict_on([lines[0], *lines])

        assert (1, "succeeded") == (len(verdict.run.nodes), verdict.outcome)

    def test_only_logs(self):
        """By torch's logs alone the attempts are told apart as well."""
        job = jobs.Job(1, 2)
        (agent,) = job.agents
        agent.log(
            "torch.distributed.launcher.api",
            "Starting elastic_operator with launch configs:\n"
            "  run_id    : job\n",
        )
        for attempt, local_rank in enumerate((1, 0)):
            agent.log(
                "torch.distributed.elastic.multiprocessing.errors",
                "User process failed with error data: {}",
                worker={"error": {"type": "ValueError", "message": "nan"}},
            )
            agent.stop(attempt, but=local_rank)
            agent.say_exit(attempt, local_rank, 1)
            if not attempt:
                agent.log(
                    jobs.API,
                    "[default] Worker group FAILED. 1/1 attempts left; will"
                    " restart worker group",
                )
        verdict = verdict_on(job.lines())

        assert ("failed", [1, 0], ["ValueError"] * 2) == (
            verdict.outcome,
            [each.cause.local_rank for each in verdict.attempts],
            [each.cause.error.type for each in verdict.attempts],
        )

    def test_scale(self):
        """A job of many workers on few nodes, and many launches, is quick."""
        lines = []
        for launch in range(100):
            job = jobs.Job(4, 2)
            for agent in job.agents:
                agent.now += launch * 10_000_000
                agent.pid += launch * 10
            job.begin(0)
            job.succeed(0)
            lines += job.lines()
        wide = jobs.Job(2, 3000, run_id="wide")
        for agent in wide.agents:
            agent.pid += 5000
        wide.begin(0)
        wide.fail(0, 5)
        begun = time.monotonic()
        told = verdicts_on_any([*lines, *wide.lines()])

        assert 10 > time.monotonic() - begun
        assert [100, 1] == [len(each.attempts) for each in told]


class TestAnyLines:
    """However few lines are given, and whatever they say."""

    @pytest.mark.parametrize("kind", ["failed", "restarted", "lost"])
    @pytest.mark.parametrize("without", ["", "log", "rdzv", "event"])
    def test_beginnings(self, kind, without):
        """Of no beginning of a job is another worker certainly the cause."""
        job = jobs.Job(2, 2)
        job.begin(0)
        job.fail(0, 1, will_restart=kind == "restarted")
        if kind == "restarted":
            job.begin(1)
            job.fail(1, 2)
        if kind == "lost":
            job.agents[1].lines = job.agents[1].lines[:5]
        lines = sorted(job.lines(), key=lambda line: line["timestamp"])
        lines = [line for line in lines if line["kind"] != without]
        culprits = [(0, 10_001), (1, 20_100)]
        for end in range(len(lines)):
            for verdict in verdicts_on_any(lines[:end]):
                for each in verdict.attempts:
                    cause = each.cause
                    if cause and cause.kind == "worker" and cause.certain:
                        found = (cause.attempt, cause.pid)

                        assert found in culprits

    def of_stopped_job(self):
        """
        Return the lines of a job that failed, was restarted, and stopped.
        """
        job = jobs.Job(2, 2)
        job.begin(0)
        job.fail(0, 1, will_restart=True)
        job.begin(1)
        job.agents[1].told_to_stop(15)
        job.agents[0].give_up(job.agents[1])
        return json.loads(json.dumps(job.lines()))

    @given(st.data())
    @settings(max_examples=300, deadline=None)
    def test_contract(self, data):
        """Whatever value a line has, the account is as it is promised."""
        lines = self.of_stopped_job()
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.sampled_from(lines))
            inner = [each for each in place.values() if type(each) is dict]
            place = data.draw(st.sampled_from([place, *inner]))
            key = data.draw(st.sampled_from(sorted(place) or ["pid"]))
            place[key] = data.draw(ANY_VALUE)
        for verdict in verdicts_on_any(lines):
            check_contract(json.loads(json.dumps(account(verdict))))
            assert explained(verdict, is_verbose=True)

    def test_two_nodes_of_one_name(self):
        """Two nodes that seem to have one name are judged, each by its own."""
        lines = self.of_stopped_job()
        for line in lines:
            if line["pid"] == 4001 and "attempts to join" in line["message"]:
                line["hostname"] = None
            if "Received 15 death signal" in line["message"]:
                line["hostname"] = "0"
        (verdict,) = verdicts_on_any(lines)

        check_contract(json.loads(json.dumps(account(verdict))))

    def test_long_text(self):
        """A long text that resembles one of torch's takes no longer."""
        job = jobs.Job(1, 1)
        job.begin(0)
        begin = time.monotonic()
        # With a step back for each bracket it would take half a minute.
        text = "[" + "] Worker group X. " * 56_000
        job.agents[0].log("torch.distributed.elastic.agent.server.api", text)
        verdict_on(job.lines())

        assert time.monotonic() - begin < 5


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

    @pytest.mark.parametrize("first", ["crash_no_restart", "standalone_ok"])
    def test_appended(self, tmp_path, first):
        """A job that was started again into its file has two attempts."""
        second = {"crash_no_restart": "standalone_ok"}.get(
            first, "crash_no_restart"
        )
        raw = [
            (RAW / f"{name}.jsonl").read_bytes() for name in (first, second)
        ]
        ids = [re.search(rb'"run_id": "([^"]+)"', each)[1] for each in raw]
        file = tmp_path / "raw.jsonl"
        file.write_bytes(raw[0] + raw[1].replace(ids[1], ids[0]))
        account = account_of_files(file)
        outcomes = {"crash_no_restart": "failed", "standalone_ok": "succeeded"}

        assert [outcomes[first], outcomes[second]] == [
            each["outcome"] for each in account["attempts"]
        ]
        assert outcomes[second] == account["outcome"]
        assert ["localhost_7410_0"] == [
            each["cause"]["node"]
            for each in account["attempts"]
            if each["cause"]
        ]
        assert [] == account["unknown"]

    @pytest.mark.parametrize(
        "name", ["two_agents_ok", "lost_node_during_join"]
    )
    def test_one_file(self, tmp_path, name):
        """Agents one after the other in one file are told apart."""
        names = [f"{name}.node{number}" for number in range(2)]
        file = tmp_path / "raw.jsonl"
        file.write_bytes(
            b"".join((RAW / f"{each}.jsonl").read_bytes() for each in names)
        )
        apart, together = account_of(*names), account_of_files(file)

        for account in apart, together:
            for each in (account, *account["attempts"]):
                if each["cause"]:
                    del each["cause"]["lines"]
        assert apart == together

    def test_mixed(self, tmp_path):
        """That agents took turns in one file is told, and nothing certain."""
        lines = [
            (RAW / f"lost_node_during_join.node{number}.jsonl")
            .read_bytes()
            .splitlines(keepends=True)
            for number in range(2)
        ]
        file = tmp_path / "raw.jsonl"
        file.write_bytes(
            b"".join(
                each
                for pair in itertools.zip_longest(*lines, fillvalue=b"")
                for each in pair
            )
        )
        account = account_of_files(file)

        assert account["cause"] is None or not account["cause"]["certain"]
        assert any(
            f"which agent wrote which line of {file}" in each
            for each in account["unknown"]
        )

    def test_restart_without_a_reason(self):
        """Why an attempt failed that torch's events hide is not invented."""
        account = account_of("restart_then_ok")
        (unknown,) = account["unknown"]

        assert "unknown" == account["attempts"][0]["cause"]["kind"]
        assert "ELASTIC_EVENTS_DESTINATION" in unknown


class TestMeeting:
    def test_wait(self):
        """How long the nodes took to meet, and who came last, is told."""
        job = jobs.Job(2, 1)
        job.begin(0)
        late = job.agents[1]
        for line in late.lines:
            if "attempts to join" in line["message"]:
                line["timestamp"] += 500
        job.succeed(0)
        (run,) = (each.run for each in verdicts_on_any(job.lines(1)))
        (attempt,) = run.attempts

        assert [700, 200] == [part.wait for part in attempt.parts]
        assert 700 == attempt.wait
        (verdict,) = verdicts_on_any(job.lines())
        assert f"     met in 0.7 s, {late.id} came last" in explained(
            verdict, is_verbose=True
        )

    def test_left(self):
        """When a node took itself out of a round is kept."""
        job = jobs.Job(2, 1)
        job.begin(0)
        job.fail(0, 1, will_restart=True)
        left = job.agents[1]
        left.rendezvous(
            f"The node '{left.id}' removed itself from the participants of"
            " round 0 of the rendezvous 'job'. Pending sync."
        )
        when = left.lines[-1]["timestamp"]
        job.begin(1)
        job.succeed(1)
        first, second = verdict_on(job.lines()).run.attempts

        assert [None, when] == [
            part.left and part.left.time for part in first.parts
        ]
        assert [None, None] == [part.left for part in second.parts]


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
  on node1.cluster_4001_0, local rank 0, pid 20100, attempt 1, at 12:36:57.800
  see f:34

Victims: 3 workers
  stopped by the agent: rank 1 on node0.cluster_4000_0; rank 3 on\
 node1.cluster_4001_0
  lost the connection to a peer: rank 0 on node0.cluster_4000_0

Attempts
  0: failed, restart 0, 2 nodes, 4 workers, from 12:34:56.700, for 1 min 00 s
     rank 1 failed with exit code 1, on node0.cluster_4000_0 (not certain)
     2 workers stopped by the agent; 1 worker ended too, why is not known
     0.7 s until workers ran again
  1: failed, restart 1, 2 nodes, 4 workers, from 12:35:57.400, for 1 min 00 s

Not known
  - why rank 1 failed: it left no error; decorate its entry\
 point with torch's @record or with elastic_events.record_failures()"""
            == text
        )

    @pytest.mark.parametrize(
        ("exit_code", "error", "said"),
        [
            (-6, None, "rank 1 died by SIGABRT"),
            (
                -6,
                Error("ValueError", "nan"),
                "rank 1 died by SIGABRT; its error data says ValueError: nan",
            ),
            (1, None, "rank 1 failed with exit code 1"),
            (
                1,
                Error("ValueError", "nan"),
                "rank 1 failed with exit code 1: ValueError: nan",
            ),
            (None, Error("ValueError"), "rank 1 failed: ValueError"),
        ],
    )
    def test_worker(self, exit_code, error, said):
        """Of a signal the error is not said to be the reason."""
        cause = Cause("worker", rank=1, exit_code=exit_code, error=error)

        assert said == summary(cause)

    def test_days(self):
        """What was on another day than the beginning has its date."""
        job = jobs.Job(1, 1)
        job.begin(0)
        job.agents[0].now += 86_400_000
        job.fail(0, 0)
        rows = explained(verdict_on(job.lines()))

        assert "from 2024-02-29 12:34:56.000 UTC" in rows[1]
        assert rows[4].endswith(" at 2024-03-01 12:35:56.700")
        assert ", from 12:34:56.700, for 24 h 01 min" in rows[-1]

    @pytest.mark.parametrize(
        ("later", "milliseconds", "told"),
        [
            (0, 700, "12:35:56.700"),
            (299, 999, "12:35:56.999"),
            (300, 0, "12:35:56"),
            (30_000, 0, "12:35:56"),
        ],
    )
    def test_time_of_error(self, later, milliseconds, told):
        """
        What is recorded within the second of an error tells when it was.

        Else no more than that second is known, and told.
        """
        job = jobs.Job(1, 1)
        job.begin(0)
        agent = job.agents[0]
        agent.now += 60_000
        error = jobs._error(agent, "loss is nan", "ValueError")
        agent.now += later
        agent.worker("FAILED", 0, 0, 1, exit_code=1, **error)
        verdict = verdict_on(job.lines())

        assert jobs.START + 60_000 + milliseconds == verdict.cause.time
        assert explained(verdict)[4].endswith(f", attempt 0, at {told}")

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
        return runner(capfd, "explain")

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

    @pytest.mark.parametrize(
        ("ends", "status"),
        [
            (("fail", ""), 1),
            (("", "fail"), 1),
            (("fail", "succeed"), 1),
            (("succeed", ""), 3),
            (("succeed", "succeed"), 0),
        ],
    )
    def test_status_of_several(self, run, tmp_path, ends, status):
        """A failed run counts more than one whose end is not known."""
        text = ""
        for number, end in enumerate(ends):
            job = jobs.Job(run_id=f"job-{number}")
            for agent in job.agents:
                agent.pid += 100 * number
            job.begin(0)
            if end:
                getattr(job, end)(0, *([1] if end == "fail" else []))
            text += jobs.as_text(job.lines())
        file = tmp_path / "both.jsonl"
        file.write_text(text)

        assert status == run(file)[0]

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

    def test_shared_id(self, run, tmp_path):
        """Jobs of one id, which none can pick, are told in full."""
        text = ""
        for number in range(2):
            job = jobs.Job(1, 1)
            job.agents[0].pid += number
            job.begin(0)
            job.fail(0, 0)
            text += jobs.as_text(job.lines())
        file = tmp_path / "both.jsonl"
        file.write_text(text)
        status, out, _ = run(file)

        assert (1, 2, 2) == (
            status,
            out.count("Run job: FAILED\n"),
            out.count("\nFirst cause: rank 0 failed"),
        )

    def test_no_such_run(self, run, tmp_path):
        """A run that is not there is a usage error that says so."""
        job = jobs.Job()
        job.begin(0)
        (file,) = job.write(tmp_path, seed=1)

        assert (
            2,
            "",
            "elastic-events: no such run: x; expected one of job\n",
        ) == run(file, "--run-id", "x")

    @pytest.mark.parametrize(
        ("filters", "where"),
        [([], ""), (["--rank", "9"], " by what the filters leave")],
    )
    def test_no_run(self, run, tmp_path, filters, where):
        """Where no run is told of, it is said what is expected."""
        file = tmp_path / "events.jsonl"
        file.write_text('{"kind":"log"}\n')

        assert (
            2,
            "",
            f"elastic-events: no run is told of{where}: expected lines that"
            " name a run_id, as agents and workers under torchrun record"
            " them\n",
        ) == run(file, *filters)

    def test_unreadable(self, run, tmp_path):
        """Where nothing could be read, that alone is said."""
        missing = tmp_path / "none.jsonl"
        told = f"elastic-events: {missing}: No such file or directory\n"

        assert (2, "", told) == run(missing)

    def test_filters(self, run, tmp_path):
        """Nothing is certain where filters leave lines out, which is said."""
        job = jobs.Job(1, 2)
        job.begin(0)
        job.fail(0, 1)
        (file,) = job.write(tmp_path)
        whole, filtered = (
            json.loads(run(file, "-o", "json", *filters)[1])
            for filters in ((), ("--rank", "1"))
        )

        assert (True, []) == (whole["cause"]["certain"], whole["unknown"])
        assert not filtered["cause"]["certain"]
        assert [
            "what the lines tell that the filters left out: try without them"
        ] == filtered["unknown"]

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
