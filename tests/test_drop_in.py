"""
What code and tests written for torch's module find here.
"""

import _thread
import functools
import logging
import socket
import time
from unittest import mock

import pytest

import elastic_events
import elastic_events as ee


def joined(**changes):
    elastic_events.construct_and_record_rdzv_event(
        **(
            {
                "run_id": "job-1",
                "message": "joined",
                "node_state": ee.NodeState.RUNNING,
            }
            | changes
        )
    )


@pytest.fixture(name="rendezvous")
def _rendezvous(sink):
    """
    Rendezvous events go to the destination "sink".
    """
    elastic_events.register_destination("dynamic_rendezvous", "sink")
    return sink


class TestAfterSwappingThePath:
    """
    torch's unit tests of its events hold here, patches included.
    """

    @mock.patch("elastic_events.get_logging_handler")
    def test_logger_has_one_handler(self, get_handler):
        """The logger of a destination has the patched handler and no other."""
        get_handler.return_value = logging.NullHandler()
        logger = elastic_events._get_or_create_logger("some_destination")

        assert isinstance(logger, logging.Logger)
        assert [get_handler.return_value] == logger.handlers

    @mock.patch("elastic_events.record_rdzv_event")
    @mock.patch("elastic_events.get_logging_handler")
    def test_constructed_event_is_recorded(self, get_handler, record):
        """A wanted rendezvous event is recorded once."""
        get_handler.return_value = logging.StreamHandler()
        joined()

        record.assert_called_once()

    @mock.patch("elastic_events.record_rdzv_event")
    @mock.patch("elastic_events.get_logging_handler")
    def test_unwanted_event_is_not(self, get_handler, record):
        """With a null handler nothing is recorded."""
        get_handler.return_value = logging.NullHandler()
        joined()

        record.assert_not_called()

    def test_patches_end(self, rendezvous):
        """After a patch, the package is as it was."""
        with mock.patch("elastic_events.record_rdzv_event"):
            joined()
        joined()

        assert 1 == len(rendezvous)


class TestGetOrCreateLogger:
    def test_logger(self, sink):
        """The logger is the same each time and does not propagate."""
        logger = elastic_events._get_or_create_logger("sink")
        again = elastic_events._get_or_create_logger("sink")

        assert logger is again
        assert "elastic_events.sink" == logger.name
        assert [ee.get_logging_handler("sink")] == logger.handlers
        assert not logger.propagate

    def test_log_level(self, sink, monkeypatch):
        """LOGLEVEL drops no event, and no value of it is an error."""
        for level in ("WARNING", "verbose", ""):
            monkeypatch.setenv("LOGLEVEL", level)
            event = ee.Event("n", ee.EventSource.AGENT)
            elastic_events._get_or_create_logger("sink").info(
                event.serialize()
            )
            ee.record(event, "sink")

        assert 6 == len(sink.said)


