"""
The keys of a line: which, when, and that nobody can forge them.
"""

import datetime as dt
import logging
import math
from unittest import mock

import numpy as np
import pytest
import structlog
from hypothesis import given, strategies as st
from strategies import ANY_METADATA, EVENTS, RDZV_EVENTS
from test_api import rdzv_event

import elastic_events as ee
from elastic_events.schema import KEYS


def event(**changes):
    return ee.Event(
        **({"name": "n", "source": ee.EventSource.WORKER} | changes)
    )


class TestEventLine:
    def test_whole(self, sink, frozen, here):
        """An event's line says when, who, where and what, in order."""
        ee.record(event(metadata={"step": 1}), "sink")

        assert {
            "timestamp": frozen,
            "time": "2024-02-29T12:34:56.789Z",
            "level": "info",
            "kind": "event",
            "name": "n",
            "message": "n",
            "source": "WORKER",
            **here,
            "seq": 0,
            "metadata": {"step": 1},
        } == sink.one

    def test_bytes(self, sink, frozen, here):
        """The line is compact JSON that begins with the two times."""
        ee.record(event(metadata={"é": 1}), "sink")

        assert [
            b'{"timestamp":1709210096789,"time":"2024-02-29T12:34:56.789Z",'
            b'"level":"info","kind":"event","name":"n","message":"n",'
            b'"source":"WORKER","hostname":"%s","pid":%d,"seq":0,'
            b'"metadata":{"\xc3\xa9":1}}\n'
            % (here["hostname"].encode(), here["pid"])
        ] == sink
        assert frozen

    def test_in_a_worker(self, sink, as_worker):
        """In torchrun's workers the line states run, ranks and restart."""
        ee.record(event(), "sink")

        assert {
            "run_id": "job-7",
            "rank": 3,
            "local_rank": 1,
            "restart": 2,
        }.items() <= sink.one.items()

    @given(EVENTS)
    def test_deserialize(self, event):
        """Event.deserialize(line) gives back an equal event."""
        lines = []
        ee.register_destination("lines", lines.append)
        ee.record(event, "lines")
        back = ee.Event.deserialize(lines[0])
        if event.timestamp == 0:
            back.timestamp = 0

        assert event == back

    @given(ANY_METADATA)
    def test_any_metadata(self, validate, metadata):
        """No metadata keeps an event from being recorded, nor raises."""
        lines = []
        ee.register_destination("lines", lines.append)
        ee.record(event(metadata=metadata), "lines")

        assert len(metadata) == len(validate(lines[0])["metadata"])

    @pytest.mark.parametrize(
        ("given", "time"),
        [
            (1, "1970-01-01T00:00:00.001Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_500_000_000_123, "2017-07-14T02:40:00.123Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ],
    )
    def test_own_timestamp(self, sink, given, time):
        """An event's own time is the line's, whatever the year."""
        ee.record(event(timestamp=given), "sink")

        assert (given, time) == (sink.one["timestamp"], sink.one["time"])

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (253_402_300_800_000, 253_402_300_800_000),
            (-62_135_596_800_001, -62_135_596_800_001),
            (2**70, str(2**70)),
            (1.5e12, 1.5e12),
            (math.nan, "NaN"),
            ("now", "now"),
            (True, True),
            (None, None),
        ],
    )
    def test_impossible_timestamp(self, sink, frozen, given, kept):
        """A time that is none is kept beside the moment of recording."""
        ee.record(event(timestamp=given), "sink")

        assert frozen == sink.one["timestamp"]
        assert kept == sink.one["timestamp_"]

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"metadata": None}, {"metadata": {}}),
            ({"metadata": [1]}, {"metadata": {}, "metadata_": [1]}),
            ({"source": "WORKER"}, {"source": "WORKER"}),
            ({"source": "DRIVER"}, {"source": "AGENT", "source_": "DRIVER"}),
            ({"source": None}, {"source": "AGENT", "source_": None}),
            ({"name": 5}, {"name": "5", "message": "5"}),
            ({"name": ""}, {"name": "", "message": ""}),
        ],
    )
    def test_wrong_type(self, sink, changes, expected):
        """A field of a wrong type is kept beside a right value."""
        ee.record(event(**changes), "sink")

        assert expected.items() <= sink.one.items()

    @pytest.mark.parametrize("given", ["text", 5, None, {"a": 1}, object])
    def test_not_an_event(self, sink, given):
        """What is no event is recorded as a warning that holds it."""
        ee.record(given, "sink")
        said = sink.one

        assert (
            "log",
            "warning",
            "elastic_events",
            f"expected an Event or RdzvEvent, got {type(given).__name__}",
        ) == (said["kind"], said["level"], said["logger"], said["message"])
        assert ["given"] == list(said["metadata"])

    def test_subclass(self, sink):
        """An event of a subclass is an event."""

        class Mine(ee.Event):
            pass

        ee.record(Mine("n", ee.EventSource.AGENT), "sink")

        assert "event" == sink.one["kind"]


