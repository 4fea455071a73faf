"""
What the tests of consumers share: the programs, and lines for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import odd_lines
import pytest
import shipping_page
from required import import_required, missing


PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
PACKAGES = {"rsyslogd": "rsyslog"}


class Recorded(NamedTuple):
    """
    Lines in a file, and what each says.
    """

    file: Any
    said: list


@pytest.fixture(name="program", scope="session")
def _program():
    """
    Find a program by its name.
    """

    def find(name):
        package = PACKAGES.get(name, name)
        return shutil.which(name, path=PATH) or missing(
            f"{name} is not installed: apt-get install {package}"
        )

    return find


@pytest.fixture(name="duckdb")
def _duckdb():
    """
    The module, if it is installed.
    """
    return import_required("duckdb", "consumers")


@pytest.fixture(name="run")
def _run(tmp_path):
    """
    Run a program at home in a folder of the test, and return its output.
    """

    def run(*words, **more):
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            timeout=60,
            check=False,
            **{"env": home_of(tmp_path), "cwd": tmp_path, **more},
        )

        assert (0, b"") == (done.returncode, done.stderr)
        return done.stdout

    return run


def home_of(folder):
    return {
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PATH": PATH,
        "TZ": "UTC",
    }


@pytest.fixture(name="rotate")
def _rotate(program, tmp_path):
    """
    Rotate at once, by the configuration of the page, and return complaints.
    """
    logrotate = program("logrotate")
    page = shipping_page.block("logrotate", "text")
    file = tmp_path / "logrotate.conf"

    def rotate(new_file="nocreate"):
        configuration = page.replace("/logs", f"{tmp_path}/logs")
        file.write_text(configuration.replace("nocreate", new_file))
        file.chmod(0o644)
        done = subprocess.run(
            [logrotate, "-f", "-s", tmp_path / "rotations", file],
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stderr

    return rotate


@pytest.fixture(name="recorded")
def _recorded(tmp_path, validate):
    """
    Lines of each kind, and odd ones, written by the package.
    """
    file = tmp_path / "logs" / "events.jsonl"
    odd_lines.record_all(f"file:{file}")
    raw = file.read_bytes().split(b"\n")
    return Recorded(file, [validate(each + b"\n") for each in raw[:-1]])


@pytest.fixture(name="exact")
def _exact():
    """
    Give what two values must share to be the same, their types included.
    """

    def exact(value):
        return json.dumps(value, sort_keys=True, indent=1).splitlines()

    return exact


@pytest.fixture(name="jobs")
def _jobs():
    """
    A pattern of files that were recorded in jobs, one of which failed.
    """
    return f"{Path(__file__).parents[1]}/data/recorded/*.jsonl"
