import collections
import copy
import logging
import sys
import threading

import pytest
import structlog
from test_api import rdzv_event

import elastic_events as ee
from elastic_events.schema import KEYS


RDZV_EVENT = rdzv_event(run_id="")
EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"a": 1})


class TestGetLogger:
    def test_is_a_bound_logger(self, sink):
        """It is structlog's kind of bound logger, and is never changed."""
        log = ee.get_logger("sink")
        bound = log.bind(a=1, b=2)

        assert isinstance(bound, structlog.BoundLoggerBase)
        assert {} == structlog.get_context(log)
        assert {"a": 1, "b": 2} == structlog.get_context(bound)
        assert {"b": 2} == structlog.get_context(bound.unbind("a"))
        assert {"b": 2} == structlog.get_context(bound.try_unbind("a", "x"))
        assert {"c": 3} == structlog.get_context(bound.new(c=3))
        assert {"a": 1, "b": 2} == structlog.get_context(bound)
        with pytest.raises(KeyError):
            log.unbind("a")

    def test_log_line(self, sink, frozen, here):
        """A log's line has the call's fields in metadata."""
        ee.get_logger("sink").bind(team="x").info("hello", step=1)

        assert {
            "timestamp": frozen,
            "time": "2024-02-29T12:34:56.789Z",
            "level": "info",
            "kind": "log",
            "message": "hello",
            "source": "AGENT",
            **here,
            "seq": 0,
            "logger": "test_logger",
            "metadata": {"step": 1},
            "team": "x",
        } == sink.one

    @pytest.mark.parametrize(
        ("method", "level"),
        [
            ("debug", "debug"),
            ("info", "info"),
            ("warning", "warning"),
            ("warn", "warning"),
            ("error", "error"),
            ("exception", "error"),
            ("critical", "critical"),
            ("fatal", "critical"),
        ],
    )
    def test_levels(self, sink, method, level):
        """Each method logs at the level that it is named after."""
        getattr(ee.get_logger("sink"), method)("m")

        assert level == sink.one["level"]

    def test_odd_level(self, sink):
        """A level between the standard ones is rounded down and kept."""
        ee.get_logger("sink").log(35, "m")

        ee.get_logger("sink").log("error", "n")

        assert "error" == sink.said[1]["level"]
        del sink[1]
        assert ("warning", {"level_name": "Level 35"}) == (
            sink.one["level"],
            sink.one["metadata"],
        )

    @pytest.mark.parametrize(
        ("message", "args", "text"),
        [
            ("a %s %d", ("b", 3), "a b 3"),
            ("%(a)s", ({"a": 1},), "1"),
            ("50%", (), "50%"),
            ("x %s", ({},), "x {}"),
            (None, (), "None"),
            (ValueError("boom"), (), "boom"),
        ],
    )
    def test_arguments(self, sink, message, args, text):
        """The % arguments are filled in, as logging does."""
        ee.get_logger("sink").info(message, *args)

        assert text == sink.one["message"]

    def test_wrong_arguments(self, sink):
        """Arguments that do not fit are kept beside the message."""
        ee.get_logger("sink").info("%s %s", 1)

        assert "%s %s" == sink.one["message"]
        assert {
            "args": [1],
            "formatting_error": "TypeError: not enough arguments for format"
            " string",
        } == sink.one["metadata"]

    def test_own_names(self, sink):
        """Fields that are called like those we add are kept beside them."""
        ee.get_logger("sink").info("%d", "a", args=5, formatting_error=6)
        ee.get_logger("sink").info({"a": 1}, message="mine")
        wrong, structured = (each["metadata"] for each in sink.said)

        assert (5, 6, ["a"]) == (
            wrong["args"],
            wrong["formatting_error"],
            wrong["args_"],
        )
        assert {"message": "mine", "message_": {"a": 1}} == structured

    def test_structured_message(self, sink):
        """A mapping as a message is kept as one."""
        ee.get_logger("sink").info({"a": 1})

        assert "{'a': 1}" == sink.one["message"]
        assert {"message": {"a": 1}} == sink.one["metadata"]

    def test_exception(self, sink):
        """exception() records the traceback of what is being handled."""
        log = ee.get_logger("sink")
        try:
            raise ValueError("boom")
        except ValueError:
            log.exception("failed", step=1)

        assert sink.one["error_trace"].startswith("Traceback (most recent")
        assert sink.one["error_trace"].endswith("ValueError: boom")
        assert {"step": 1} == sink.one["metadata"]

    @pytest.mark.parametrize(
        ("exc_info", "end"),
        [
            (ValueError("v"), "ValueError: v"),
            ((ValueError, ValueError("v"), None), "ValueError: v"),
            (True, "KeyError: 'handled'"),
            (1, "KeyError: 'handled'"),
            ("yes", "KeyError: 'handled'"),
            (False, None),
            (None, None),
            ((None, None, None), None),
            ((ValueError, None, None), None),
        ],
    )
    def test_exc_info(self, sink, exc_info, end):
        """exc_info takes all that logging's takes."""
        try:
            raise KeyError("handled")
        except KeyError:
            ee.get_logger("sink").error("m", exc_info=exc_info)
        trace = sink.one.get("error_trace")

        assert trace is end is None or trace.endswith(end)

    def test_no_exception(self, sink):
        """exception() outside of an except has no traceback."""
        ee.get_logger("sink").exception("m")

        assert "error_trace" not in sink.one

    def test_stack_info(self, sink):
        """stack_info keeps the stack of the call."""
        ee.get_logger("sink").info("m", stack_info=True)
        stack = sink.one["metadata"]["stack_info"]

        assert stack.startswith("Stack (most recent call last):\n")
        assert stack.endswith(
            'ee.get_logger("sink").info("m", stack_info=True)'
        )

    def test_event_as_message(self, sink, frozen):
        """An event given to a level method is recorded as an event."""
        log = ee.get_logger("sink").bind(team="x")
        log.record(EVENT)
        log.warning(EVENT)
        recorded, logged = sink.said

        assert recorded | {"seq": 1} == logged

    def test_event_with_fields(self, sink):
        """Fields given along with an event are bound: metadata stays."""
        ee.get_logger("sink").info(EVENT, step=1)

        assert ({"a": 1}, 1) == (sink.one["metadata"], sink.one["step"])

    def test_name(self, sink):
        """A logger is named after the module that asked for it."""
        ee.get_logger("sink").info("m")
        ee.get_logger("sink", name="mine").info("m")

        assert ["test_logger", "mine"] == [
            each["logger"] for each in sink.said
        ]

    def test_unknown_destination(self):
        """A destination that does not exist is an error at once."""
        with pytest.raises(ee.UnknownDestination, match="unknown destination"):
            ee.get_logger("fiel")