class TestUnreadable:
    """
    What looks like an event and cannot be read is told of, and counted.
    """

    @pytest.mark.parametrize("error", [ZeroDivisionError, GeneratorExit])
    def test_raising_property(self, sink, error):
        """An event whose fields raise is a warning, and no exception."""

        class Raising(ee.Event):
            @property
            def metadata(self):
                raise error

            @metadata.setter
            def metadata(self, value):
                pass

        ee.record(Raising("n", ee.EventSource.AGENT), "sink")
        ee.get_logger("sink").info(Raising("n", ee.EventSource.AGENT))
        ee.get_logging_handler("sink").info(Raising("n", ee.EventSource.AGENT))

        assert ["could not read Raising: "] * 3 == [
            each["message"] for each in sink.said
        ]
        assert 3 == ee.health()["sink"]["written"]

    def test_missing_field(self, sink):
        """A look-alike that lacks a field is a warning."""
        lacking = ee.Event.__new__(ee.Event)
        ee.record(lacking, "sink")

        assert "could not read Event: " in sink.one["message"]

    @pytest.mark.parametrize(
        "given",
        [
            mock.MagicMock(spec=ee.Event),
            ee.Event(
                "torchelastic.x",
                ee.EventSource.WORKER,
                metadata={"state": np.array([1, 2]), "run_id": np.ones(2)},
            ),
            rdzv_event(rank=np.array([0, 1]), error_trace=np.ones(2)),
        ],
        ids=["mock", "arrays", "rendezvous arrays"],
    )
    def test_odd_values(self, sink, given):
        """Fields that cannot even be compared give a line."""
        ee.record(given, "sink")

        assert 1 == len(sink.said)

    def test_named_nothing(self, sink):
        """A logger whose name is no text has one all the same."""
        ee.configure("sink")
        structlog.get_logger(None).info("m")
        structlog.get_logger(5).info("m")

        assert ["test_lines", "5"] == [each["logger"] for each in sink.said]

    def test_wide_rank(self, sink, monkeypatch):
        """A rank that no line can hold is none."""
        monkeypatch.setenv("RANK", str(2**70))
        ee.record(event(), "sink")

        assert "rank" not in sink.one


