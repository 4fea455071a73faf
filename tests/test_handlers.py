import io
import json
import logging
import logging.config
import logging.handlers
import queue
from types import MappingProxyType

import numpy as np
import pytest
import structlog

import elastic_events as ee


EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"a": 1})


@pytest.fixture(name="logger")
def _logger(sink):
    """
    A stdlib logger whose records go to the destination "sink".
    """
    logger = logging.getLogger("plain")
    logger.handlers = [ee.EventHandler("sink")]
    logger.setLevel(1)
    logger.propagate = False
    yield logger
    logger.handlers = []


class TestRecords:
    def test_line(self, logger, sink, here):
        """A record gives a line of kind log, extra= in metadata."""
        logger.info("hello %s", "you", extra={"step": 1})
        said = sink.one

        assert {
            "timestamp": said["timestamp"],
            "time": said["time"],
            "level": "info",
            "kind": "log",
            "message": "hello you",
            "source": "AGENT",
            **here,
            "seq": 0,
            "logger": "plain",
            "metadata": {"step": 1},
        } == said

    @pytest.mark.parametrize(
        ("number", "level", "odd"),
        [
            (7, "debug", "Level 7"),
            (10, "debug", None),
            (20, "info", None),
            (25, "info", "NOTICE"),
            (30, "warning", None),
            (40, "error", None),
            (50, "critical", None),
            (60, "critical", "Level 60"),
        ],
    )
    def test_level(self, logger, sink, number, level, odd):
        """A level is rounded down to a standard one; the odd name is kept."""
        logging.addLevelName(25, "NOTICE")
        logger.log(number, "m")

        assert level == sink.one["level"]
        assert odd == sink.one.get("metadata", {}).get("level_name")

    @pytest.mark.parametrize(
        ("args", "text"),
        [
            (("50%",), "50%"),
            (("a%2Cb%21",), "a%2Cb%21"),
            (("%(a)s", {"a": 1}), "1"),
            (("x %s", {}), "x {}"),
            (("%(a)s", MappingProxyType({"a": 1})), "1"),
            ((None,), "None"),
            ((7,), "7"),
            ((ValueError("boom"),), "boom"),
            (("a\nb\r\nc\u2028d",), "a\nb\r\nc\u2028d"),
            (("\udcff",), "\\udcff"),
            ((b"x\xff",), "b'x\\xff'"),
            (([1, 2],), "[1, 2]"),
            (("",), ""),
        ],
    )
    def test_message(self, logger, sink, args, text):
        """The message is text, whatever was given."""
        logger.info(*args)

        assert text == sink.one["message"]

    @pytest.mark.parametrize(
        ("args", "error"),
        [
            (("%s %s", 1), "not enough arguments for format string"),
            (("hi", "x"), "not all arguments converted during string"),
            (("%d", "x"), "%d format: a real number is required, not str"),
        ],
    )
    def test_wrong_arguments(self, logger, sink, args, error):
        """Arguments that do not fit are kept beside the message."""
        logger.info(*args)
        said = sink.one["metadata"]

        assert args[0] == sink.one["message"]
        assert list(args[1:]) == said["args"]
        assert said["formatting_error"].startswith(f"TypeError: {error}")

    def test_names_of_record_attributes(self, sink):
        """Metadata may have the names that logging keeps for itself."""
        names = dict.fromkeys(logging.makeLogRecord({}).__dict__, "x")
        event = ee.Event("50% %s", ee.EventSource.AGENT, metadata=names)
        ee.record(event, "sink")
        ee.get_logging_handler("sink").info(event)

        assert [("50% %s", names)] * 2 == [
            (each["message"], each["metadata"]) for each in sink.said
        ]

    @pytest.mark.parametrize(
        ("exc_info", "end"),
        [
            (True, None),
            (1, None),
            (False, None),
            ((None, None, None), None),
            ((ValueError, None, None), None),
            (ValueError("v"), "ValueError: v"),
            ((KeyError, KeyError("k"), None), "KeyError: 'k'"),
        ],
    )
    def test_exc_info(self, logger, sink, exc_info, end):
        """There is a traceback if there is an exception, and only then."""
        logger.error("m", exc_info=exc_info)

        assert end == sink.one.get("error_trace")

    def test_mapping(self, logger, sink):
        """A mapping as a message overwrites nothing and is kept."""
        logger.info({"level": "evil", "event": "evil"})

        assert "info" == sink.one["level"]
        assert {"message": {"level": "evil", "event": "evil"}} == (
            sink.one["metadata"]
        )

    def test_exception(self, logger, sink):
        """A traceback is one string, and the stack a field."""
        try:
            raise ValueError("boom")
        except ValueError:
            logger.exception("failed", stack_info=True)

        assert sink.one["error_trace"].endswith("ValueError: boom")
        assert sink.one["metadata"]["stack_info"].startswith("Stack (most")

    @pytest.mark.parametrize("order", [1, -1])
    def test_record_unchanged(self, logger, sink, order):
        """Other handlers find the record as it was."""
        stream = io.StringIO()
        seen = []
        watch = logging.Handler()
        watch.emit = lambda record: seen.append(dict(record.__dict__))
        logger.handlers = [
            watch,
            *[*logger.handlers, logging.StreamHandler(stream)][::order],
        ]
        last = logging.Handler()
        last.emit = lambda record: seen.append(dict(record.__dict__))
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logger.exception("m %s", 1)
        logger.handlers.append(last)

        assert stream.getvalue().startswith("m 1\nTraceback")
        assert "m 1" == sink.one["message"]

    def test_nothing_added(self, logger, sink):
        """The handler changes no attribute of the record."""
        record = logger.makeRecord(
            "plain", 20, "f.py", 1, "m %s", (1,), None, extra={"a": [1]}
        )
        before = dict(record.__dict__)
        logger.handle(record)

        assert before == record.__dict__
        assert "m 1" == sink.one["message"]

    def test_own_time(self, logger, sink):
        """The line has the time at which the record was made."""
        for created in (1.5e9, 1_709_210_096.789):
            record = logging.makeLogRecord({"msg": "m", "created": created})
            logger.handlers[0].handle(record)

        assert [1_500_000_000_000, 1_709_210_096_789] == [
            each["timestamp"] for each in sink.said
        ]

    def test_context(self, logger, sink):
        """Context variables are on the lines of plain logging too."""
        structlog.contextvars.bind_contextvars(run_id="job-1", level="evil")
        logger.info("m")

        assert ("job-1", "evil", "info") == (
            sink.one["run_id"],
            sink.one["level_"],
            sink.one["level"],
        )

    def test_owned_extra(self, logger, sink):
        """extra= named like a key of the line stays in metadata."""
        forged = {"level": 1, "timestamp": 2, "_record": 3, "event": 4}
        logger.info("m", extra=forged)

        assert forged == sink.one["metadata"]
        assert "level_" not in sink.one

    def test_filter(self, logger, sink):
        """The handler's filters are heeded."""
        logger.handlers[0].addFilter(lambda record: record.msg != "no")
        logger.info("no")
        logger.info("yes")

        assert "yes" == sink.one["message"]

    def test_raising_filter(self, logger, sink, capfd):
        """A filter that raises is said, and loses no record."""
        logger.handlers[0].addFilter(lambda _: 1 / 0)
        logger.info("m")

        assert "m" == sink.one["message"]
        assert "a filter raised ZeroDivisionError" in capfd.readouterr().err

    def test_odd_arguments(self, sink):
        """Arguments that cannot be tested for truth give a line."""
        odd = np.array([1, 2])
        handler = ee.get_logging_handler("sink")
        handler.info(EVENT, exc_info=odd)
        handler.info("m", exc_info=odd, stack_info=odd)
        ee.get_logger("sink", level="error").info(EVENT, stack_info=odd)
        record = logging.makeLogRecord({})
        del record.msg
        handler.handle(record)

        assert 4 == len(sink.said)

    def test_structlog_wrapped(self, sink):
        """What structlog wraps for its formatter keeps its keys."""
        logger = logging.getLogger("wrapped")
        logger.handlers = [ee.EventHandler("sink")]
        logger.setLevel(1)
        structlog.configure(
            processors=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
        )
        structlog.get_logger("wrapped").bind(run_id="r").error("m", step=1)
        said = sink.one

        assert ("m", "error", "wrapped", "r", 1) == (
            said["message"],
            said["level"],
            said["logger"],
            said["run_id"],
            said["step"],
        )
        assert not {"level_", "logger_", "event"} & set(said)