class TestLevel:
    def test_lower_methods(self, sink):
        """Logs below the level are not written, others are."""
        log = ee.get_logger("sink", level="warning").bind(a=1)
        for method in ("debug", "info", "warn", "error", "critical"):
            getattr(log, method)(method)
        log.log(logging.INFO, "low")
        log.log(logging.ERROR, "high")

        assert ["warn", "error", "critical", "high"] == [
            each["message"] for each in sink.said
        ]
        assert not log.is_enabled_for(logging.INFO)
        assert logging.WARNING == log.get_effective_level()

    def test_events_pass(self, sink):
        """Events are recorded whatever the level and the method."""
        log = ee.get_logger("sink", level=logging.CRITICAL)
        log.record(EVENT)
        log.debug(EVENT)

        assert ["event", "event"] == [each["kind"] for each in sink.said]

    def test_unknown_level(self, sink):
        """A level that does not exist is refused with those that do."""
        with pytest.raises(
            ValueError,
            match="unknown level 'loud': expected a number or one of debug,"
            " info, warning, error, critical",
        ):
            ee.get_logger("sink", level="loud")


class TestProcessors:
    def test_further_processor(self, sink):
        """A further processor sees the line and may change it."""

        def redact(_, method_name, line):
            line["metadata"] = {key: "***" for key in line["metadata"]}
            line["method"] = method_name
            return line

        log = ee.get_logger("sink", processors=[redact]).bind(team="x")
        log.record(EVENT)

        assert ({"a": "***"}, "x", "info") == (
            sink.one["metadata"],
            sink.one["team"],
            sink.one["method"],
        )

    def test_structlog_processor(self, sink):
        """structlog's own processors work as further processors."""
        adder = structlog.processors.CallsiteParameterAdder(
            [structlog.processors.CallsiteParameter.THREAD_NAME]
        )
        ee.get_logger("sink", processors=[adder]).info("m")

        assert "MainThread" == sink.one["thread_name"]

    @pytest.mark.parametrize("record", [EVENT, "message", RDZV_EVENT])
    def test_what_every_line_needs(self, sink, record):
        """A processor cannot take away or forge what every line has."""

        def remove(_, __, ___):
            return {"extra": 1}

        def forge(_, __, line):
            return {**dict.fromkeys(KEYS, [0]), "extra": 1}

        ee.get_logger("sink").info(record)
        ee.get_logger("sink", processors=[remove]).info(record)
        ee.get_logger("sink", processors=[forge]).info(record)
        plain, removed, forged = sink.said
        stays = {key: plain[key] for key in ("level", "kind", "source")}

        assert {**stays, "extra": 1}.items() <= removed.items()
        assert stays.items() <= forged.items()
        assert [[0]] * 4 == [
            forged[key] for key in ("level_", "kind_", "source_", "pid_")
        ]

    def test_redaction(self, sink):
        """What a processor takes away is not on the line in any form."""
        event = ee.Event(
            "n",
            ee.EventSource.WORKER,
            metadata=collections.defaultdict(str, token="SECRET"),
        )

        def replace(_, __, line):
            return {**line, "metadata": {"token": "***"}}

        def remove(_, __, line):
            del line["metadata"]
            return line

        def spoil(_, __, line):
            return {**line, "metadata": "redacted"}

        def empty(_, __, line):
            line["metadata"].clear()
            return line

        for processor in (replace, remove, spoil, empty):
            ee.get_logger("sink", processors=[processor]).record(event)
            ee.get_logger("sink", processors=[processor]).info(
                "m", token="SECRET"
            )

        assert 8 == len(sink.said)
        assert not [line for line in sink if b"SECRET" in line]
        assert {"token": "SECRET"} == event.metadata

    def test_circular_values(self, sink):
        """Values that hold themselves many times cost no more for that."""
        circular = {}
        circular.update(a=circular, b=circular, c=circular)
        shared = ["lol"]
        for _ in range(18):
            shared = [shared, shared]
        processors = [lambda _, __, line: line, ee.redact()]
        log = ee.get_logger("sink", processors=processors)
        log.info("m", circular=circular)
        log.info("m", shared=shared)

        assert 2 == len(sink.said)

    def test_changing_values(self, sink):
        """Another thread that changes a value costs no event."""
        shared = {}
        stop = threading.Event()

        def change():
            while not stop.is_set():
                shared.pop("token", None)
                shared["token"] = "SECRET"

        thread = threading.Thread(target=change)
        thread.start()
        log = ee.get_logger("sink", processors=[ee.redact()])
        event = ee.Event("n", ee.EventSource.AGENT, metadata=shared)
        try:
            for _ in range(300):
                log.record(event)
        finally:
            stop.set()
            thread.join(timeout=60)

        assert {"event"} == {each["kind"] for each in sink.said}
        assert not [line for line in sink if b"SECRET" in line]

    def test_worker(self, sink):
        """A processor cannot give a worker what its keys cannot have."""
        failed = ee.Event(
            "torchelastic.worker.status.FAILED",
            ee.EventSource.WORKER,
            metadata={"worker_id": "7", "raw_error": '{"message": "E: m"}'},
        )

        def change(_, __, line):
            return {**line, "worker": {"pid": 8, "error": {"message": 5}}}

        ee.get_logger("sink", processors=[change]).record(failed)

        assert {"pid": 8} == sink.one["worker"]

    def test_place_in_the_job(self, sink):
        """A processor may say where in the job the line belongs."""

        def place(_, __, line):
            return {**line, "rank": 7, "local_rank": "no"}

        ee.get_logger("sink", processors=[place]).record(EVENT)

        assert (7, "no") == (sink.one["rank"], sink.one["local_rank_"])

    def test_raising_processor(self, sink, capsys):
        """A processor that raises is skipped, and complained about once."""

        def fail(_, __, ___):
            raise ZeroDivisionError

        log = ee.get_logger("sink", processors=[fail])
        log.record(EVENT)
        log.record(EVENT)

        assert 2 == len(sink.said)
        assert 1 == capsys.readouterr().err.count("ZeroDivisionError")

    @pytest.mark.parametrize(
        "ask",
        [
            ee.get_logger,
            ee.configure,
            ee.EventHandler,
            lambda **more: ee.register_destination("own", "null", **more),
        ],
    )
    @pytest.mark.parametrize(
        ("wrong", "error"),
        [
            ([1], "a processor must be callable, not 1"),
            (ee.redact(), "processors must be a list"),
        ],
    )
    def test_wrong(self, ask, wrong, error):
        """What is no list of processors is refused wherever it is given."""
        with pytest.raises(TypeError, match=error):
            ask(processors=wrong)


