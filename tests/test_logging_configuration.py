import concurrent.futures
import copy
import io
import json
import logging
import logging.config
import logging.handlers
import os
import pickle
import queue
import re
import socket
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import structlog
from hypothesis import given, strategies as st
from required import import_required
from saying import EVENT, SAID, log_saying, stable

import elastic_events as ee
from elastic_events.processors import (
    Guarded,
    add_time,
    as_bytes,
    as_logging_call,
    as_text,
    draft_line,
    line_renderer,
    redact,
    sequence_adder,
)


ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "logging.md").read_text()
TESTING_PAGE = (ROOT / "docs" / "testing.md").read_text()


@pytest.fixture(name="file")
def _file(tmp_path):
    return tmp_path / "log.jsonl"


@pytest.fixture(name="read")
def _read(file, validate):
    """
    The lines of a file, each validated, numbered without a gap.
    """

    def read(path=file):
        raw = path.read_bytes().splitlines(keepends=True)
        lines = [validate(line) for line in raw]
        assert [*range(len(lines))] == [line["seq"] for line in lines]
        return [stable(line) for line in lines]

    return read


@pytest.fixture(autouse=True)
def _loggers():
    """
    Leave no logger with what a test gave it.
    """
    yield
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.handlers = []
            logger.propagate = True
            logger.disabled = False
            logger.setLevel(logging.NOTSET)


def configuration(file, **more):
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {
            "events": {
                "class": "elastic_events.EventHandler",
                "destination": f"file:{file}",
                **more,
            }
        },
        "root": {"handlers": ["events"], "level": "DEBUG"},
    }


def mark(_, __, line):
    return {**line, "marked": True}


def marker(*, value):
    def mark_so(_, __, line):
        return {**line, "marked": value}

    return mark_so