class TestEventsAsMessages:
    def test_extra(self, logger, sink):
        """extra= given along with an event is bound: metadata stays."""
        logger.info(EVENT, extra={"step": 1})

        assert ({"a": 1}, 1) == (sink.one["metadata"], sink.one["step"])

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("torchelastic-events-x", "event"),
            ("elastic_events.x", "event"),
            ("plain", "log"),
            ("elastic_events", "log"),
        ],
    )
    def test_json(self, logger, sink, name, kind):
        """JSON is unpacked on torch's event loggers, elsewhere it is text."""
        record = logger.makeRecord(
            name, 20, "f.py", 1, EVENT.serialize(), (), None
        )
        logger.handlers[0].handle(record)

        assert kind == sink.one["kind"]

    def test_other_json(self, logger, sink):
        """Text on torch's loggers that is no event's JSON is a message."""
        for text in ("{", "{}", '{"name": 1}', "[1]", "text"):
            record = logger.makeRecord(
                "torchelastic-events-x", 20, "f.py", 1, text, (), None
            )
            logger.handlers[0].handle(record)

        assert ["{", "{}", '{"name": 1}', "[1]", "text"] == [
            each["message"] for each in sink.said
        ]

    def test_wide_numbers(self, logger, sink):
        """Numbers that only json can read are kept."""
        event = ee.Event("n", ee.EventSource.AGENT, metadata={"a": 2**70})
        record = logger.makeRecord(
            "torchelastic-events-x", 20, "f.py", 1, event.serialize(), (), None
        )
        logger.handlers[0].handle(record)

        assert {"a": str(2**70)} == sink.one["metadata"]

    def test_behind_a_queue(self, logger, sink):
        """Behind a plain QueueHandler an event arrives as its text."""
        waiting = queue.Queue()
        sender = logging.getLogger("sender")
        sender.handlers = [logging.handlers.QueueHandler(waiting)]
        sender.setLevel(1)
        sender.info(EVENT)
        logger.handlers[0].handle(waiting.get_nowait())

        assert ("log", EVENT.serialize()) == (
            sink.one["kind"],
            sink.one["message"],
        )


