"""
Against the installed torch: what is the same must be the same.
"""

import dataclasses
import inspect
import json
import logging

import pytest
from hypothesis import given, strategies as st
from strategies import EVENTS, METADATA, RDZV_EVENTS, TIMESTAMPS

import elastic_events as ee


pytestmark = pytest.mark.torch

torch_events = pytest.importorskip("torch.distributed.elastic.events")

FUNCTIONS = (
    "record",
    "record_rdzv_event",
    "construct_and_record_rdzv_event",
    "get_logging_handler",
    "_get_or_create_logger",
)
CLASSES = ("Event", "RdzvEvent")
SOURCES = st.sampled_from(["AGENT", "WORKER"])
STATES = st.sampled_from(["INIT", "RUNNING", "SUCCEEDED", "FAILED"])


def parameters_of(function):
    return [
        (each.name, each.kind, each.default)
        for each in inspect.signature(function).parameters.values()
    ]


def both_events(name, source, timestamp, metadata):
    return [
        module.Event(name, module.EventSource[source], timestamp, metadata)
        for module in (ee, torch_events)
    ]


def as_torchs(event):
    """
    Return torch's event with the fields of ours.
    """
    fields = {
        field.name: getattr(event, field.name)
        for field in dataclasses.fields(event)
    }
    if "source" in fields:
        fields["source"] = torch_events.EventSource[fields["source"].name]
        return torch_events.Event(**fields)
    fields["node_state"] = torch_events.NodeState[fields["node_state"].name]
    return torch_events.RdzvEvent(**fields)


def outcome_of(function):
    """
    Return what *function* returns, or the type of what it raises.
    """
    try:
        return function()
    except Exception as error:
        return type(error)


class TestNames:
    def test_public(self):
        """Every public name of torch's package that is its own is here."""
        own = {
            name
            for name, value in vars(torch_events).items()
            if getattr(value, "__module__", "").startswith(
                "torch.distributed.elastic.events"
            )
        }

        assert own >= {"Event", "record", "_get_or_create_logger"}
        assert not [name for name in own if not hasattr(ee, name)]
        assert torch_events.EventMetadataValue == ee.EventMetadataValue

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_signature(self, name):
        """A function has torch's parameters, kinds and defaults."""
        assert parameters_of(getattr(torch_events, name)) == parameters_of(
            getattr(ee, name)
        )

    @pytest.mark.parametrize("name", CLASSES)
    def test_fields(self, name):
        """A class has torch's fields, in order, with their defaults."""
        ours, torchs = (
            [
                (
                    field.name,
                    field.default,
                    field.default_factory is dict,
                    field.init,
                    field.compare,
                )
                for field in dataclasses.fields(getattr(module, name))
            ]
            for module in (ee, torch_events)
        )

        assert torchs == ours
        for method in ("serialize", "deserialize"):
            assert parameters_of(
                getattr(getattr(torch_events, name), method)
            ) == parameters_of(getattr(getattr(ee, name), method))

    @pytest.mark.parametrize("name", ["EventSource", "NodeState"])
    def test_members(self, name):
        """An enum has torch's members, equal to them and to their text."""
        ours, torchs = getattr(ee, name), getattr(torch_events, name)

        assert list(torchs.__members__) == list(ours.__members__)
        for member in ours:
            other = torchs[member.name]
            assert member == other == member.value == other.value
            assert str(member) == str(other)
            assert hash(member) == hash(other)