class TestDictConfig:
    def test_class(self, file, read):
        """The handler is configured by class and destination."""
        logging.config.dictConfig(configuration(file, level="INFO"))
        logging.getLogger("x").debug("low")
        logging.getLogger("x").info("m %s", 1, extra={"a": 1})
        logging.getLogger("x").info(EVENT)

        assert [log_saying("m 1", "x", metadata={"a": 1}), SAID] == read()

    def test_factory(self, file, read):
        """So it is by a factory."""
        config = configuration(file)
        handler = config["handlers"]["events"]
        handler["()"] = handler.pop("class")
        logging.config.dictConfig(config)
        logging.getLogger("x").info("m")

        assert [log_saying("m", "x")] == read()

    @pytest.mark.parametrize("language", ["json", "yaml"])
    def test_file(self, tmp_path, file, read, language):
        """A configuration that stands in a file is one."""
        config = configuration(file)
        path = tmp_path / "logging.cfg"
        if language == "json":
            path.write_text(json.dumps(config))
            logging.config.dictConfig(json.loads(path.read_text()))
        else:
            yaml = pytest.importorskip("yaml")
            path.write_text(yaml.safe_dump(config))
            logging.config.dictConfig(yaml.safe_load(path.read_text()))
        logging.getLogger("x").info("m")

        assert [log_saying("m", "x")] == read()

    @pytest.mark.parametrize(
        ("given", "value"),
        [
            ("ext://test_logging_configuration.mark", True),
            ({"()": "test_logging_configuration.marker", "value": 7}, 7),
            ({"()": marker, "value": [1]}, [1]),
            ("cfg://ours", True),
            (mark, True),
        ],
    )
    @pytest.mark.parametrize("place", ["handler", "formatter"])
    def test_processors(self, file, read, given, value, place):
        """Processors are objects, names of them, or how to make them."""
        config = {**configuration(file), "ours": mark}
        if place == "handler":
            config["handlers"]["events"]["processors"] = [given]
        else:
            config["handlers"]["events"]["formatter"] = "line"
            config["formatters"] = {
                "line": {
                    "()": "elastic_events.EventFormatter",
                    "processors": [given],
                }
            }
        before = copy.deepcopy(config)
        logging.config.dictConfig(config)
        logging.getLogger("x").info("m")

        assert [log_saying("m", "x", marked=value)] == read()
        assert before == config

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"format": "%(message)s", "datefmt": "%H"},
            {"format": "{message}", "style": "{"},
            {"format": "{message}", "style": "{", "validate": False},
            {"validate": True},
            {"format": "%(a)s", "defaults": {"a": 1}},
        ],
    )
    @pytest.mark.parametrize("form", ["class", "()"])
    def test_formatter(self, file, read, arguments, form):
        """The formatter is configured by class, or by a factory."""
        config = configuration(file)
        config["formatters"] = {
            "line": {form: "elastic_events.EventFormatter", **arguments}
        }
        config["handlers"]["events"] = {
            "class": "logging.FileHandler",
            "filename": file,
            "encoding": "utf-8",
            "formatter": "line",
        }
        logging.config.dictConfig(config)
        logging.getLogger("x").info("m")
        logging.shutdown()

        assert [log_saying("m", "x")] == read()

    @pytest.mark.parametrize(
        ("arguments", "more"),
        [
            # Python 3.10 and 3.11 never give defaults; 3.12 and 3.13 do.
            ((None, None, "%"), {}),
            (("%(message)s", "%H", "%", False), {}),
            (("{message}", None, "{", True), {"defaults": {"a": 1}}),
            ((), {"fmt": "%(message)s", "datefmt": "%H", "style": "%"}),
            (([mark],), {}),
            ((), {"processors": [mark]}),
        ],
    )
    def test_formatter_arguments(self, validate, arguments, more):
        """The formatter takes what any Python's logging.config gives."""
        formatter = ee.EventFormatter(*arguments, **more)
        record = logging.makeLogRecord({"msg": "m", "levelno": 20})
        said = validate((formatter.format(record) + "\n").encode())

        assert "m" == said["message"]
        assert ("marked" in said) == (mark in formatter.further_processors)

    @pytest.mark.parametrize(
        ("more", "error"),
        [
            (
                {"destination": "fle:x"},
                "unknown destination 'fle:x': expected",
            ),
            (
                {"destination": "file:x?chek=1"},
                "malformed destination 'file:x?chek=1': 'chek=1' is no option",
            ),
            ({"destination": 7}, "a destination is named by a string"),
            ({"level": "LOUD"}, "Unknown level: 'LOUD'"),
            (
                {"processors": ["test_logging_configuration.mark"]},
                "a processor must be callable, not"
                " 'test_logging_configuration.mark': in a logging"
                " configuration write 'ext://package.name'",
            ),
            (
                {"processors": "ext://test_logging_configuration.mark"},
                "processors must be a list",
            ),
            ({"formatter": "text"}, "writes lines of JSON and takes no"),
            ({"destinaton": "console"}, "argument 'destinaton'"),
        ],
    )
    def test_errors(self, file, more, error):
        """A wrong configuration is one ValueError that names the cure."""
        config = configuration(file, **more)
        config["formatters"] = {"text": {"format": "%(message)s"}}
        with pytest.raises(ValueError, match="handler 'events'") as caught:
            logging.config.dictConfig(config)

        assert error in str(caught.value.__cause__)

    def test_formatter_error(self):
        """A formatter's wrong processors are an error too."""
        for wrong in (["ext"], [{"a": 1}], mark):
            with pytest.raises(TypeError, match="must be"):
                ee.EventFormatter(wrong)

    def test_incremental(self, file, read):
        """Levels can be changed later, by the handler's name."""
        logging.config.dictConfig(configuration(file))
        log = logging.getLogger("x")
        log.info("1")
        logging.config.dictConfig(
            {
                "version": 1,
                "incremental": True,
                "handlers": {"events": {"level": "ERROR"}},
            }
        )
        log.info("2")
        log.error("3")

        assert ["1", "3"] == [line["message"] for line in read()]

    def test_existing_loggers(self, file, read):
        """What logging silences is silent, but for record and our loggers."""
        ours = ee._get_or_create_logger(f"file:{file}")
        log = ee.get_logger(f"file:{file}", name="bound")
        config = {**configuration(file), "disable_existing_loggers": True}
        logging.config.dictConfig(config)
        ours.info("silent")
        log.info("bound")
        ee.record(EVENT, f"file:{file}")
        logging.getLogger("new").info("new")

        assert [
            log_saying("bound", "bound"),
            SAID,
            log_saying("new", "new"),
        ] == read()

    def test_again(self, file, read):
        """Configured again, the numbers go on."""
        for n in range(3):
            logging.config.dictConfig(configuration(file))
            logging.getLogger("x").info(str(n))

        assert ["0", "1", "2"] == [line["message"] for line in read()]

    def test_behind_a_queue(self, file, read):
        """Behind a plain queue logs stay logs, and events become text."""
        waiting = queue.Queue()
        logging.config.dictConfig(configuration(file))
        (handler,) = logging.getLogger().handlers
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {
                    "queue": {
                        "()": "logging.handlers.QueueHandler",
                        "queue": waiting,
                    }
                },
                "root": {"handlers": ["queue"], "level": "DEBUG"},
            }
        )
        listener = logging.handlers.QueueListener(waiting, handler)
        listener.start()
        say_behind_a_queue()
        listener.stop()

        assert BEHIND_A_QUEUE == read()

    @pytest.mark.skipif(
        sys.version_info < (3, 12), reason="dictConfig knows no listener"
    )
    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"respect_handler_level": True},
            {"queue": {"()": "queue.Queue", "maxsize": 10}},
            {"queue": "queue.SimpleQueue"},
            {"listener": "logging.handlers.QueueListener"},
        ],
    )
    def test_queue_of_dict_config(self, file, read, more):
        """So it is behind a queue that dictConfig makes."""
        config = configuration(file)
        config["handlers"]["queue"] = {
            "class": "logging.handlers.QueueHandler",
            "handlers": ["events"],
            **more,
        }
        config["root"]["handlers"] = ["queue"]
        logging.config.dictConfig(config)
        listener = logging.getHandlerByName("queue").listener
        listener.start()
        say_behind_a_queue()
        listener.stop()

        assert BEHIND_A_QUEUE == read()

    def test_our_queue(self, file, read):
        """Behind a queue of ours an event stays one."""
        config = configuration(file)
        config["handlers"]["events"]["destination"] = f"queue:file:{file}"
        logging.config.dictConfig(config)
        logging.getLogger("x").info(EVENT)
        ee.flush()

        assert [SAID] == read()