class TestConfigure:
    def test_structlog_logger(self, sink, frozen):
        """After configure(), structlog's loggers record and log."""
        ee.configure("sink")
        log = structlog.get_logger().bind(run_id="job-1")
        log.record(EVENT)
        log.info("m")
        structlog.get_logger("named").info("m")

        assert [
            ("event", "job-1", None),
            ("log", "job-1", "test_logger"),
            ("log", None, "named"),
        ] == [
            (each["kind"], each.get("run_id"), each.get("logger"))
            for each in sink.said
        ]

    def test_same_line(self, sink, frozen):
        """A configured logger gives the line that get_logger gives."""
        ee.configure("sink")
        structlog.get_logger().bind(team="x").record(EVENT)
        ee.get_logger("sink").bind(team="x").record(EVENT)
        configured, got = sink.said

        assert configured | {"seq": 1} == got

    def test_initial_values(self, sink):
        """Values given to structlog.get_logger are bound."""
        ee.configure("sink")
        structlog.get_logger(team="x").info("m")

        assert "x" == sink.one["team"]

    def test_level_and_processors(self, sink):
        """configure() takes a level and further processors."""

        def mark(_, __, line):
            return {**line, "marked": True}

        ee.configure("sink", level="error", processors=[mark])
        structlog.get_logger().info("low")
        structlog.get_logger().error("high")

        assert ("high", True) == (sink.one["message"], sink.one["marked"])

    def test_null(self, capfd):
        """Configured to nowhere, a logger does nothing."""
        ee.configure()
        log = structlog.get_logger().bind(a=1)
        log.info("m")
        log.record(EVENT)

        assert ("", "") == tuple(capfd.readouterr())

    def test_capture_logs(self, sink):
        """structlog's own capture_logs works on configured loggers."""
        ee.configure("sink")
        log = structlog.get_logger().bind(run_id="r")
        with structlog.testing.capture_logs() as captured:
            structlog.get_logger().info("m")
        log.info("n")

        assert ["m"] == [each["message"] for each in captured]
        assert "n" == sink.one["message"]

    def test_copies(self, sink):
        """A logger can be copied along with what holds it."""
        log = ee.get_logger("sink").bind(a=1)
        copy.deepcopy({"log": log})["log"].info("m")

        assert 1 == sink.one["a"]


