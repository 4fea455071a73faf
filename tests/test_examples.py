"""
The examples do what they show.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree, ignore_patterns, which

import pytest
from running import command, having


EXAMPLES = Path(__file__).parents[1] / "examples"
# The cells of each row: what it is, what it shows, and the command.
TABLE = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in (EXAMPLES / "README.md").read_text().splitlines()
    if row.startswith("| [")
]
SECONDS = 120
STATUS = "torchelastic.worker.status"


def command_of(name):
    """
    Return the command by which README runs an example.
    """
    (line,) = (run for file, _, run in TABLE if f"]({name})" in file)
    return line.strip("`")


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path):
    """
    A folder with copies of the examples.
    """
    ignored = ignore_patterns("__pycache__")
    return copytree(EXAMPLES, tmp_path, ignore=ignored, dirs_exist_ok=True)


@pytest.fixture(name="start")
def _start(folder):
    """
    Start a command in the folder; whatever it has started is ended.
    """
    bin_folder = Path(sys.executable).parent
    mark = str(folder)

    def start(line, **environment):
        return subprocess.Popen(
            ["bash", "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PATH": f"{bin_folder}:{os.environ['PATH']}",
                "STARTED_IN": mark,
                **environment,
            },
        )

    yield start
    for pid in having(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(name="run")
def _run(start):
    """
    Run a command in the folder: exit status, output, standard error.
    """

    def run(line, **environment):
        process = start(line, **environment)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err.decode()

    return run


@pytest.fixture(name="read")
def _read(folder, validate):
    """
    Read what stands in a file, each line valid.
    """

    def read(name):
        raw = (folder / name).read_bytes()
        return [validate(each) for each in raw.splitlines(keepends=True)]

    return read


def wait_for_steps(file):
    """
    Wait until a worker has recorded some.
    """
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if file.exists() and b"train.step" in file.read_bytes():
            return
        time.sleep(0.05)
    raise AssertionError(f"no step in {file}")


def explained(file):
    """
    Return what ``explain`` says, less what differs from run to run.
    """
    done = command("explain", "-o", "json", str(file))
    said = json.loads(done.stdout)
    return {
        "outcome": said["outcome"],
        "cause": steady(said["cause"]),
        "victims": [steady(each) for each in said["victims"]],
        "attempts": [
            (each["restart"], each["outcome"], each["world_size"])
            for each in said["attempts"]
        ],
        "unknown": said["unknown"],
    }


def steady(cause):
    volatile = {"node", "pid", "time", "lines", "error"}
    return cause and {
        key: value for key, value in cause.items() if key not in volatile
    }


class TestTable:
    def test_complete(self):
        """README names every example, and gives each a command."""
        named = {
            name
            for files, _, _ in TABLE
            for name in re.findall(r"\]\(([^)]+)\)", files)
        }
        there = {path.name for path in EXAMPLES.iterdir()}

        assert there - {"README.md", "__pycache__"} == named
        assert all(line.startswith("`") for _, _, line in TABLE)

    def test_links(self):
        """Every link leads to a file."""
        text = (EXAMPLES / "README.md").read_text()

        for target in re.findall(r"\]\(([^)]+)\)", text):
            assert (EXAMPLES / target).exists(), target


class TestWorker:
    def test_steps(self, run, validate):
        """A worker records its steps, and the epoch that each belongs to."""
        line = f"{command_of('worker.py')} --seconds 0 --epochs 2 --steps 2"
        status, out, err = run(line, RANK="3", TORCHELASTIC_RUN_ID="job-1")
        said = [validate(each) for each in out.splitlines(keepends=True)]

        assert (0, "") == (status, err)
        assert [
            ("train.step", "WORKER", "job-1", 3, epoch, step, loss)
            for epoch in (0, 1)
            for step, loss in enumerate((0.25, 0.2))
        ] == [
            (
                *(each[key] for key in ("name", "source", "run_id", "rank")),
                each["epoch"],
                each["metadata"]["step"],
                each["metadata"]["loss"],
            )
            for each in said
        ]

    def test_failure(self, run, validate):
        """A worker records why it fails, and fails."""
        line = f"{command_of('worker.py')} --seconds 0 --fail-rank 0"
        status, out, err = run(line)
        step, failed = map(validate, out.splitlines(keepends=True))

        assert 1 == status
        assert "train.step" == step["name"]
        assert err.endswith("\nFloatingPointError: loss is not finite\n")
        assert (f"{STATUS}.FAILED", "error") == (
            failed["name"],
            failed["level"],
        )
        assert ("FloatingPointError", "loss is not finite") == (
            failed["worker"]["error"]["type"],
            failed["worker"]["error"]["message"],
        )


class TestAgent:
    def test_restart(self, run, read, folder):
        """A worker fails, all are started again, and the job succeeds."""
        status, out, _ = run(command_of("agent.py"))
        lines = read("events.jsonl")
        story = explained(folder / "events.jsonl")
        steps = [
            (each["rank"], each["epoch"], each["metadata"]["step"])
            for each in lines
            if each.get("name") == "train.step" and each["restart"] == 1
        ]

        assert (0, b"") == (status, out)
        assert 1 == len({each["run_id"] for each in lines})
        assert [
            (rank, epoch, step)
            for rank in range(2)
            for epoch in range(2)
            for step in range(5)
        ] == sorted(steps)
        assert {
            "outcome": "succeeded",
            "cause": None,
            "victims": [],
            "attempts": [(0, "failed", 2), (1, "succeeded", 2)],
            "unknown": [],
        } == story

    def test_failure(self, run, read, folder):
        """A job that fails for good is explained by its first cause."""
        status, _, err = run(
            "python agent.py --run-id job-1 --workers 3 worker.py --steps 500"
            " --fail-rank 1 --failures 2"
        )
        lines = read("events.jsonl")
        done = command("explain", str(folder / "events.jsonl"))
        agent = [each for each in lines if each["source"] == "AGENT"]

        assert 1 == status
        assert 2 == err.count("\nFloatingPointError: loss is not finite\n")
        assert {"job-1"} == {each["run_id"] for each in lines}
        assert [
            (0, "starting 3 workers", None),
            (0, "a worker failed", {"left": 1}),
            (1, "starting 3 workers", None),
            (1, "a worker failed", {"left": 0}),
            (None, f"{STATUS}.FAILED", {"state": "FAILED"}),
        ] == [
            (each.get("restart"), each["message"], each.get("metadata"))
            for each in agent
        ]
        assert {
            "outcome": "failed",
            "cause": {
                "kind": "worker",
                "attempt": 1,
                "rank": 1,
                "local_rank": 1,
                "exit_code": 1,
                "signal": None,
                "certain": True,
            },
            "victims": [
                {"rank": rank, "exit_code": -15, "why": "stopped_by_agent"}
                for rank in (0, 2)
            ],
            "attempts": [(0, "failed", 3), (1, "failed", 3)],
            "unknown": [],
        } == explained(folder / "events.jsonl")
        assert (
            "\nFirst cause: rank 1 failed with exit code 1:"
            " FloatingPointError: loss is not finite\n"
        ) in done.stdout

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_stopped(self, start, read, folder, number):
        """An agent that is told to stop takes its workers along."""
        process = start("exec python agent.py worker.py --steps 500")
        file = folder / "events.jsonl"
        wait_for_steps(file)
        process.send_signal(number)
        _, err = process.communicate(timeout=SECONDS)
        *_, last = read("events.jsonl")
        story = explained(file)

        assert [] == [*having(str(folder))]
        assert 1 == process.returncode
        assert f"got signal: {number.value}\n" in err.decode()
        assert last["error_trace"] == last["metadata"]["raw_error"]
        assert {
            "kind": "signal",
            "attempt": 0,
            "rank": None,
            "local_rank": None,
            "exit_code": None,
            "signal": number.name,
            "certain": True,
        } == story["cause"]
        assert [(0, "stopped_by_agent"), (1, "stopped_by_agent")] == [
            (each["rank"], each["why"]) for each in story["victims"]
        ]

    def test_complete(self, run, folder):
        """No line of the job is torn, missing, or not as the schema says."""
        run("python agent.py worker.py --steps 2 --fail-rank 1")
        done = command("validate", str(folder / "events.jsonl"))

        assert (0, "") == (done.returncode, done.stderr)
        assert done.stdout.endswith(" lines: all is well\n")

    def test_no_script(self, run, folder):
        """Without a script nothing is started."""
        status, _, err = run("python agent.py")

        assert 2 == status
        assert err.endswith("no script was given: what do the workers run?\n")
        assert not (folder / "events.jsonl").exists()


class TestPlainLogging:
    def test_lines(self, run, read):
        """Every message and event is one line, in the file it belongs to."""
        status, out, err = run(command_of("plain_logging.py"))
        log = read("log.jsonl")
        *_, failed = log

        assert (0, b"") == (status, out)
        assert [
            ("trainer", "info", "training on 2 nodes", {"batch_size": 64}),
            ("trainer", "error", "no checkpoint", {"step": 2}),
        ] == [
            tuple(
                each[key] for key in ("logger", "level", "message", "metadata")
            )
            for each in log
        ]
        assert failed["error_trace"].endswith("directory: 'missing.pt'")
        assert [
            ("event", "train.step", {"step": step}) for step in range(3)
        ] == [
            (each["kind"], each["name"], each["metadata"])
            for each in read("steps.jsonl")
        ]
        assert ["training on 2 nodes", "no checkpoint"] == [
            line.partition(" trainer: ")[2]
            for line in err.splitlines()
            if " trainer: " in line
        ]


class TestSlurmEvent:
    def test_prolog(self, run, validate):
        """A prolog's event says which job begins, and whose it is."""
        status, out, err = run(
            command_of("slurm_event.sh"),
            SLURM_JOB_USER="ann",
            SLURM_JOB_NODELIST="node[1-4]",
        )
        said = validate(err.encode())

        assert (0, b"") == (status, out)
        assert ("slurm.prolog_slurmd", "AGENT", "7") == (
            said["name"],
            said["source"],
            said["run_id"],
        )
        assert {
            "slurm_job_user": "ann",
            "slurm_job_nodelist": "node[1-4]",
        } == said["metadata"]

    def test_epilog(self, run, read):
        """An epilog's event stands below its prolog's, with the exit code."""
        job = {
            "ELASTIC_EVENTS_DESTINATION": "file:logs/{hostname}.jsonl",
            "SLURM_JOB_ID": "7",
        }
        run("./slurm_event.sh", SLURM_SCRIPT_CONTEXT="prolog_slurmctld", **job)
        run(
            "./slurm_event.sh",
            SLURM_SCRIPT_CONTEXT="epilog_slurmctld",
            SLURM_JOB_EXIT_CODE2="1:0",
            **job,
        )

        assert [
            ("slurm.prolog_slurmctld", "7", {}),
            ("slurm.epilog_slurmctld", "7", {"slurm_job_exit_code2": "1:0"}),
        ] == [
            (each["name"], each["run_id"], each["metadata"])
            for each in read(f"logs/{os.uname().nodename}.jsonl")
        ]

    def test_bare_environment(self, run):
        """Without any variable, not even a PATH, the job runs."""
        status, out, _ = run(
            "env -i ELASTIC_EVENTS_DESTINATION=null ./slurm_event.sh"
        )

        assert (0, b"") == (status, out)

    def test_no_command(self, run, folder):
        """Where the command is missing the job runs."""
        only = folder / "bin"
        only.mkdir()
        for name in ("bash", "timeout"):
            (only / name).symlink_to(which(name))
        status, out, err = run("./slurm_event.sh", PATH=str(only))

        assert (0, b"") == (status, out)
        assert "elastic-events" in err

    def test_read_only(self, run):
        """Where nothing can be written the job runs."""
        status, out, err = run(
            "./slurm_event.sh", ELASTIC_EVENTS_DESTINATION="file:/proc/x.jsonl"
        )

        assert (0, b"") == (status, out)
        assert "file:/proc/x.jsonl: an event was not written" in err

    def test_unknown_destination(self, run):
        """Where the destination is misspelt the job runs."""
        status, out, err = run(
            "./slurm_event.sh", ELASTIC_EVENTS_DESTINATION="fiel:x"
        )

        assert (0, b"") == (status, out)
        assert "unknown destination 'fiel:x'" in err

    def test_hanging(self, run, folder):
        """A command that hangs, and will not be stopped, is ended."""
        hanging = folder / "bin" / "elastic-events"
        hanging.parent.mkdir()
        hanging.write_text("#!/bin/bash\ntrap '' TERM\nsleep 600\n")
        hanging.chmod(0o755)
        status, out, _ = run(
            "./slurm_event.sh", PATH=f"{hanging.parent}:{os.environ['PATH']}"
        )

        assert (0, b"") == (status, out)
        assert [] == [*having(str(folder))]