def say_behind_a_queue():
    structlog.contextvars.bind_contextvars(user="u")
    logging.getLogger("x").info("m %s", 1, extra={"a": 1})
    logging.getLogger("x").info(EVENT)
    logging.getLogger("torchelastic-events-x").info(EVENT)


BEHIND_A_QUEUE = [
    log_saying("m 1", "x", metadata={"a": 1}),
    log_saying(EVENT.serialize(), "x"),
    SAID,
]


class TestFileConfig:
    @pytest.mark.parametrize("door", ["handler", "formatter"])
    def test_ini(self, tmp_path, file, read, door):
        """An ini file configures handler and formatter by class."""
        handler = {
            "handler": f"class=elastic_events.EventHandler\n"
            f"kwargs={{'destination': 'file:{file}'}}",
            "formatter": f"class=FileHandler\nargs=({str(file)!r}, 'a',"
            " 'utf-8')\nformatter=line",
        }
        path = tmp_path / "logging.ini"
        path.write_text(
            "[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\n"
            "keys=line\n[logger_root]\nlevel=DEBUG\nhandlers=h\n"
            "[formatter_line]\nclass=elastic_events.EventFormatter\n"
            f"format=%(message)s\n[handler_h]\n{handler[door]}\n"
        )
        logging.config.fileConfig(path, disable_existing_loggers=False)
        logging.getLogger("x").info("m")
        logging.shutdown()

        assert [log_saying("m", "x")] == read()


def run(folder, code, *arguments):
    """
    Run *code* in a process of its own; return what it wrote.
    """
    script = folder / "script.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments, script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout, done.stderr


UVICORN = """
import copy
import logging
import logging.config

from uvicorn.config import LOGGING_CONFIG

import elastic_events as ee


def serve():
    logging.getLogger("uvicorn.error").info(
        "Started server process [%d]", 7,
        extra={"color_message": "Started [%d]"},
    )
    logging.getLogger("uvicorn.access").info(
        '%s - "%s %s HTTP/%s" %d', "10.0.0.1:5", "GET", "/a%20b?x=%s", "1.1",
        200,
    )
    try:
        1 / 0
    except ZeroDivisionError:
        logging.getLogger("uvicorn.error").exception("in application")
    logging.getLogger("app").warning("mine")
    logging.getLogger("app").info(ee.Event("served", "WORKER"))


beside = copy.deepcopy(LOGGING_CONFIG)
beside["handlers"]["events"] = {
    "class": "elastic_events.EventHandler", "destination": "file:beside.jsonl"
}
beside["root"] = {"handlers": ["events"], "level": "INFO"}
for name in "uvicorn", "uvicorn.access":
    beside["loggers"][name]["handlers"].append("events")
logging.config.dictConfig(beside)
serve()

instead = copy.deepcopy(LOGGING_CONFIG)
for name in "default", "access":
    instead["handlers"][name] = {
        "class": "elastic_events.EventHandler",
        "destination": "file:instead.jsonl",
    }
instead["root"] = {"handlers": ["default"], "level": "INFO"}
logging.config.dictConfig(instead)
serve()
"""

TORCH = """
import logging
import sys

import elastic_events as ee

# As torch has it: one logger a destination, its handler, no propagation; and
# its own messages on loggers below the root.
logging.basicConfig(
    level="INFO", stream=sys.stderr, format="%(name)s: %(message)s"
)
logging.getLogger().addHandler(ee.EventHandler("file:root.jsonl"))
loggers = {}


def torchs_logger(destination):
    name = f"torchelastic-events-{destination}"
    if name not in loggers:
        loggers[name] = logging.getLogger(name)
        loggers[name].setLevel("DEBUG")
        loggers[name].propagate = False
        loggers[name].addHandler(ee.get_logging_handler(destination))
    return loggers[name]


event = ee.Event("n", ee.EventSource.WORKER, metadata={"a": 1})
for _ in range(2):
    torchs_logger("file:events.jsonl").info(event.serialize())
    ee.record(event, "file:events.jsonl")
    ee._get_or_create_logger("file:events.jsonl").info(event)
torchs_logger("null").info(event.serialize())
logging.getLogger("torch.distributed.elastic.agent").warning("m %s", 1)
"""

PYTEST = """
import logging

import elastic_events as ee

EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"a": 1})
handler = ee.EventHandler("file:events.jsonl")


def setup_module():
    logging.getLogger().addHandler(handler)


def teardown_module():
    logging.getLogger().removeHandler(handler)


def test_it(caplog):
    caplog.set_level("INFO")
    logging.getLogger("x").info(EVENT)
    logging.getLogger("x").warning("m %s", 1)
    assert [EVENT.serialize(), "m 1"] == caplog.messages
    assert EVENT is caplog.records[0].msg
"""


