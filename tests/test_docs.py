"""
The documentation says what is so.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
RECORDED = Path(__file__).parent / "data" / "recorded"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


COMMANDS = [
    line
    for page in PAGES
    for block in blocks(page, "sh")
    for line in block.splitlines()
    if line.startswith("elastic-events ")
]


@pytest.fixture(name="events")
def _events(tmp_path):
    """
    The folder that the documentation calls /tmp/events.
    """
    for file in RECORDED.glob("*.jsonl"):
        shutil.copy(file, tmp_path)
    return tmp_path


def words_of(command, events):
    """
    Return the words of *command*, its pattern of files filled in.
    """
    for word in shlex.split(command)[1:]:
        if word.startswith("/tmp/events/"):
            yield from sorted(map(str, events.glob(Path(word).name)))
        else:
            yield word


@pytest.mark.parametrize("command", COMMANDS)
def test_command(events, command):
    """Every command of the documentation runs, and complains of nothing."""
    words = [*words_of(command, events)]
    process = subprocess.Popen(
        [sys.executable, "-m", "elastic_events", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=events,
    )
    if "-f" in words:
        # It would go on for ever.
        process.stdout.readline()
        process.terminate()
    _, err = process.communicate(timeout=60)

    page = "wrote timeline.html\n"
    assert (page if "timeline" in words else "") == err
    if "-f" not in words:
        assert process.returncode == (1 if "explain" in words else 0)


def test_there_are_commands():
    """The commands of the pages are found."""
    assert 10 < len(COMMANDS)


def test_explanation(events):
    """README shows what ``explain`` says of a real job."""
    (shown,) = (
        block for block in blocks(PAGES[0], "text") if "First cause" in block
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "elastic_events", "explain"),
            *("peer_lost.node0.jsonl", "peer_lost.node1.jsonl"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=events,
    )

    assert shown == done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    """Every link to a file of the project leads to one."""
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), target
