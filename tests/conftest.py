"""
What the tests share: a clean start, collected lines, and the schema.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
import signal
import sys
import tempfile

import pytest
import structlog
from hypothesis import HealthCheck, settings
from valid import validated

import elastic_events
from elastic_events import (
    complaints,
    destinations,
    outlets,
    process,
    schemes,
)


settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

_JOB_VARIABLES = (
    "ELASTIC_EVENTS_DESTINATION",
    "ELASTIC_EVENTS_KEEPALIVE",
    "LOCAL_RANK",
    "LOGLEVEL",
    "PET_EVENT_LOG_HANDLER",
    "RANK",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
)


def pytest_configure():
    # Such as `-n 2`: they are for this run, not for those that tests start.
    os.environ.pop("PYTEST_ADDOPTS", None)
    # A shell that starts the tests in the background has ^C ignored, and what
    # they start would ignore it too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header():
    names = ("structlog", "orjson", "torch", "numpy", "rich")
    return "versions: " + ", ".join(
        f"{name} {_version(name)}" for name in names
    )


def pytest_collection_modifyitems(items):
    try:
        import torch  # noqa: F401
    except ImportError:
        skip = pytest.mark.skip(reason="torch is not installed")
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(skip)


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


@pytest.fixture(autouse=True, scope="session")
def _no_leftovers():
    """
    Remove what programs leave in the folder for temporary files.
    """
    # Not in pytest's own folder: the address of a socket must be short.
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", folder)
        yield


@pytest.fixture(autouse=True)
def _clean_start(monkeypatch):
    """
    Start without a job around, and leave logging and structlog as they were.
    """
    for name in _JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    _forget()
    yield
    _forget()
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.fixture(name="reset")
def _reset():
    """
    Have the package begin anew, in the middle of a test.
    """
    return _forget


def _forget():
    process.forget()
    for made in destinations._made_by_name:
        made.clear()
    destinations._registered.clear()
    schemes._outlets.clear()
    destinations._queues.clear()
    outlets._in_use.clear()
    complaints._last_complaint = -1e9


@pytest.fixture(name="validate")
def _validate():
    return validated


class Collected(list):
    """
    The lines that a destination was given.
    """

    @property
    def said(self):
        return [validated(raw) for raw in self]

    @property
    def one(self):
        (said,) = self.said
        return said


@pytest.fixture(name="sink")
def _sink():
    """
    The lines recorded to the destination "sink".
    """
    collected = Collected()
    elastic_events.register_destination("sink", collected.append)
    return collected


@pytest.fixture(name="provide")
def _provide(tmp_path, monkeypatch):
    """
    Install a distribution that provides destinations, or other things.
    """

    def provide(code, group="destinations", **names):
        package = tmp_path / "site"
        info = package / "provider-1.dist-info"
        info.mkdir(parents=True)
        (package / "provider.py").write_text(code)
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: provider\nVersion: 1\n"
        )
        entries = "\n".join(f"{k} = {v}" for k, v in names.items())
        (info / "entry_points.txt").write_text(
            f"[elastic_events.{group}]\n{entries}\n"
        )
        monkeypatch.syspath_prepend(package)
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "provider", raising=False)

    return provide


@pytest.fixture(name="frozen")
def _frozen(monkeypatch):
    """
    A clock that stands still: 2024-02-29T12:34:56.789Z, in milliseconds.
    """
    now = 1_709_210_096_789
    monkeypatch.setattr(
        "elastic_events.processors.time_ns", lambda: now * 1_000_000
    )
    monkeypatch.setattr("time.time", lambda: now / 1000)
    monkeypatch.setattr("time.time_ns", lambda: now * 1_000_000)
    return now


@pytest.fixture(name="as_worker")
def _as_worker(monkeypatch):
    """
    The environment of a worker that torchrun started.
    """
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-7")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    process.forget()


@pytest.fixture(name="here")
def _here():
    """
    The host and process of this test, as lines state them.
    """
    return {"hostname": os.uname().nodename, "pid": os.getpid()}