class TestSideBySide:
    def test_uvicorn(self, tmp_path, read):
        """A web server's loggers, beside its own handlers and instead."""
        import_required("uvicorn", "test")
        out, err = run(tmp_path, UVICORN)
        lines = [
            log_saying(
                "Started server process [7]",
                "uvicorn.error",
                metadata={"color_message": "Started [%d]"},
            ),
            log_saying(
                '10.0.0.1:5 - "GET /a%20b?x=%s HTTP/1.1" 200',
                "uvicorn.access",
            ),
            log_saying(
                "in application",
                "uvicorn.error",
                "error",
                error_trace="Traceback (most recent call last):\n ...",
            ),
            log_saying("mine", "app", "warning"),
            {
                **SAID,
                "name": "served",
                "message": "served",
                "metadata": {},
            },
        ]

        def without_paths(said):
            for line in said:
                if "error_trace" in line:
                    assert line["error_trace"].endswith("division by zero")
                    line["error_trace"] = line["error_trace"][:34] + "\n ..."
            return said

        assert lines == without_paths(read(tmp_path / "beside.jsonl"))
        assert lines == without_paths(read(tmp_path / "instead.jsonl"))
        assert 'INFO: 10.0.0.1:5 - "GET /a%20b?x=%s HTTP/1.1" 200 OK' == (
            " ".join(out.split())
        )
        assert [
            "INFO:     Started server process [7]",
            "ERROR:    in application",
            "Traceback (most recent call last):",
        ] == err.splitlines()[:3]
        assert err.endswith("ZeroDivisionError: division by zero\n")
        assert 1 == err.count("Traceback")

    def test_torch(self, tmp_path, read):
        """torch's event loggers and its messages, each line once."""
        out, err = run(tmp_path, TORCH)

        assert [SAID] * 6 == read(tmp_path / "events.jsonl")
        assert [
            log_saying("m 1", "torch.distributed.elastic.agent", "warning")
        ] == read(tmp_path / "root.jsonl")
        assert ("", "torch.distributed.elastic.agent: m 1\n") == (out, err)

    @pytest.mark.parametrize(
        "arguments", [(), ("-s",), ("--log-cli-level=1",)]
    )
    def test_pytest(self, tmp_path, read, arguments):
        """Under pytest with its own handlers each line is there once."""
        run(
            tmp_path,
            PYTEST,
            *("-m", "pytest", "-p", "no:cacheprovider", *arguments),
        )

        assert [SAID, log_saying("m 1", "x", "warning")] == read(
            tmp_path / "events.jsonl"
        )


MESSAGES = ["m", "\u00e4\u2028\u2029\x85", "a\nb\r\n", "x" * 70_000, "%s", ""]


@pytest.fixture(name="plain")
def _plain():
    """
    A stdlib logger, to be given a handler that has our formatter.
    """
    logger = logging.getLogger("plain")
    logger.propagate = False
    logger.setLevel(1)

    def give(handler, formatter=None):
        handler.setFormatter(formatter or ee.EventFormatter())
        logger.addHandler(handler)
        return logger

    yield give
    for handler in logger.handlers:
        handler.close()


def say(logger):
    for message in MESSAGES:
        logger.info(message)
    logger.info(EVENT)
    logger.warning("failed", exc_info=KeyError("k"), extra={"a": 1})


WHOLE = [
    *(log_saying(each, "plain") for each in MESSAGES),
    SAID,
    log_saying(
        "failed",
        "plain",
        "warning",
        error_trace="KeyError: 'k'",
        metadata={"a": 1},
    ),
]


