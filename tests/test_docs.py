"""
What the documentation shows is run, and does what is said.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import PAGES, ROOT, blocks, codes, prose

from elastic_events import cli, destinations


RECORDED = Path(__file__).parent / "data" / "recorded"
# The folders of the documentation, and the job whose lines are in each.
JOBS = {"/tmp/events": "peer_lost", "/tmp/llm-7b": "loss_is_nan"}
# What stands on these is run by `consumers` and `test_logging_configuration`.
RUN_ELSEWHERE = ("shipping.md", "testing.md")
VOLATILE = ("timestamp", "time", "hostname", "pid")

PYTHON = [
    block
    for page in PAGES
    if page.name not in RUN_ELSEWHERE
    for block in blocks(page, "python")
]
ADVISED = sorted(
    {
        each
        for page in PAGES
        for each in re.findall(
            r"\b(?:file:/logs|stdout|console)[^\s`'\"\\]*\?[a-z_]+=[\w&=]+",
            page.read_text(),
        )
    }
)
SHELL = [
    (line, block)
    for page in PAGES
    for block in blocks(page, "sh")
    for line in block.text.splitlines()
]
COMMANDS = {
    line: block.output for line, block in SHELL if line.startswith("elastic-")
} | {
    code: None
    for page in PAGES
    for code in codes(prose(page))
    if re.match(r"elastic-events \w+ \S*/", code) and "|" not in code
}
TRAINING = list(
    dict.fromkeys(
        line
        for line, _ in SHELL
        # A collector is sent to in `test_otlp`.
        if "train.py" in line and "otlp:" not in line
    )
)
TRAIN = next(block.text for block in PYTHON if "train.step" in block.text)


def needs(code):
    """
    Return the packages that *code* imports.
    """
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def marked(value, *, needs_torch):
    marks = [pytest.mark.torch] if needs_torch else []
    return pytest.param(value, marks=marks, id=str(value))


@pytest.fixture(name="there")
def _there(tmp_path):
    """
    Fill in a path of the documentation: where its files are.
    """
    for folder, job in JOBS.items():
        here = tmp_path / Path(folder).name
        here.mkdir()
        for file in RECORDED.glob(f"{job}.*"):
            shutil.copy(file, here / file.name.removeprefix(f"{job}."))

    def filled_in(word):
        for folder in JOBS:
            if word.startswith(f"{folder}/"):
                pattern = word.removeprefix(f"{folder}/")
                here = tmp_path / Path(folder).name
                return sorted(map(str, here.glob(pattern)))
        return [word]

    return filled_in


def steady(text):
    """
    Return the objects of each line of *text*, but for time and process.
    """
    lines = [json.loads(line) for line in text.splitlines()]
    return [
        [(key, None if key in VOLATILE else each[key]) for key in each]
        for each in lines
    ]


class TestPython:
    @pytest.mark.parametrize(
        "block",
        [
            marked(each, needs_torch="torch" in needs(each.text))
            for each in PYTHON
        ],
    )
    def test_it_runs(self, tmp_path, block, validate):
        """Every example runs, and prints what stands below it."""
        for name in sorted(needs(block.text) - {"elastic_events"}):
            if find_spec(name) is None:
                pytest.skip(f"{name} is not installed")
        printed = subprocess.run(
            [sys.executable, "-c", block.text],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            timeout=60,
            check=True,
        ).stdout
        for line in printed.splitlines(keepends=True):
            if '"seq"' in line:
                validate(line.encode())

        output = block.output
        if output is not None and output.language == "json":
            assert steady(output.text) == steady(printed)
        elif output is not None:
            assert output.text == printed

    def test_there_are_examples(self):
        """The examples of the pages are found, and what they print."""
        assert 15 < len(PYTHON)
        assert 8 < sum(block.output is not None for block in PYTHON)


@pytest.mark.parametrize(
    "block",
    [each for page in PAGES for each in blocks(page, "json")],
    ids=str,
)
def test_lines(block, validate):
    """Every line that is shown is as every line must be."""
    for line in block.text.splitlines(keepends=True):
        if '"seq"' in line:
            validate(line.encode())


class TestCommands:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_command(self, there, tmp_path, command):
        """Every command runs, and says what stands below it, and no more."""
        words = [
            each for word in shlex.split(command)[1:] for each in there(word)
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "elastic_events", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        if "-f" in words:
            # It would go on for ever.
            process.stdout.readline()
            process.terminate()
        out, err = process.communicate(timeout=60)
        for folder in JOBS:
            out = out.replace(str(tmp_path / Path(folder).name), folder)

        if "demo" in words:
            assert "The record is in " in err
        else:
            page = "wrote timeline.html\n"
            assert (page if "timeline" in words else "") == err
        if "-f" not in words:
            assert process.returncode == (1 if "explain" in words else 0)
        if COMMANDS[command] is not None:
            assert COMMANDS[command].text == out

    def test_record(self, tmp_path, validate):
        """What the command for shells records is a line."""
        (command,) = [each for each in COMMANDS if " record " in each]
        subprocess.run(
            [
                *(sys.executable, "-m", "elastic_events"),
                *shlex.split(command)[1:],
            ],
            cwd=tmp_path,
            timeout=60,
            check=True,
        )
        said = validate((tmp_path / "log.jsonl").read_bytes())

        assert ("prolog", {"nodes": 2}) == (said["name"], said["metadata"])

    def test_there_are_commands(self):
        """The commands of the pages are found, each of the program's."""
        named = {command.split()[1] for command in COMMANDS}

        assert set(cli.COMMANDS) == named

    def test_every_line_is_run(self):
        """In blocks that are run stands nothing that is not."""
        others = [
            line
            for line, block in SHELL
            if line not in COMMANDS
            and line not in TRAINING
            # By `.ci/run`.
            and not (block.page == "README.md" and "venv/bin" in line)
            and not line.startswith("pip install ")
            and "otlp:" not in line
        ]

        assert [] == others

    def test_extras(self):
        """What is told to be installed is there to be installed."""
        project = (ROOT / "pyproject.toml").read_text()
        named = {
            extra
            for page in PAGES
            for extras in re.findall(
                r"install '[.\w-]+\[(.*?)\]'", page.read_text()
            )
            for extra in extras.split(",")
        }

        assert {"cli", "test"} <= named
        for extra in named:
            assert f"\n{extra} = [" in project

    def test_options(self):
        """Every option that a page names is one that something has."""
        known = "".join(
            subprocess.run(
                [sys.executable, "-m", "elastic_events", command, "--help"],
                stdout=subprocess.PIPE,
                text=True,
                timeout=60,
                check=True,
            ).stdout
            for command in cli.COMMANDS
        )
        for source in (ROOT / "benchmarks").glob("*.py"):
            known += source.read_text()
        known += (ROOT / "tests" / "stress" / "conftest.py").read_text()
        known += "--event-log-handler --standalone --nproc-per-node"
        named = {
            option
            for page in PAGES
            for code in [
                *codes(prose(page)),
                *(block.text for block in blocks(page, "sh", "bash")),
            ]
            if "elastic-events" in code
            or "pytest" in code
            or "benchmarks/" in code
            or code.startswith("--")
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", code)
        }

        assert 10 < len(named)
        assert set() == {option for option in named if option not in known}

    @pytest.mark.parametrize(
        "line",
        [marked(each, needs_torch="torchrun" in each) for each in TRAINING],
    )
    def test_training(self, tmp_path, line, validate):
        """Every line that trains leaves what its workers recorded."""
        environment, command = {}, []
        for word in shlex.split(line.replace("/tmp/", f"{tmp_path}/")):
            name, _, value = word.partition("=")
            if name.isupper() and not command:
                environment[name] = value
            else:
                command.append(word)
        (tmp_path / "train.py").write_text(TRAIN)
        command[0] = str(Path(sys.executable).with_name(command[0]))
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            capture_output=True,
            timeout=120,
            check=True,
        )
        lines = done.stderr.splitlines(keepends=True)
        if "ELASTIC_EVENTS_DESTINATION" in environment:
            (file,) = (tmp_path / "events").iterdir()
            lines = file.read_bytes().splitlines(keepends=True)
            assert f"{os.uname().nodename}.jsonl" == file.name
        lines = [each for each in lines if each.startswith(b"{")]
        if "format=" not in line:
            for each in lines:
                validate(each)
        workers = 2 if "torchrun" in line else 1

        assert 3 * workers == sum(b'"train.step"' in each for each in lines)
        if workers > 1:
            assert workers == sum(
                b'"torchelastic.worker.status.START"' in each for each in lines
            )


class TestAdvice:
    @pytest.mark.parametrize("destination", ADVISED)
    def test_destination(self, destination):
        """Every destination that is advised is one."""
        assert destinations.resolve(destination) is not None

    def test_there_is_advice(self):
        """The destinations of the pages are found."""
        assert 5 < len(ADVISED)