class TestRdzvEventLine:
    def test_whole(self, sink, frozen):
        """A rendezvous event's own host and pid go before the process's."""
        ee.record(
            rdzv_event(
                node_state=ee.NodeState.FAILED,
                master_endpoint="node1:29400",
                rank=0,
                local_id=0,
                error_trace="Traceback",
            ),
            "sink",
        )

        assert {
            "timestamp": frozen,
            "time": "2024-02-29T12:34:56.789Z",
            "level": "error",
            "kind": "rdzv",
            "name": "file.py:join",
            "message": "joined",
            "source": "AGENT",
            "hostname": "node1",
            "pid": 4711,
            "seq": 0,
            "run_id": "job-1",
            "rank": 0,
            "node_state": "FAILED",
            "local_id": 0,
            "master_endpoint": "node1:29400",
            "error_trace": "Traceback",
        } == sink.one

    def test_empty_fields(self, sink, here):
        """What is empty is left out, or is the process's own."""
        ee.record(rdzv_event(run_id="", hostname="", pid=0), "sink")

        assert here.items() <= sink.one.items()
        assert not {
            "run_id",
            "rank",
            "local_id",
            "master_endpoint",
            "error_trace",
            "metadata",
        } & set(sink.one)

    @given(RDZV_EVENTS)
    def test_deserialize(self, event):
        """RdzvEvent.deserialize(line) gives back an equal event."""
        lines = []
        ee.register_destination("lines", lines.append)
        ee.record(event, "lines")

        assert event == ee.RdzvEvent.deserialize(lines[0])

    @pytest.mark.parametrize(
        ("changes", "level"),
        [
            ({}, "info"),
            ({"node_state": ee.NodeState.FAILED}, "error"),
            ({"node_state": "FAILED"}, "error"),
            ({"error_trace": "Traceback"}, "error"),
        ],
    )
    def test_level(self, sink, changes, level):
        """A failed step is an error, any other is information."""
        ee.record(rdzv_event(**changes), "sink")

        assert level == sink.one["level"]

    @pytest.mark.parametrize(
        "changes",
        [
            {"rank": "3"},
            {"pid": "x"},
            {"hostname": 5},
            {"run_id": 7},
            {"local_id": 2.5},
            {"node_state": 1},
            {"master_endpoint": 8},
            {"error_trace": ["t"]},
        ],
    )
    def test_wrong_type(self, sink, changes):
        """A field of a wrong type is kept under another name."""
        ((key, given),) = changes.items()
        ee.record(rdzv_event(**changes), "sink")

        assert given == sink.one[f"{key}_"]