class TestLevelMethods:
    @pytest.mark.parametrize(
        ("method", "level"),
        [
            ("debug", "debug"),
            ("info", "info"),
            ("warning", "warning"),
            ("error", "error"),
            ("exception", "error"),
            ("critical", "critical"),
        ],
    )
    def test_messages(self, sink, method, level):
        """The handler has the methods of a logger, for messages."""
        handler = ee.get_logging_handler("sink")
        getattr(handler, method)("m %s", 1, step=2)

        assert (level, "m 1", {"step": 2}, "elastic_events") == (
            sink.one["level"],
            sink.one["message"],
            sink.one["metadata"],
            sink.one["logger"],
        )

    def test_level(self, sink):
        """Messages below the handler's level are left out, events are not."""
        handler = ee.EventHandler("sink", level=logging.ERROR)
        handler.info("m")
        handler.info(EVENT)

        assert "event" == sink.one["kind"]


class TestHandler:
    def test_same_one(self, sink):
        """A destination has one handler, until its name means another."""
        handler = ee.get_logging_handler("sink")

        assert handler is ee.get_logging_handler("sink")

        ee.register_destination("sink", lambda _: None)

        assert handler is not ee.get_logging_handler("sink")

    def test_real_handler(self, sink):
        """It is a logging.Handler; the one to nowhere is a NullHandler."""
        assert isinstance(ee.get_logging_handler("sink"), logging.Handler)
        assert not isinstance(
            ee.get_logging_handler("sink"), logging.NullHandler
        )
        assert isinstance(ee.get_logging_handler(), logging.NullHandler)
        assert isinstance(
            ee.get_logging_handler("dynamic_rendezvous"), logging.NullHandler
        )

    def test_null(self, capfd):
        """The handler to nowhere takes everything and writes nothing."""
        handler = ee.get_logging_handler()
        handler.info(EVENT)
        handler.info("m")
        handler.handle(logging.makeLogRecord({"msg": "m"}))
        ee.EventHandler().handle(logging.makeLogRecord({"msg": "m"}))

        assert ("", "") == tuple(capfd.readouterr())

    def test_dict_config(self, tmp_path, validate):
        """It is configured like any handler, by class and destination."""
        file = tmp_path / "log.jsonl"
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {
                    "events": {
                        "class": "elastic_events.EventHandler",
                        "destination": f"file:{file}",
                        "level": "WARNING",
                    }
                },
                "root": {"handlers": ["events"], "level": "DEBUG"},
            }
        )
        logging.getLogger("x").info("low")
        logging.getLogger("x").warning("high")
        (line,) = file.read_bytes().splitlines(keepends=True)

        assert "high" == validate(line)["message"]

    def test_formatter(self, sink):
        """A formatter that would not write lines is refused."""
        handler = ee.EventHandler("sink")
        handler.setFormatter(None)
        handler.setFormatter(ee.EventFormatter())
        with pytest.raises(TypeError, match="takes no Formatter"):
            handler.setFormatter(logging.Formatter())

    def test_dict_config_twice(self, tmp_path, validate):
        """Configured again, and through a queue, each record is one line."""
        file = tmp_path / "log.jsonl"
        for _ in range(2):
            logging.config.dictConfig(
                {
                    "version": 1,
                    "disable_existing_loggers": False,
                    "handlers": {
                        "events": {
                            "class": "elastic_events.EventHandler",
                            "destination": f"file:{file}",
                        }
                    },
                    "root": {"handlers": ["events"], "level": "DEBUG"},
                }
            )
            logging.getLogger().info("m")
        waiting = queue.SimpleQueue()
        sender = logging.getLogger("sender")
        sender.handlers = [logging.handlers.QueueHandler(waiting)]
        sender.setLevel(1)
        sender.propagate = False
        listener = logging.handlers.QueueListener(
            waiting, *logging.getLogger().handlers
        )
        listener.start()
        try:
            raise ValueError("boom")
        except ValueError:
            sender.exception("m %s", 1, extra={"a": 1})
        listener.stop()
        raw = file.read_bytes().splitlines(keepends=True)

        assert [0, 1, 2] == [validate(line)["seq"] for line in raw]
        assert {"a": 1} == validate(raw[2])["metadata"]
        assert validate(raw[2])["message"].startswith("m 1")

    def test_basic_config(self, sink):
        """basicConfig leaves the handler's formatter alone."""
        logging.basicConfig(
            handlers=[ee.EventHandler("sink")], force=True, level=1
        )
        logging.getLogger().info("m")

        assert ("m", "root") == (sink.one["message"], sink.one["logger"])

    def test_after_shutdown(self, tmp_path):
        """Records after logging.shutdown() are written all the same."""
        file = tmp_path / "log.jsonl"
        handler = ee.get_logging_handler(f"file:{file}")
        handler.info("before")
        handler.flush()
        handler.close()
        handler.info("after")

        assert 2 == len(file.read_bytes().splitlines())


