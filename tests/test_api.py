import json
from dataclasses import asdict

import pytest
from hypothesis import given
from strategies import EVENTS, RDZV_EVENTS

import elastic_events as ee


def rdzv_event(**changes):
    fields = {
        "name": "file.py:join",
        "run_id": "job-1",
        "message": "joined",
        "hostname": "node1",
        "pid": 4711,
        "node_state": ee.NodeState.RUNNING,
    }
    return ee.RdzvEvent(**(fields | changes))


class TestEvent:
    def test_defaults(self):
        """A new event has no time and metadata of its own."""
        event = ee.Event("n", ee.EventSource.AGENT)
        other = ee.Event("n", ee.EventSource.AGENT)
        event.metadata["a"] = 1

        assert 0 == event.timestamp
        assert {} == other.metadata

    def test_serialize(self):
        """An event serializes as json writes its fields, ASCII and spaced."""
        event = ee.Event(
            "naïve", ee.EventSource.WORKER, 5, {"a": 1, "b": [None, 1.5]}
        )

        expected = (
            '{"name": "na\\u00efve", "source": "WORKER", "timestamp": 5,'
            ' "metadata": {"a": 1, "b": [null, 1.5]}}'
        )
        assert expected == event.serialize() == str(event)

    @given(EVENTS)
    def test_round_trip(self, event):
        """Deserializing gives back an equal event, from text or bytes."""
        text = event.serialize()

        assert event == ee.Event.deserialize(text)
        assert event == ee.Event.deserialize(text.encode())
        assert event is ee.Event.deserialize(event)

    def test_serialize_refuses(self):
        """What json refuses makes serialize raise, as in torch."""
        event = ee.Event("n", ee.EventSource.AGENT, metadata={"a": {1}})

        with pytest.raises(TypeError, match="set is not JSON serializable"):
            event.serialize()

    def test_unknown_keys(self):
        """Keys that an event does not have are ignored."""
        text = '{"name": "n", "source": "AGENT", "level": "info"}'

        assert ee.Event("n", ee.EventSource.AGENT) == ee.Event.deserialize(
            text
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "not the JSON of an event: Expecting property name"),
            ("[]", "not the JSON of an event: expected an object, got list"),
            ("{}", "'source' is None, expected one of AGENT, WORKER"),
            (
                '{"name": "n", "source": "OTHER"}',
                "'source' is 'OTHER', expected one of AGENT, WORKER",
            ),
            (
                '{"source": "AGENT"}',
                "not the JSON of an event: it has no 'name'",
            ),
            (
                '{"name": "n", "source": ["AGENT"]}',
                r"'source' is \['AGENT'\], expected one of AGENT, WORKER",
            ),
        ],
    )
    def test_not_an_event(self, text, message):
        """Text that is not an event's is refused with the reason."""
        with pytest.raises(ValueError, match=message):
            ee.Event.deserialize(text)

    @pytest.mark.parametrize("data", [{}, None, 5, ["n"]])
    def test_wrong_type(self, data):
        """Anything but text and events is a TypeError that names the type."""
        with pytest.raises(TypeError, match=f"given {type(data).__name__}"):
            ee.Event.deserialize(data)


class TestRdzvEvent:
    def test_serialize(self):
        """A rendezvous event serializes as json writes its fields."""
        event = rdzv_event()

        assert json.dumps(asdict(event)) == event.serialize() == str(event)

    @given(RDZV_EVENTS)
    def test_round_trip(self, event):
        """Deserializing gives back an equal event, from text or bytes."""
        text = event.serialize()

        assert event == ee.RdzvEvent.deserialize(text)
        assert event == ee.RdzvEvent.deserialize(text.encode())
        assert event is ee.RdzvEvent.deserialize(event)

    def test_unknown_state(self):
        """A state that does not exist is refused with those that do."""
        text = json.dumps(asdict(rdzv_event()) | {"node_state": "LOST"})

        with pytest.raises(
            ValueError,
            match="'node_state' is 'LOST', expected one of INIT, RUNNING,"
            " SUCCEEDED, FAILED",
        ):
            ee.RdzvEvent.deserialize(text)
