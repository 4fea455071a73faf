"""
README does what it says.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(code, folder, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=60,
        check=True,
    )


def test_agent_example(tmp_path):
    """The agent's example prints the lines that stand below it."""
    (code,) = [each for each in blocks("python") if "configure" in each]
    (shown,) = blocks("json")
    printed = run(code, tmp_path).stdout

    def steady(text):
        lines = [json.loads(line) for line in text.splitlines()]
        volatile = ("timestamp", "time", "hostname", "pid")
        return [{**each, **dict.fromkeys(volatile)} for each in lines]

    assert steady(shown) == steady(printed)
    assert [list(each) for each in map(json.loads, shown.splitlines())] == [
        list(each) for each in map(json.loads, printed.splitlines())
    ]


def test_worker_example(tmp_path, validate):
    """The worker's example records its steps."""
    (code,) = [each for each in blocks("python") if "train.step" in each]
    run(code, tmp_path, ELASTIC_EVENTS_DESTINATION="file:e.jsonl")
    lines = (tmp_path / "e.jsonl").read_bytes().splitlines(keepends=True)

    assert [0, 1, 2] == [validate(each)["metadata"]["step"] for each in lines]


def test_shell_example(tmp_path, validate):
    """The shell command of the text records an event."""
    (command,) = re.findall(r"`(elastic-events record .*?)`", README)
    subprocess.run(
        [sys.executable, "-m", "elastic_events", *command.split()[1:]],
        cwd=tmp_path,
        timeout=60,
        check=True,
    )
    said = validate((tmp_path / "log.jsonl").read_bytes())

    assert {"nodes": 2} == said["metadata"]


def test_commands_of_ci():
    """The two commands of the quick start are those that CI runs."""
    start, tests = (
        block.strip() for block in blocks("sh") if "venv/bin/pip" in block
    )
    script = (ROOT / ".ci" / "run").read_text()

    assert start.endswith("elastic-events demo")
    assert tests.endswith("python -m pytest")
    for pattern in ("elastic-events demo", "pytest"):
        assert f"readme_command {pattern}" in script.replace("'", "")


@pytest.mark.torch
def test_torchrun_line(tmp_path, validate):
    """The torchrun line leaves the job's life in the file it names."""
    (line,) = [each for each in blocks("sh") if "torchrun" in each]
    variable, *command = shlex.split(line.replace("/tmp/", f"{tmp_path}/"))
    name, _, value = variable.partition("=")
    (tmp_path / "train.py").write_text(
        next(each for each in blocks("python") if "train.step" in each)
    )
    command[0] = str(Path(sys.executable).with_name("torchrun"))
    subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, name: value},
        capture_output=True,
        timeout=120,
        check=True,
    )
    (file,) = (tmp_path / "events").iterdir()
    lines = [
        validate(each) for each in file.read_bytes().splitlines(keepends=True)
    ]

    assert f"{os.uname().nodename}.jsonl" == file.name
    assert 6 == sum(each.get("name") == "train.step" for each in lines)
    assert 2 == sum(
        each.get("name", "").endswith("status.START") for each in lines
    )