class TestEventFormatter:
    def test_with_another_handler(self, validate):
        """The formatter gives any handler the package's lines."""
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(ee.EventFormatter())
        logger = logging.getLogger("formatted")
        logger.handlers = [handler]
        logger.setLevel(1)
        logger.info("m")
        logger.info(EVENT)
        first, second = stream.getvalue().encode().splitlines(keepends=True)

        assert ("m", 0) == (validate(first)["message"], validate(first)["seq"])
        assert ("n", 1) == (validate(second)["name"], validate(second)["seq"])

    @pytest.mark.parametrize(
        "given", [{"format": "ecs"}, {"fmt": "gcp"}, {"processors": "otel"}]
    )
    def test_named_format(self, given):
        """A format of lines is refused, and where it can be had is said."""
        (name,) = given.values()
        with pytest.raises(ValueError, match="writes our own") as caught:
            ee.EventFormatter(**given)

        assert (
            f"an EventFormatter writes our own lines, and takes no format"
            f" {name!r}: name it in the destination of a handler, such as"
            f" EventHandler('file:log.jsonl?format={name}')"
        ) == str(caught.value)

    @pytest.mark.parametrize("text", ["%(message)s", "{message}", "plain", ""])
    def test_format_of_logging(self, text):
        """A format of logging has no effect."""
        record = logging.makeLogRecord({"msg": "m"})
        line = ee.EventFormatter(format=text).format(record)

        assert "m" == json.loads(line)["message"]

    def test_is_structlogs(self):
        """It is a ProcessorFormatter of structlog."""
        assert isinstance(
            ee.EventFormatter(), structlog.stdlib.ProcessorFormatter
        )

    def test_dict_config(self):
        """It is configured like any formatter, by class."""
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "formatters": {
                    "events": {"()": "elastic_events.EventFormatter"}
                },
                "handlers": {
                    "memory": {
                        "class": "logging.StreamHandler",
                        "formatter": "events",
                        "stream": (stream := io.StringIO()),
                    }
                },
                "root": {"handlers": ["memory"], "level": "DEBUG"},
            }
        )
        logging.getLogger("x").warning("m")

        assert "m" == json.loads(stream.getvalue())["message"]