class TestLaunchTorchrun:
    @pytest.fixture(name="pretend")
    def _pretend(self, folder):
        """
        Have a script stand in for torchrun.
        """

        def pretend(script):
            torchrun = folder / "bin" / "torchrun"
            torchrun.parent.mkdir()
            torchrun.write_text(f"#!/bin/bash\n{script}\n")
            torchrun.chmod(0o755)
            return f'PATH="{torchrun.parent}:$PATH"'

        return pretend

    def test_status(self, run, pretend):
        """Status, arguments and output are torchrun's own."""
        path = pretend('printf "<%s>" "$@"; cat; exit 42')
        status, out, err = run(f"{path} bash launch_torchrun.sh 'a b' '' '*'")

        assert (42, b"<a b><><*>") == (status, out)
        assert "No file matches" in err

    def test_killed(self, run, pretend):
        """A torchrun that is killed has its status too."""
        path = pretend("kill -KILL $$")

        assert 128 + 9 == run(f"{path} bash launch_torchrun.sh")[0]

    def test_missing(self, run):
        """Without torchrun the status is the shell's for it."""
        path = "/usr/bin:/bin"

        assert 127 == run("bash launch_torchrun.sh", PATH=path)[0]

    @pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
    def test_signal(self, start, pretend, name):
        """A signal reaches torchrun, which takes the time that it needs."""
        path = pretend(
            "trap 'echo told; sleep 1; exit 3' TERM\n"
            "echo ready\n"
            "while :; do sleep 0.1; done"
        )
        process = start(f"{path} exec bash launch_torchrun.sh")
        ready = process.stdout.readline()
        process.send_signal(signal.Signals[f"SIG{name}"])
        told, _ = process.communicate(timeout=SECONDS)

        assert (b"ready\n", b"told\n") == (ready, told)
        assert 3 == process.returncode

    @pytest.mark.torch
    def test_failure(self, run, folder, read):
        """A job that fails is explained, from the file of its host."""
        line = command_of("launch_torchrun.sh")
        status, _, err = run(line, SLURM_JOB_ID="7")
        file = f"events/7/{os.uname().nodename}.jsonl"
        story = explained(folder / file)

        assert 1 == status
        assert read(file)
        assert "FloatingPointError: loss is not finite\n" in err
        assert (
            "\nFirst cause: rank 1 failed with exit code 1:"
            " FloatingPointError: loss is not finite\n"
        ) in err
        assert ("failed", [(0, "failed", 2)]) == (
            story["outcome"],
            story["attempts"],
        )

    @pytest.mark.torch
    def test_stopped(self, start, folder):
        """A job that is told to stop is explained, and leaves no process."""
        process = start(
            "exec bash launch_torchrun.sh --standalone --nproc-per-node=2"
            " worker.py --steps 500",
            SLURM_JOB_ID="7",
        )
        file = folder / "events" / "7" / f"{os.uname().nodename}.jsonl"
        wait_for_steps(file)
        process.terminate()
        _, err = process.communicate(timeout=SECONDS)

        assert 1 == process.returncode
        assert [] == [*having(str(folder))]
        assert (
            "\nFirst cause: the agent was told to stop (SIGTERM)\n"
        ) in err.decode()