class TestStdlibHandlers:
    @pytest.mark.parametrize(
        "kind",
        [
            logging.FileHandler,
            logging.handlers.WatchedFileHandler,
            logging.handlers.TimedRotatingFileHandler,
            logging.handlers.RotatingFileHandler,
        ],
    )
    def test_files(self, file, read, plain, kind):
        """Lines in files are whole, valid, and there once."""
        say(plain(kind(file, encoding="utf-8")))

        assert WHOLE == read()

    def test_rotating(self, tmp_path, file, read, plain):
        """Rotation, which formats each record twice, leaves no gap."""
        log = plain(
            logging.handlers.RotatingFileHandler(
                file, maxBytes=500, backupCount=99, encoding="utf-8"
            )
        )
        for n in range(30):
            log.info(str(n))
        files = sorted(tmp_path.iterdir(), key=lambda each: each.stem)
        assert 5 < len(files)
        whole = tmp_path / "whole"
        names = [file] + [Path(f"{file}.{n}") for n in range(1, len(files))]
        whole.write_bytes(b"".join(each.read_bytes() for each in names[::-1]))

        assert [str(n) for n in range(30)] == [
            line["message"] for line in read(whole)
        ]

    def test_timed_rotating(self, tmp_path, file, read, plain):
        """Rotation by time leaves whole lines in both files."""
        handler = logging.handlers.TimedRotatingFileHandler(
            file, when="S", encoding="utf-8"
        )
        log = plain(handler)
        log.info("1")
        handler.doRollover()
        log.info("2")
        (old,) = (each for each in tmp_path.iterdir() if each != file)
        whole = tmp_path / "whole"
        whole.write_bytes(old.read_bytes() + file.read_bytes())

        assert ["1", "2"] == [line["message"] for line in read(whole)]

    def test_watched(self, tmp_path, file, read, plain):
        """A file that something else rotates is left for a new one."""
        log = plain(
            logging.handlers.WatchedFileHandler(file, encoding="utf-8")
        )
        log.info("1")
        old = file.rename(tmp_path / "old")
        log.info("2")
        whole = tmp_path / "whole"
        whole.write_bytes(old.read_bytes() + file.read_bytes())

        assert ["1", "2"] == [line["message"] for line in read(whole)]

    def test_memory(self, file, read, plain):
        """What waited in memory has the time at which it was recorded."""
        target = logging.FileHandler(file, encoding="utf-8")
        target.setFormatter(ee.EventFormatter())
        memory = logging.handlers.MemoryHandler(100, target=target)
        log = plain(memory)
        say(log)
        created = [int(each.created * 1000) for each in memory.buffer]
        memory.flush()
        target.close()

        assert WHOLE == read()
        assert all(
            abs(ms - json.loads(line)["timestamp"]) <= 1
            for ms, line in zip(
                created, file.read_bytes().splitlines(), strict=True
            )
        )

    def test_memory_before_ours(self, file, read, plain):
        """A handler of ours can be the target as well."""
        memory = logging.handlers.MemoryHandler(
            100, target=ee.EventHandler(f"file:{file}")
        )
        say(plain(memory))
        memory.flush()

        assert WHOLE == read()

    def test_syslog(self, tmp_path, file, read, plain):
        """Each datagram to a syslog socket is one line."""
        path = str(tmp_path / "s")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(path)
            server.settimeout(10)
            log = plain(logging.handlers.SysLogHandler(address=path))
            got = []
            # The queue of such a socket may hold but ten.
            for message in MESSAGES:
                log.info(message)
                got.append(server.recv(1 << 20))
            log.info(EVENT)
            got.append(server.recv(1 << 20))
        file.write_bytes(
            b"".join(
                each.removeprefix(b"<14>").removesuffix(b"\0") + b"\n"
                for each in got
            )
        )

        assert WHOLE[:-1] == read()

    def test_too_long_for_syslog(self, tmp_path, plain, capsys):
        """A datagram that is too long is lost, and its number tells it."""
        path = str(tmp_path / "s")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(path)
            server.settimeout(10)
            log = plain(logging.handlers.SysLogHandler(address=path))
            got = []
            for message in ("1", "x" * (1 << 24), "2"):
                log.info(message)
                if len(message) == 1:
                    got.append(server.recv(1 << 20))

        assert [("1", 0), ("2", 2)] == [
            (line["message"], line["seq"])
            for line in (json.loads(each[4:-1]) for each in got)
        ]
        assert "--- Logging error ---" in capsys.readouterr().err

    def test_socket(self, file, read, plain):
        """Pickled records give whole lines where they are received."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            handler = logging.handlers.SocketHandler(*server.getsockname())
            log = plain(handler, logging.Formatter())
            log.info("m %s", 1, extra={"a": 1})
            log.warning("failed", exc_info=KeyError("k"))
            connection, _ = server.accept()
            handler.close()
        ours = ee.EventHandler(f"file:{file}")
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                pickled = stream.read(*struct.unpack(">L", size))
                ours.handle(logging.makeLogRecord(pickle.loads(pickled)))

        assert [
            log_saying("m 1", "plain", metadata={"a": 1}),
            log_saying(
                "failed", "plain", "warning", error_trace="KeyError: 'k'"
            ),
        ] == read()

    def test_lines_over_a_socket(self, file, read, plain):
        """The handler of the documentation sends lines."""
        (code,) = (each for each in blocks("python") if "makePickle" in each)
        names = {}
        exec(code, names)
        with socket.create_server(("127.0.0.1", 0)) as server:
            handler = names["LineSocketHandler"](*server.getsockname())
            log = plain(handler)
            log.info("m")
            log.info(EVENT)
            log.warning("failed", exc_info=KeyError("k"), extra={"a": 1})
            connection, _ = server.accept()
            handler.close()
        with connection, connection.makefile("rb") as stream:
            file.write_bytes(stream.read())

        assert [WHOLE[0], *WHOLE[-2:]] == read()

    def test_two_handlers(self, tmp_path, read, plain):
        """Handlers that share a formatter, and all records, have no gaps."""
        formatter = ee.EventFormatter()
        files = [tmp_path / "1", tmp_path / "2"]
        for file in files:
            log = plain(logging.FileHandler(file, encoding="utf-8"), formatter)
        say(log)

        assert [WHOLE, WHOLE] == [read(file) for file in files]

    def test_changed_in_between(self):
        """A record that was changed is formatted as it is then."""
        formatter = ee.EventFormatter()
        record = logging.makeLogRecord({"msg": "secret"})
        first = json.loads(formatter.format(record))
        record.msg = "public"
        second = json.loads(formatter.format(record))
        other = logging.makeLogRecord({"msg": "third"})
        third = json.loads(formatter.format(other))

        assert [("secret", 0), ("public", 0), ("third", 1)] == [
            (line["message"], line["seq"]) for line in (first, second, third)
        ]

    def test_in_between(self):
        """A record has its number again, whatever was formatted since."""
        formatter = ee.EventFormatter()
        one, other = (logging.makeLogRecord({"msg": n}) for n in "12")
        numbers = [
            json.loads(formatter.format(record))["seq"]
            for record in (one, other, one, other, one)
        ]

        assert [0, 1, 0, 1, 0] == numbers

    def test_records_that_are_equal(self):
        """Another record has another number, even if it is equal."""

        class Equal(logging.LogRecord):
            def __eq__(self, other):
                return True

            __hash__ = None

        formatter = ee.EventFormatter()
        records = [Equal("x", 20, "f.py", 1, "m", (), None) for _ in range(3)]
        numbers = [
            json.loads(formatter.format(record))["seq"]
            for record in records * 2
        ]

        assert [0, 1, 2] * 2 == numbers

    def test_records_that_are_gone(self):
        """A record that took the place of another has its own number."""
        formatter = ee.EventFormatter()
        for n in range(100):
            record = logging.makeLogRecord({"msg": "m"})
            said = json.loads(formatter.format(record))
            del record

            assert n == said["seq"]
        assert not formatter._given._owners

    def test_threads(self, tmp_path, read, plain):
        """Handlers of many threads number each record once."""
        files = [tmp_path / "1", tmp_path / "2"]
        formatter = ee.EventFormatter()
        for file in files:
            log = plain(
                logging.handlers.RotatingFileHandler(
                    file, maxBytes=1 << 30, encoding="utf-8"
                ),
                formatter,
            )
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: log.info("m"), range(400)))

        for file in files:
            assert [*range(400)] == sorted(
                json.loads(line)["seq"]
                for line in file.read_bytes().splitlines()
            )

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_fork(self):
        """A forked process numbers anew also what it has from before."""
        formatter = ee.EventFormatter()
        record = logging.makeLogRecord({"msg": "m"})
        formatter.format(logging.makeLogRecord({"msg": "first"}))
        formatter.format(record)
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.write(theirs, formatter.format(record).encode())
            os._exit(0)
        os.waitpid(child, 0)
        said = json.loads(os.read(ours, 4096))
        os.close(ours)
        os.close(theirs)

        assert 0 == said["seq"]
        assert 1 == json.loads(formatter.format(record))["seq"]


SEQUENCE = sequence_adder()


def chain(*before, end=as_bytes, max_line=sys.maxsize):
    return [
        *before,
        draft_line,
        redact(),
        add_time,
        sequence_adder(),
        line_renderer(max_line),
        end,
    ]


@pytest.fixture(name="own")
def _own(validate):
    """
    Configure structlog with a chain of its own; return what it wrote.
    """
    stream = io.BytesIO()

    def own(*before, **more):
        structlog.configure(
            processors=chain(*before),
            logger_factory=structlog.BytesLoggerFactory(stream),
            **more,
        )
        return structlog.get_logger()

    def said():
        raw = stream.getvalue().splitlines(keepends=True)
        lines = [validate(line) for line in raw]
        assert [*range(len(lines))] == [line["seq"] for line in lines]
        return [stable(line) for line in lines]

    own.said = said
    return own


class TestOwnChain:
    def test_log(self, own):
        """structlog's own processors stand before ours."""
        log = own(
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.CallsiteParameterAdder(
                {structlog.processors.CallsiteParameter.FUNC_NAME}
            ),
            structlog.processors.add_log_level,
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        structlog.contextvars.bind_contextvars(run_id="job", user="u")
        log.bind(kind="evil", token="t").info("m %s", 1, step=2)

        assert [
            log_saying(
                "m 1",
                "root",
                run_id="job",
                kind_="evil",
                token="[redacted]",
                step=2,
                user="u",
                func_name="test_log",
            )
        ] == own.said()

    @pytest.mark.parametrize(
        ("method", "level"),
        [
            ("debug", "debug"),
            ("info", "info"),
            ("warning", "warning"),
            ("warn", "warning"),
            ("error", "error"),
            ("critical", "critical"),
            ("msg", "info"),
        ],
    )
    def test_levels(self, own, method, level):
        """The level is the method's."""
        getattr(own(), method)("m")

        assert [log_saying("m", "root", level)] == own.said()

    def test_events(self, own, sink, validate):
        """An event is the line that record gives."""
        log = own()
        step = ee.RdzvEvent("f.py:x", "job", "m", "h", 1, ee.NodeState.FAILED)
        for event in (EVENT, step):
            ee.get_logger("sink").bind(b=1).record(event)
            log.bind(b=1).info(event)

        assert [stable(line) for line in sink.said] == own.said()

    @pytest.mark.parametrize(
        "before", [(), (structlog.processors.format_exc_info,)]
    )
    def test_exception(self, own, before):
        """The traceback is where it is on every line."""
        log = own(*before)
        try:
            raise KeyError("k")
        except KeyError:
            log.exception("failed")
        (said,) = own.said()

        assert said.pop("error_trace").endswith("KeyError: 'k'")
        assert log_saying("failed", "root", "error") == said

    def test_exception_of_an_event(self, own):
        """Of an event's call it is beside the event."""
        log = own(structlog.processors.format_exc_info)
        log.info(EVENT, exc_info=KeyError("k"))

        assert [{**SAID, "exception": "KeyError: 'k'"}] == own.said()

    def test_stdlib(self, file, validate):
        """In structlog's formatter our steps give each logger's lines."""
        handler = logging.FileHandler(file, encoding="utf-8")
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[structlog.stdlib.add_logger_name],
                processors=chain(
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    end=as_text,
                ),
            )
        )
        logger = logging.getLogger("wrapped")
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel("INFO")
        structlog.configure(
            processors=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        structlog.get_logger("wrapped").warning("ours", step=1)
        logger.error("foreign %s", 1)
        for log in (structlog.get_logger("wrapped"), logger):
            try:
                raise KeyError("k")
            except KeyError:
                log.exception("failed")
        handler.close()
        raw = file.read_bytes().splitlines(keepends=True)
        *lines, one, other = [stable(validate(line)) for line in raw]

        for said in (one, other):
            assert said.pop("error_trace").endswith("KeyError: 'k'")
            assert log_saying("failed", "wrapped", "error") == said
        assert [
            log_saying("ours", "wrapped", "warning", step=1),
            log_saying("foreign 1", "wrapped", "error"),
        ] == lines

    @pytest.mark.parametrize("method", ["exception", "error", "critical"])
    @pytest.mark.parametrize(
        "wrapper",
        [
            structlog.stdlib.BoundLogger,
            structlog.make_filtering_bound_logger(logging.DEBUG),
        ],
    )
    def test_traceback(self, file, read, wrapper, method):
        """A logger of logging writes no traceback below the line."""
        handler = logging.FileHandler(file, encoding="utf-8")
        logger = logging.getLogger("wrapped")
        logger.addHandler(handler)
        logger.propagate = False
        structlog.configure(
            processors=chain(end=as_logging_call),
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=wrapper,
        )
        log = structlog.get_logger("wrapped")
        try:
            raise KeyError("k")
        except KeyError:
            getattr(log, method)("100 %s", exc_info=True)
            log.exception("again")
        log.warning("after", step=1)
        logger.removeHandler(handler)
        handler.close()
        *failed, after = read()
        traces = [said.pop("error_trace") for said in failed]

        assert log_saying("after", "wrapped", "warning", step=1) == after
        assert [
            log_saying(
                "100 %s",
                "wrapped",
                "critical" if method == "critical" else "error",
            ),
            log_saying("again", "wrapped", "error"),
        ] == failed
        for trace in traces:
            assert trace.endswith("KeyError: 'k'")

    def test_guarded(self, own):
        """Own steps after the draft stand in a Guarded."""

        def forge(_, __, line):
            return {**line, "kind": "event", "seq": 7, "mine": 1}

        stream = io.StringIO()
        structlog.configure(
            processors=[
                draft_line,
                Guarded([forge]),
                add_time,
                sequence_adder(),
                line_renderer(),
                as_text,
            ],
            logger_factory=structlog.PrintLoggerFactory(stream),
        )
        structlog.get_logger().info("m")
        said = json.loads(stream.getvalue())

        assert (0, 1, "event", 7) == (
            said["seq"],
            said["mine"],
            said["kind_"],
            said["seq_"],
        )

    @pytest.mark.parametrize(
        ("max_line", "error"),
        [
            ("x", TypeError),
            (None, TypeError),
            (1e6, TypeError),
            (True, ValueError),
            (10, ValueError),
            (4095, ValueError),
        ],
    )
    def test_bad_size(self, max_line, error):
        """A size that no line can have is refused at once, as with files."""
        with pytest.raises(error) as raised:
            line_renderer(max_line)

        assert f"max_line must be an int, 4096 or more, not {max_line!r}" == (
            str(raised.value)
        )
        with pytest.raises(ee.UnknownDestination, match="4096 or more"):
            ee.get_logger(f"file:log.jsonl?max_line={max_line}")

    def test_size(self, validate):
        """A line that would be longer is cut to the size."""
        line = {"event": "m", "text": "x" * 10_000}
        for step in chain(max_line=4096)[:-1]:
            line = step(None, "info", line)

        assert validate(line)["truncated"]
        assert 2000 < len(line) <= 4096

    @pytest.mark.parametrize(
        "processors", [[1], "redact", redact(), [redact(), None]]
    )
    def test_bad_processors(self, processors):
        """What is no list of processors is refused at once."""
        with pytest.raises(TypeError, match="must be"):
            Guarded(processors)

    @pytest.mark.parametrize(
        ("missing", "left"),
        [
            (add_time, {"timestamp": 0, "time": ""}),
            (SEQUENCE, {"seq": 0}),
        ],
    )
    def test_missing_step(self, missing, left):
        """What a step fills in is blank without it, as the page says."""
        steps = [draft_line, add_time, SEQUENCE, line_renderer()]
        steps.remove(missing)
        for _ in range(2):
            line = {"event": "m"}
            for step in steps:
                line = step(None, "info", line)
            said = json.loads(line)

            assert left == {key: said[key] for key in left}

    @given(
        st.dictionaries(
            st.sampled_from(
                [
                    *("level", "logger", "exc_info", "exception", "rank"),
                    *("timestamp", "metadata", "event", "seq", "kind", "x"),
                ]
            )
            | st.text(max_size=4),
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=9)
            | st.builds(object)
            | st.builds(ee.Event, st.text(max_size=3), st.none()),
            max_size=8,
        )
    )
    def test_any_event_dict(self, validate, given):
        """Whatever stands in the event dict, there is a valid line."""
        before = dict(given)
        line = given
        for step in chain()[:-1]:
            line = step(None, "info", line)

        assert validate(line)
        assert before == given

    def test_unreadable(self, own):
        """What cannot be read gives a line that says so, and no error."""

        class Evil(str):
            __slots__ = ()

            def __eq__(self, other):
                raise ZeroDivisionError

            __hash__ = str.__hash__

        own().info("m", level=Evil("x"), logger=Evil("y"), event_=Evil("z"))

        assert 1 == len(own.said())

    def test_all(self):
        """The room says which of its names are for users."""
        from elastic_events import processors

        assert sorted(processors.__all__) == processors.__all__
        for name in processors.__all__:
            assert name in PAGE
            assert getattr(processors, name).__doc__