class TestEvent:
    @given(st.text(), SOURCES, st.integers(), METADATA)
    def test_serialize(self, name, source, timestamp, metadata):
        """Whatever torch accepts, the texts are equal byte for byte."""
        ours, torchs = both_events(name, source, timestamp, metadata)

        assert torchs.serialize() == ours.serialize()
        assert str(torchs) == str(ours)
        assert repr(torchs) == repr(ours)

    @pytest.mark.parametrize(
        "metadata",
        [
            {"a": {1}},
            {"a": b"x"},
            {"a": object()},
            {(1, 2): 3},
            {1: "a", "1": "b", None: "c"},
            None,
            [1],
        ],
    )
    def test_refusals(self, metadata):
        """What torch refuses to serialize is refused alike."""
        ours, torchs = both_events("n", "AGENT", 0, metadata)

        assert outcome_of(torchs.serialize) == outcome_of(ours.serialize)

    @given(st.text(), SOURCES, TIMESTAMPS, METADATA)
    def test_deserialize(self, name, source, timestamp, metadata):
        """Each reads the other's text as an equal event."""
        ours, torchs = both_events(name, source, timestamp, metadata)
        ours_read = ee.Event.deserialize(torchs.serialize())
        torchs_read = torch_events.Event.deserialize(ours.serialize())

        assert torchs_read.serialize() == ours_read.serialize()
        assert isinstance(ours_read.source, ee.EventSource)

    @given(EVENTS, EVENTS)
    def test_equality(self, first, second):
        """Events are equal where torch's are."""
        assert (as_torchs(first) == as_torchs(second)) == (first == second)
        assert as_torchs(first) == as_torchs(first)

    def test_torchs_member(self):
        """torch's enum members are as good as ours."""
        event = ee.Event("n", torch_events.EventSource.WORKER)

        assert event == ee.Event("n", ee.EventSource.WORKER)
        assert event.serialize() == str(
            torch_events.Event("n", torch_events.EventSource.WORKER)
        )


class TestRdzvEvent:
    @given(RDZV_EVENTS)
    def test_serialize(self, event):
        """The texts are equal byte for byte, and each reads the other's."""
        torchs = as_torchs(event)

        assert torchs.serialize() == event.serialize()
        assert str(torchs) == str(event)
        assert event == ee.RdzvEvent.deserialize(torchs.serialize())
        assert torchs == torch_events.RdzvEvent.deserialize(event.serialize())


class TestDoors:
    @given(EVENTS | RDZV_EVENTS)
    def test_torchs_event(self, frozen, event):
        """torch's own event gives the same bytes as ours."""
        lines = []
        for each in (event, as_torchs(event)):
            ee.register_destination("door", lines.append)
            ee.record(each, "door")

        assert lines[0] == lines[1]

    @given(EVENTS)
    def test_torchs_record(self, frozen, event):
        """torch's record() gives the same bytes as ours."""
        lines = []
        ee.register_destination("door", lines.append)
        ee.record(event, "door")
        ee.register_destination("door", lines.append)
        handlers = torch_events.handlers._log_handlers
        handlers["door"] = ee.get_logging_handler("door")
        try:
            torch_events.record(as_torchs(event), "door")
        finally:
            del handlers["door"]
            torch_events._events_loggers.pop("door", None)
            logging.getLogger("torchelastic-events-door").handlers = []

        assert lines[0] == lines[1]

    def test_hostile_metadata(self, sink):
        """What makes torch's record() raise is recorded by ours."""
        import torch

        event = torch_events.Event(
            "n",
            torch_events.EventSource.WORKER,
            metadata={
                "a": {1},
                "loss": torch.tensor(0.5),
                "size": torch.ones(2).size(),
                "grad": torch.ones(2, requires_grad=True),
            },
        )
        with pytest.raises(TypeError):
            torch_events.record(event)
        ee.record(event, "sink")

        assert {
            "a": [1],
            "loss": 0.5,
            "size": [2],
            "grad": [1.0, 1.0],
        } == sink.one["metadata"]


def test_names_of_callers(sink, monkeypatch):
    """Both name the caller of a rendezvous step alike."""
    seen = []
    monkeypatch.setattr(torch_events, "record_rdzv_event", seen.append)
    monkeypatch.setitem(
        torch_events.handlers._log_handlers,
        "dynamic_rendezvous",
        logging.StreamHandler(),
    )
    ee.register_destination("dynamic_rendezvous", "sink")

    def step(module, **more):
        module.construct_and_record_rdzv_event(
            "r", "m", module.NodeState.RUNNING, **more
        )

    class Node:
        def join(self, module):
            module.construct_and_record_rdzv_event(
                "r", "m", module.NodeState.RUNNING, rank=0
            )

    for module in (torch_events, ee):
        step(module)
        step(module, name="Handler.next", hostname="h", pid=7)
        Node().join(module)

    assert [(each.name, each.rank) for each in seen] == [
        (each["name"], each.get("rank")) for each in sink.said
    ]


def test_lines_are_torchs_too(sink):
    """The raw JSON that torch prints is read back by ours."""
    torchs = torch_events.Event(
        "n", torch_events.EventSource.AGENT, metadata={"a": float("nan")}
    )

    assert "NaN" in torchs.serialize()
    assert json.loads(torchs.serialize())["name"] == (
        ee.Event.deserialize(torchs.serialize()).name
    )