class TestConstructAndRecord:
    def test_whole_event(self, rendezvous, monkeypatch):
        """All that is given is on the line, with the caller's file."""
        joined(
            name="Handler.next",
            hostname="node1",
            pid=4711,
            master_endpoint="node1:29400",
            local_id=0,
            rank=0,
        )

        assert {
            "name": "test_drop_in.py:Handler.next",
            "message": "joined",
            "hostname": "node1",
            "pid": 4711,
            "run_id": "job-1",
            "rank": 0,
            "node_state": "RUNNING",
            "local_id": 0,
            "master_endpoint": "node1:29400",
        }.items() <= rendezvous.one.items()

    def test_defaults(self, rendezvous, here, monkeypatch):
        """Host and pid are the process's own, without asking DNS."""
        monkeypatch.setattr(socket, "getfqdn", lambda *_: 1 / 0)
        joined(pid=0)

        assert here.items() <= rendezvous.one.items()

    def test_callers_name(self, rendezvous):
        """Without a name it is the calling function's, as torch finds it."""

        class Node:
            def method(self):
                joined_directly()

        def joined_directly():
            elastic_events.construct_and_record_rdzv_event(
                "job-1", "m", ee.NodeState.INIT
            )

        Node().method()
        functools.partial(joined_directly)()

        assert ["test_drop_in.py:joined_directly"] * 2 == [
            each["name"] for each in rendezvous.said
        ]

    def test_failed(self, rendezvous):
        """A failure takes the traceback of what is being handled."""
        try:
            raise ValueError("boom")
        except ValueError:
            joined(node_state=ee.NodeState.FAILED)
            joined(node_state=ee.NodeState.RUNNING)
        failed, running = rendezvous.said

        assert "error" == failed["level"]
        assert failed["error_trace"].endswith("ValueError: boom\n")
        assert "error_trace" not in running

    def test_failed_outside(self, rendezvous):
        """A failure outside of an except has no traceback."""
        joined(node_state=ee.NodeState.FAILED)

        assert "error" == rendezvous.one["level"]
        assert "error_trace" not in rendezvous.one

    def test_no_caller(self, rendezvous):
        """What a bare thread calls has no caller, and no file."""
        _thread.start_new_thread(
            elastic_events.construct_and_record_rdzv_event,
            ("job-1", "m", ee.NodeState.INIT, "step"),
        )
        deadline = time.monotonic() + 60
        while not rendezvous and time.monotonic() < deadline:
            time.sleep(0.001)

        assert "no_file:step" == rendezvous.one["name"]

    def test_no_stack(self, rendezvous, monkeypatch):
        """The stack is not inspected."""
        monkeypatch.setattr("inspect.stack", lambda *_: 1 / 0)
        joined()

        assert 1 == len(rendezvous.said)

    @pytest.mark.parametrize(
        ("name", "state", "recorded"),
        [
            ("Handler._keep_alive", ee.NodeState.RUNNING, False),
            (
                "_DistributedRendezvousOpExecutor.run",
                ee.NodeState.RUNNING,
                False,
            ),
            ("Handler._keep_alive", ee.NodeState.FAILED, True),
            ("Handler.next_rendezvous", ee.NodeState.RUNNING, True),
        ],
    )
    def test_keep_alive(self, rendezvous, monkeypatch, name, state, recorded):
        """ELASTIC_EVENTS_KEEPALIVE=off leaves out successful heartbeats."""
        joined(name=name, node_state=state)
        monkeypatch.setenv("ELASTIC_EVENTS_KEEPALIVE", "off")
        joined(name=name, node_state=state)

        assert 1 + recorded == len(rendezvous.said)

    def test_null(self, capfd):
        """Nothing is done while rendezvous events go nowhere."""
        with mock.patch("sys._getframe", side_effect=AssertionError):
            joined()

        assert ("", "") == tuple(capfd.readouterr())


class TestHostname:
    def test_looked_up_once(self, sink, monkeypatch):
        """The host's name is looked up once for all lines of a process."""
        calls = []
        monkeypatch.setattr(
            socket, "gethostname", lambda: calls.append(1) or "node9"
        )
        for _ in range(3):
            ee.record(ee.Event("n", ee.EventSource.AGENT), "sink")

        assert ["node9"] * 3 == [each["hostname"] for each in sink.said]
        assert 1 == len(calls)


def test_names():
    """Every name that torch's package has for its users is here."""
    names = (
        "Event",
        "EventMetadataValue",
        "EventSource",
        "NodeState",
        "RdzvEvent",
        "_get_or_create_logger",
        "construct_and_record_rdzv_event",
        "get_logging_handler",
        "record",
        "record_rdzv_event",
    )

    assert not [each for each in names if not hasattr(elastic_events, each)]
    assert ee.Event is elastic_events.api.Event
    assert (
        ee.get_logging_handler is elastic_events.handlers.get_logging_handler
    )