def blocks(language, page=PAGE):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


class TestDocumentation:
    @pytest.mark.parametrize(
        ("mark", "written"),
        [("redact", "log.jsonl"), ("rotating", "rotating.jsonl")],
    )
    def test_configurations(self, tmp_path, read, mark, written):
        """The configurations of the page run, and write what they should."""
        code = next(
            each
            for each in blocks("python")
            if mark in each and "dictConfig" in each
        )
        run(tmp_path, code)
        (said,) = read(tmp_path / written)
        metadata = {"token": "[redacted]", "nodes": 2}

        assert {
            "log.jsonl": log_saying("ready", "trainer", metadata=metadata),
            "rotating.jsonl": log_saying("ready", "trainer"),
        }[written] == said

    def test_yaml(self):
        """The YAML is the Python."""
        yaml = pytest.importorskip("yaml")
        (text,) = blocks("yaml")
        code = next(iter(blocks("python")))
        given = {}
        ((_, literal),) = re.findall(
            r"(dictConfig)\((.*?)\n\)\n", code, re.DOTALL
        )
        exec(f"given = {literal.strip()}", given)

        assert given["given"] == yaml.safe_load(text)

    def test_ini(self, tmp_path, read):
        """The ini file configures."""
        (text,) = blocks("ini")
        (tmp_path / "logging.ini").write_text(text)
        code = """
        import logging.config
        logging.config.fileConfig("logging.ini")
        logging.getLogger("trainer").info("ready")
        """
        run(tmp_path, code)

        assert [log_saying("ready", "trainer")] == read(tmp_path / "log.jsonl")

    def test_chain(self, tmp_path, validate):
        """The chain of the page writes a line."""
        (code,) = (each for each in blocks("python") if "as_bytes" in each)
        out, err = run(tmp_path, code)

        assert "" == err
        assert log_saying(
            "ready",
            "root",
            run_id="job-1",
            token="[redacted]",
            nodes=2,
            func_name="<module>",
        ) == stable(validate(out.encode()))

    def test_chain_to_logging(self, tmp_path, read):
        """The chain of the page that ends in logging writes a line."""
        (code,) = (
            each for each in blocks("python") if "as_logging_call" in each
        )
        run(tmp_path, code)
        (said,) = read(tmp_path / "log.jsonl")

        assert said.pop("error_trace").endswith("division by zero")
        assert log_saying("failed in step 7", "trainer", "error") == said

    def test_tests(self, tmp_path):
        """The tests of the page about testing pass."""
        code = "\n\n".join(blocks("python", TESTING_PAGE))
        (tmp_path / "test_it.py").write_text(code)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", tmp_path],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTEST_ADDOPTS": ""},
        )

        assert "2 passed" in done.stdout, done.stdout

    def test_message(self):
        """The message of the page about testing is what is said."""
        from elastic_events.testing import capture_events

        (shown,) = blocks("text", TESTING_PAGE)
        with capture_events() as captured:
            for step in range(3):
                event = ee.Event(
                    "train.step", "WORKER", metadata={"step": step}
                )
                ee.record(event)
        with pytest.raises(AssertionError) as caught:
            captured.assert_has(name="train.step", metadata={"step": 3})

        assert shown.rstrip("\n") == str(caught.value)