class TestRecordsMadeByHand:
    @pytest.mark.parametrize(
        "attributes",
        [
            {"created": None},
            {"created": float("nan")},
            {"created": 1e300},
            {"created": "x"},
            {"levelno": "INFO"},
            {"levelno": None},
            {"levelno": []},
            {"name": 5},
            {"name": None, "msg": "{"},
            {"args": 7},
            {"exc_info": (1, 2)},
            {"exc_info": "yes"},
            {},
            {"args": None},
            {"levelname": None, "levelno": 7},
            {"msg": None},
            {"msg": {"event": "m"}, "_logger": 1},
        ],
    )
    def test_odd_attributes(self, sink, attributes):
        """A record with attributes of any type gives a line."""
        record = logging.makeLogRecord({"msg": "m"} | attributes)
        ee.get_logging_handler("sink").handle(record)

        assert "log" == sink.one["kind"]
        assert {"recorded": 1, "written": 1}.items() <= (
            ee.health()["sink"].items()
        )

    def test_text_of_a_traceback(self, sink):
        """A record from another process has its traceback as text."""
        record = logging.makeLogRecord({"msg": "m", "exc_text": "Traceback x"})
        ee.get_logging_handler("sink").handle(record)

        assert "Traceback x" == sink.one["error_trace"]

    def test_wrapped_by_structlog(self, sink):
        """What structlog wraps keeps context variables and extra=."""
        structlog.contextvars.bind_contextvars(team="x")
        record = logging.makeLogRecord(
            {"msg": {"event": "m"}, "_logger": 1, "_name": "info", "keep": 2}
        )
        ee.get_logging_handler("sink").handle(record)

        assert ("m", "x", {"keep": 2}) == (
            sink.one["message"],
            sink.one["team"],
            sink.one["metadata"],
        )


class TestSetFormatter:
    def test_processors_join(self, sink):
        """A formatter's processors join; the numbers stay the outlet's."""

        def mark(_, __, line):
            return {**line, "marked": True}

        handler = ee.EventHandler("sink")
        handler.setFormatter(ee.EventFormatter(processors=[mark]))
        handler.handle(logging.makeLogRecord({"msg": "m"}))
        ee.record(EVENT, "sink")

        assert [(0, True), (1, None)] == [
            (each["seq"], each.get("marked")) for each in sink.said
        ]

    def test_handler_as_target(self, sink):
        """A handler of ours, registered, stands for its destination."""
        ee.register_destination("mine", ee.EventHandler("sink"))
        ee.record(EVENT, "mine")

        assert "event" == sink.one["kind"]


def test_exception_with_an_event(sink):
    """An event logged as an exception keeps the traceback beside it."""
    handler = ee.get_logging_handler("sink")
    try:
        raise ValueError("boom")
    except ValueError:
        handler.exception(EVENT)

    assert sink.one["exception"].endswith("ValueError: boom")
    assert "exc_info" not in sink.one