class TestPlugin:
    @pytest.fixture(name="installed")
    def _installed(self, folder):
        """
        The distribution, installed: the environment of who has it.
        """
        site = folder / "site"
        install, _, _ = command_of("plugin").partition(" && ")
        # Else pip fetches it.
        if find_spec("hatchling"):
            install += " --no-build-isolation --no-index"
        subprocess.run(
            [
                *(sys.executable, "-m", *install.split()),
                *("--no-deps", "--target", site),
            ],
            cwd=folder,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        paths = (site, os.environ.get("PYTHONPATH", ""))
        return {"PYTHONPATH": os.pathsep.join(map(str, paths))}

    def test_format(self, run, installed):
        """Lines have the form that the distribution gives them."""
        _, _, line = command_of("plugin").partition(" && ")
        status, out, err = run(line, **installed)
        said = json.loads(out)

        assert (0, "") == (status, err)
        assert ["at", "level", "text"] == list(said)
        assert ("info", "hello") == (said["level"], said["text"])

    def test_destination(self, run, validate, installed):
        """Lines go to the destination that the distribution provides."""
        status, out, err = run(
            "elastic-events record hello --source AGENT --to printed",
            **installed,
        )

        assert (0, "") == (status, err)
        assert "hello" == validate(out)["name"]

    def test_both(self, run, installed):
        """The destination takes the format."""
        status, out, err = run(
            "elastic-events record hello --source AGENT"
            " --to 'printed?format=short'",
            **installed,
        )

        assert (0, "") == (status, err)
        assert ["at", "level", "text"] == list(json.loads(out))

    def test_listed(self, run, installed):
        """Who mistypes a name is told of those that are installed."""
        _, _, err = run(
            "elastic-events record hello --source AGENT --to pinted",
            **installed,
        )

        assert "printed" in err