class TestBoundContext:
    def test_at_the_end(self, sink):
        """What was bound stands at the root, after everything else."""
        log = ee.get_logger("sink").bind(team="x", metadata_x=1)
        log.record(event(metadata={"team": "y"}))

        assert ["metadata", "team", "metadata_x"] == list(sink.one)[-3:]
        assert "x" == sink.one["team"]
        assert {"team": "y"} == sink.one["metadata"]

    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("door", ["bind", "contextvars"])
    def test_owned_key(self, sink, key, door):
        """A bound key cannot take the place of one of the line's own."""
        forged = {"forged": True}
        log = ee.get_logger("sink")
        if door == "bind":
            log = log.bind(**{key: forged})
        else:
            structlog.contextvars.bind_contextvars(**{key: forged})
        log.record(event())
        log.record(rdzv_event())
        log.info("m")

        assert [forged] * 3 == [said[f"{key}_"] for said in sink.said]
        assert forged not in [said.get(key) for said in sink.said]

    def test_taken_name(self, sink):
        """A renamed key takes no name that another bound key has."""
        ee.get_logger("sink").bind(level=1, level_=2, level__=3).info("m")

        assert {"level_": 2, "level__": 3, "level___": 1}.items() <= (
            sink.one.items()
        )

    @pytest.mark.parametrize(
        ("key", "value", "kept"),
        [
            ("run_id", "job-2", {"run_id": "job-2"}),
            ("rank", 9, {"rank": 9}),
            ("local_rank", 0, {"local_rank": 0}),
            ("restart", 1, {"restart": 1}),
            ("run_id", 7, {"run_id": "job-7", "run_id_": 7}),
            ("rank", "9", {"rank": 3, "rank_": "9"}),
            ("rank", True, {"rank": 3, "rank_": True}),
            ("restart", 2**70, {"restart": 2, "restart_": str(2**70)}),
        ],
    )
    def test_place_in_the_job(self, sink, as_worker, key, value, kept):
        """A bound place of the right type goes before the environment's."""
        ee.get_logger("sink").bind(**{key: value}).record(event())

        assert kept.items() <= sink.one.items()

    def test_own_place(self, sink, as_worker):
        """An event's own place goes before the bound one, which is kept."""
        ee.get_logger("sink").bind(run_id="bound", rank=8).record(
            rdzv_event(rank=5)
        )

        assert {
            "run_id": "job-1",
            "rank": 5,
            "local_rank": 1,
            "restart": 2,
            "run_id_": "bound",
            "rank_": 8,
        }.items() <= sink.one.items()

    def test_same_place(self, sink):
        """A bound value that the event states as well stands once."""
        ee.get_logger("sink").bind(run_id="job-1").record(rdzv_event())

        assert "run_id_" not in sink.one

    @pytest.mark.parametrize(
        "key",
        [
            "event",
            "_record",
            "_from_structlog",
            "_logger",
            "_name",
            "self",
            "message",
            "args",
            "fields",
            "new_values",
            "method_name",
            "level",
            "exc_info_",
        ],
    )
    def test_ordinary_names(self, sink, key):
        """Structlog's keys and the methods' parameters are ordinary keys."""
        bound = ee.get_logger("sink").bind(**{key: "bound"})
        bound.info("m", **{key: "called"})
        bound.record(event())
        log, recorded = sink.said

        root = f"{key}_" if key in KEYS else key
        assert "m" == log["message"]
        assert {key: "called"} == log["metadata"]
        assert "bound" == log[root] == recorded[root]

    def test_contextvars_give_way(self, sink):
        """What a logger binds goes before a context variable."""
        structlog.contextvars.bind_contextvars(a="context", b="context")
        ee.get_logger("sink").bind(a="bound").record(event())

        assert (sink.one["a"], sink.one["b"]) == ("bound", "context")

    @given(
        st.dictionaries(
            st.sampled_from(sorted(KEYS))
            | st.sampled_from(sorted(KEYS)).map("{}_".format)
            | st.text(max_size=5),
            st.integers(0, 9) | st.text(max_size=5) | st.none(),
            max_size=8,
        )
    )
    def test_nothing_lost(self, validate, bound):
        """Every bound value is on the line, and the line is valid."""
        lines = []
        ee.register_destination("lines", lines.append)
        log = ee.get_logger("lines").new(**bound)
        log.record(event())
        said = validate(lines[0])

        for key, value in bound.items():
            spellings = (f"{key}{'_' * n}" for n in range(len(bound) + 3))
            assert value in [said[each] for each in spellings if each in said]


class TestSequence:
    def test_one_destination(self, sink):
        """Lines are numbered from zero across all doors."""
        ee.record(event(), "sink")
        ee.get_logger("sink").info("m")
        ee.get_logging_handler("sink").info(event())
        handler = ee.EventHandler("sink")
        handler.handle(logging.makeLogRecord({"msg": "m"}))

        assert [said["seq"] for said in sink.said] == [0, 1, 2, 3]

    def test_dropped_by_choice(self, sink):
        """An event that a processor drops leaves no gap."""

        def drop(_, __, line):
            if line["name"] == "drop":
                raise structlog.DropEvent
            return line

        log = ee.get_logger("sink", processors=[drop])
        for name in ("a", "drop", "b"):
            log.record(event(name=name))

        assert [(said["name"], said["seq"]) for said in sink.said] == [
            ("a", 0),
            ("b", 1),
        ]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_time_zone(sink, monkeypatch, zone):
    """The time is in UTC wherever the process is."""
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    ee.record(event(), "sink")
    monkeypatch.undo()
    time.tzset()
    said = sink.one

    moment = dt.datetime.fromisoformat(said["time"].replace("Z", "+00:00"))
    assert said["timestamp"] == round(moment.timestamp() * 1000)