class TestNull:
    def test_does_nothing(self, capfd):
        """A logger to nowhere takes every call and writes nothing."""
        log = ee.get_logger().bind(a=1)
        log.info("m %s", 1, x=2)
        log.exception("m")
        log.log(50, "m")
        log.record(EVENT)

        assert ("", "") == tuple(capfd.readouterr())
        assert {} == ee.health()
        assert not log.is_enabled_for(logging.CRITICAL)

    def test_environment(self, sink, monkeypatch):
        """ELASTIC_EVENTS_DESTINATION is where null goes, for every door."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", "sink")
        ee.record(EVENT)
        ee.get_logger().record(EVENT)
        ee.configure()
        structlog.get_logger().record(EVENT)
        ee.get_logging_handler().info(EVENT)
        ee.record_rdzv_event(EVENT)

        assert [0, 1, 2, 3, 4] == [each["seq"] for each in sink.said]

    def test_bad_environment(self, monkeypatch, capsys):
        """A wrong name in the environment is said once and stops nothing."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", "fiel")
        for _ in range(3):
            ee.record(EVENT)
        ee.get_logger().record(EVENT)

        assert (
            "elastic_events: ELASTIC_EVENTS_DESTINATION: unknown destination"
            " 'fiel': expected one of null, console, stdout, file:PATH,"
            " otlp:URL, queue:DESTINATION, dynamic_rendezvous; nothing is"
            " recorded\n"
        ) == capsys.readouterr().err


def test_surrounding_frames(sink):
    """A value whose text logs through the same logger does no harm."""
    log = ee.get_logger("sink")

    class Talking:
        def __str__(self):
            log.info("inner")
            return "talking"

    log.info("outer", value=Talking())

    assert [("inner", None), ("outer", {"value": "talking"})] == [
        (each["message"], each.get("metadata")) for each in sink.said
    ]
    assert sys.exc_info() == (None, None, None)
