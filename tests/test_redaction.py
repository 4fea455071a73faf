"""
Secrets are replaced where it was asked for, and nowhere else.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import sys

import pytest
from test_logger import EVENT

import elastic_events as ee
from elastic_events.torchelastic import EVENT_PREFIX


@dataclasses.dataclass
class Login:
    user: str
    password: str


def logged(sink, processor, **fields):
    ee.get_logger("sink", processors=[processor]).info("m", **fields)
    return sink.one["metadata"]


class TestRedact:
    def test_not_asked_for(self, sink):
        """Nothing is redacted unless it was asked for."""
        ee.get_logger("sink").info("m", password="p")

        assert {"password": "p"} == sink.one["metadata"]

    @pytest.mark.parametrize(
        "key",
        ["password", "PASSWORD", "Api-Key", "api_key", "secret_", b"token"],
    )
    def test_key(self, sink, key):
        """A secret's key is known by its whole name, however it is written."""
        (value,) = logged(sink, ee.redact(), given={key: "s"})[
            "given"
        ].values()

        assert "[redacted]" == value

    @pytest.mark.parametrize(
        "key", ["tokens_per_second", "max_tokens", "passwords", "cookies"]
    )
    def test_similar_key(self, sink, key):
        """A key that only resembles a secret's is none."""
        assert {key: 5} == logged(sink, ee.redact(), **{key: 5})

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ([{"token": 1}], [{"token": "[redacted]"}]),
            (({"token": {"a": 1}},), [{"token": "[redacted]"}]),
            (
                collections.ChainMap({"Token": None}),
                {"Token": "[redacted]"},
            ),
            (
                Login("ann", "p"),
                {"user": "ann", "password": "[redacted]"},
            ),
            ('{"a":[{"token":"s"}]}', '{"a":[{"token":"[redacted]"}]}'),
            ('[{"token": "s"}]', '[{"token":"[redacted]"}]'),
            ('{"a": 1}', '{"a": 1}'),
            (' \n{"token":"s"}', '{"token":"[redacted]"}'),
            ('\ufeff{"token":"s"}', '{"token":"[redacted]"}'),
            ('"{\\"token\\":\\"s\\"}"', '"{\\"token\\":\\"[redacted]\\"}"'),
            (
                '{"x":{"token":"s"},"x":1}',
                '{"x":{"token":"[redacted]"},"x_":1}',
            ),
            (
                '{"token":"s","token":"t"}',
                '{"token":"[redacted]","token_":"[redacted]"}',
            ),
            ("[" * 100_000 + "]" * 100_000, "[redacted]"),
            ("{token", "{token"),
            ("token", "token"),
        ],
    )
    def test_place(self, sink, value, expected):
        """A secret is found at any depth, in whatever becomes a mapping."""
        assert {"v": expected} == logged(sink, ee.redact(), v=value)

    def test_deep(self, sink):
        """Depth does not hide a secret, nor what stands beside it."""
        deep = '{"token":"SECRET"}'
        for _ in range(300):
            deep = f"[{deep}]"
        said = logged(sink, ee.redact(), deep=deep, password="SECRET", a=1)

        assert ("[redacted]", 1) == (said["password"], said["a"])
        assert b"SECRET" not in sink[0]

    def test_many_alike(self, sink):
        """However many keys are alike, all their values are secret."""

        class Key:
            def __str__(self):
                return "token"

        said = logged(sink, ee.redact(), a={Key(): 1 for _ in range(20)})

        assert ["[redacted]"] * 20 == list(said["a"].values())

    @pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
    def test_beside_what_raises(self, sink, error):
        """A processor that raises does not undo the others."""

        class Raising:
            def __call__(self, *_):
                raise error

            def __repr__(self):
                raise error

        log = ee.get_logger("sink", processors=[ee.redact(), Raising()])
        log.info("m", token="SECRET")

        assert {"token": "[redacted]"} == sink.one["metadata"]

    def test_unreadable(self, sink):
        """Of what cannot be read nothing is shown that might be a secret."""

        class Raising(ee.Event):
            def __str__(self):
                return "SECRET"

            @property
            def metadata(self):
                raise ValueError("SECRET")

            @metadata.setter
            def metadata(self, value):
                pass

        log = ee.get_logger("sink", processors=[ee.redact()])
        log.record(Raising("n", ee.EventSource.AGENT))
        handler = ee.EventHandler("sink", processors=[ee.redact()])
        handler.info(Raising("n", ee.EventSource.AGENT))

        assert ["could not read _Withheld: Raising raised ValueError"] * 2 == [
            each["message"] for each in sink.said
        ]
        assert not [line for line in sink if b"SECRET" in line]

    def test_exhausted_stack(self, sink):
        """Where the stack ends, a line may lack much, but hides secrets."""
        log = ee.get_logger("sink", processors=[ee.redact()])

        def deeper(left):
            if left:
                return deeper(left - 1)
            return log.info("m", a={"password": "SECRET"})

        for left in range(sys.getrecursionlimit()):
            with contextlib.suppress(RecursionError):
                deeper(left)

        assert sink.said
        assert not [line for line in sink if b"SECRET" in line]

    def test_own_keys(self, sink):
        """Keys of one's own are secret instead."""
        assert {"password": "p", "Session": "[redacted]"} == logged(
            sink, ee.redact(["session"]), password="p", Session="s"
        )

    def test_bound(self, sink):
        """What is bound is looked at too."""
        log = ee.get_logger("sink", processors=[ee.redact()])
        log.bind(token="s", team="x").record(EVENT)

        assert ("[redacted]", "x") == (sink.one["token"], sink.one["team"])

    def test_rest(self, sink, frozen):
        """What holds no secret is the same line, but for its number."""
        metadata = {
            "run_id": "r",
            "global_rank": 1,
            "state": "FAILED",
            "raw_error": '{"message": {"message": "m", "extraInfo": {}}}',
        }
        event = ee.Event(
            f"{EVENT_PREFIX}worker.status.FAILED",
            ee.EventSource.WORKER,
            metadata=metadata,
        )
        ee.record(event, "sink")
        ee.get_logger("sink", processors=[ee.redact()]).record(event)
        plain, redacted = sink.said

        assert plain | {"seq": 1} == redacted

    def test_what_torch_hides(self, sink):
        """What a line repeats of torch's JSON strings is redacted in both."""
        event = ee.Event(
            f"{EVENT_PREFIX}worker.status.FAILED",
            ee.EventSource.WORKER,
            metadata={
                "state": "FAILED",
                "metadata": '{"entry_point": "SECRET", "worker_pid": [7]}',
            },
        )
        ee.get_logger("sink", processors=[ee.redact(["entry_point"])]).record(
            event
        )

        assert {"entry_point": "[redacted]", "pid": 7} == sink.one["worker"]
        assert not [line for line in sink if b"SECRET" in line]

    def test_everywhere(self, sink):
        """It is for loggers, handlers and registered destinations."""
        ee.EventHandler("sink", processors=[ee.redact()]).info("m", token=1)
        ee.register_destination("safe", "sink", processors=[ee.redact()])
        ee.record(
            ee.Event("n", ee.EventSource.AGENT, metadata={"token": 1}), "safe"
        )

        assert [{"token": "[redacted]"}] * 2 == [
            each["metadata"] for each in sink.said
        ]

    def test_callers_values(self, sink):
        """What the caller holds is left as it is."""
        given = {"token": "s", "a": [{"token": "s"}]}
        before = json.dumps(given)
        logged(sink, ee.redact(), given=given)

        assert before == json.dumps(given)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ("token", r"not the one string 'token': give it \['token'\]"),
            ([5], "takes keys that are strings, not 5"),
        ],
    )
    def test_wrong_keys(self, keys, message):
        """Keys that are no names are refused, with what is expected."""
        with pytest.raises(TypeError, match=message):
            ee.redact(keys)

    def test_repr(self):
        """It shows what it looks for."""
        assert "redact(['a', 'b'])" == repr(ee.redact(["a", "b"]))
