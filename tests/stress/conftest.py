"""
Each stress test has a short form, and a long one: pytest tests/stress --long
"""

import os
import subprocess
import sys

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--long", action="store_true", help="run stress tests in full"
    )


@pytest.fixture(name="scale")
def _scale(request):
    """
    Choose between the short and the long measure of a test.
    """
    # Not there when pytest was started in another folder.
    is_long = request.config.getoption("--long", default=False)
    return lambda short, long: long if is_long else short


@pytest.fixture(name="python")
def _python():
    """
    Start Python on some code; whatever was started is ended.
    """
    started = []

    def python(code, *arguments, **more):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            **more,
        )
        started.append(process)
        return process

    yield python
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)
