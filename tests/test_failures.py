import asyncio
import json

import pytest

import elastic_events as ee


def fail(error):
    raise error


class Incomparable:
    def __eq__(self, _):
        raise ZeroDivisionError

    __hash__ = None


class TestRecordFailures:
    def test_odd_code(self, sink):
        """An exit code that cannot be compared is passed on."""
        code = Incomparable()
        with pytest.raises(SystemExit) as caught, ee.record_failures("sink"):
            fail(SystemExit(code))

        assert caught.value.code is code
        assert "error" == sink.one["level"]

    def test_event(self, sink, as_worker, here, frozen):
        """One event tells type, message, traceback, rank and restart."""
        with pytest.raises(ValueError, match="boom"):
            with ee.record_failures("sink"):
                fail(ValueError("boom: again"))
        said = sink.one

        assert {
            "timestamp": frozen,
            "level": "error",
            "kind": "event",
            "name": "torchelastic.worker.status.FAILED",
            "source": "WORKER",
            **here,
            "run_id": "job-7",
            "rank": 3,
            "local_rank": 1,
            "restart": 2,
            "worker": {
                "local_rank": 1,
                "pid": here["pid"],
                "error": {
                    "type": "ValueError",
                    "message": "boom: again",
                    "timestamp": frozen,
                },
            },
        }.items() <= said.items()
        assert said["error_trace"].startswith("Traceback (most recent call")
        assert said["error_trace"].endswith("ValueError: boom: again")
        assert "FAILED" == said["metadata"]["state"]

    def test_decorator(self, sink):
        """A decorated function keeps its name, arguments and value."""

        @ee.record_failures("sink")
        def double(value, *, error=None):
            """Double it."""
            if error:
                raise error
            return 2 * value

        assert 6 == double(3)
        assert ("double", "Double it.") == (double.__name__, double.__doc__)
        with pytest.raises(KeyError):
            double(3, error=KeyError("k"))
        assert "KeyError" == sink.one["worker"]["error"]["type"]

    def test_coroutine(self, sink):
        """A decorated coroutine function is watched while it runs."""

        @ee.record_failures("sink")
        async def main():
            await asyncio.sleep(0)
            raise ValueError("boom")

        with pytest.raises(ValueError, match="boom"):
            asyncio.run(main())
        assert 1 == len(sink.said)

    @pytest.mark.parametrize(
        ("error", "recorded"),
        [
            (SystemExit(), 0),
            (SystemExit(0), 0),
            (SystemExit(3), 1),
            (SystemExit("text"), 1),
            (KeyboardInterrupt(), 1),
            (GeneratorExit(), 0),
        ],
    )
    def test_which(self, sink, error, recorded):
        """Leaving with success is no failure; being interrupted is."""
        with pytest.raises(type(error)), ee.record_failures("sink"):
            raise error

        assert recorded == len(sink.said)

    def test_once(self, sink):
        """An exception that passes several blocks is recorded once."""
        with pytest.raises(ValueError, match="boom"):
            with ee.record_failures("sink"), ee.record_failures("sink"):
                fail(ValueError("boom"))

        assert 1 == len(sink.said)

    def test_unprintable(self, sink):
        """An exception whose text raises is recorded by its type."""

        class Bad(Exception):
            def __str__(self):
                raise ZeroDivisionError

        with pytest.raises(Bad), ee.record_failures("sink"):
            raise Bad

        assert {
            "type": "Bad",
            "message": "<unprintable Bad: ZeroDivisionError>",
        }.items() <= sink.one["worker"]["error"].items()

    def test_hostile(self, sink):
        """Nothing that an exception does takes its own place."""

        class Hostile(Exception):
            def __getattr__(self, name):
                raise RuntimeError(name)

            def __setattr__(self, name, value):
                raise TypeError(name)

        with pytest.raises(Hostile):
            with ee.record_failures("sink"):
                raise Hostile

        assert 1 == len(sink.said)

    def test_generator(self, sink):
        """A decorated generator function is watched while it runs."""

        @ee.record_failures("sink")
        def steps():
            got = yield 1
            raise ValueError(got)

        running = steps()
        assert 1 == next(running)
        with pytest.raises(ValueError, match="boom"):
            running.send("boom")
        assert 1 == len(sink.said)

    def test_async_generator(self):
        """An async generator function is refused, with the way out."""
        with pytest.raises(TypeError, match="context manager inside"):

            @ee.record_failures()
            async def steps():
                yield 1

    def test_torch_form(self, sink, as_worker):
        """The metadata has torch's form, JSON strings included."""
        with pytest.raises(ValueError, match="boom"):
            with ee.record_failures("sink"):
                fail(ValueError("boom"))
        metadata = sink.one["metadata"]
        raw_error = json.loads(metadata["raw_error"])["message"]

        assert "ValueError: boom" == raw_error["message"]
        assert {"py_callstack", "timestamp"} == set(raw_error["extraInfo"])
        assert [1] == json.loads(metadata["metadata"])["local_rank"]

    def test_environment(self, sink, monkeypatch):
        """Without a destination it goes where null goes."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", "sink")
        with pytest.raises(ValueError, match="boom"):
            with ee.record_failures():
                fail(ValueError("boom"))

        assert 1 == len(sink.said)

    def test_forgotten_parentheses(self):
        """The decorator without parentheses is an error that says so."""
        with pytest.raises(TypeError, match=r"@record_failures\(\)"):

            @ee.record_failures
            def main():
                pass
