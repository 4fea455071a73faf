import asyncio
import io
import json
import logging
import os
import subprocess
import sys
from unittest import mock

import pytest

import elastic_events as ee
from elastic_events import destinations


EVENT = ee.Event("n", ee.EventSource.WORKER)


class Unprintable(Exception):
    def __str__(self):
        raise ZeroDivisionError


def lines_in(file):
    return file.read_bytes().splitlines(keepends=True)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            (
                "fiel",
                "unknown destination 'fiel': expected one of null, console,"
                " stdout, file:PATH, otlp:URL, queue:DESTINATION,"
                " dynamic_rendezvous",
            ),
            ("", "unknown destination '': expected one of null, console,"),
            ("File:x", "unknown destination 'File:x': expected one of"),
            (
                "console?a=1",
                "malformed destination 'console?a=1': 'a=1' is no",
            ),
            ("console?max_line=99", "malformed destination 'console?max_line"),
            ("file:x?fsync=loud", "malformed destination 'file:x?fsync=loud'"),
            (
                "file:",
                "malformed destination 'file:': expected file:PATH with the"
                " path of a file, its folders written out",
            ),
            ("file:/x/", "malformed destination 'file:/x/'"),
            ("file:~/x", "malformed destination 'file:~/x'"),
            ("file:x\0y", "malformed destination 'file:x\\x00y'"),
            (
                "file:x?mod=640",
                "malformed destination 'file:x?mod=640': 'mod=640' is no"
                " option here: max_line=BYTES, 4096 or more; mode=OCTAL, such"
                " as 640; check=SECONDS, such as 0.5; fsync=LEVEL, such as"
                " error",
            ),
            (
                "file:x?",
                "malformed destination 'file:x?': '' is no option here",
            ),
            (
                "file:x?mode=9",
                "malformed destination 'file:x?mode=9': 'mode=9' is",
            ),
            (
                "file:x?check=-1",
                "malformed destination 'file:x?check=-1': 'check=-1'",
            ),
            ("file:x?check=nan", "malformed destination 'file:x?check=nan'"),
            (
                "file:{host}.jsonl",
                "malformed destination 'file:{host}.jsonl': {host} is no"
                " placeholder, expected one of {hostname}, {pid}, {rank},"
                " {local_rank}, {run_id}, {restart}",
            ),
            *(
                (
                    f"{name}?max_line=5000&max_line=6000",
                    f"malformed destination '{name}?max_line=5000&max_line="
                    "6000': 'max_line' is given twice: expected it once",
                )
                for name in ("console", "stdout", "file:x", "otlp:http://x")
            ),
            (
                "queue:file:x?size=5&mode=640&size=5",
                "malformed destination 'queue:file:x?size=5&mode=640&size=5':"
                " 'size' is given twice",
            ),
            (
                "queue:file:x?format=ecs&size=5&format=gcp",
                "malformed destination 'file:x?format=ecs&format=gcp':"
                " 'format' is given twice",
            ),
            (5, "a destination is named by a string, not int"),
            (None, "a destination is named by a string, not NoneType"),
        ],
    )
    def test_unknown(self, name, text):
        """A wrong name is a KeyError that says what is known, at once."""
        for use in (
            lambda: ee.record(EVENT, name),
            lambda: ee.get_logger(name),
            lambda: ee.configure(name),
            lambda: ee.get_logging_handler(name),
            lambda: ee.EventHandler(name),
            lambda: ee._get_or_create_logger(name),
            lambda: ee.record_failures(name),
        ):
            with pytest.raises(ee.UnknownDestination) as caught:
                use()

            assert isinstance(caught.value, KeyError)
            assert str(caught.value).startswith(text)

    @pytest.mark.parametrize(
        ("name", "guess"),
        [
            ("log.jsonl", "; did you mean 'file:log.jsonl'?"),
            ("/tmp/a", "; did you mean 'file:/tmp/a'?"),
            ("./a?mode=640", "; did you mean 'file:./a?mode=640'?"),
            ("fiel", ""),
            ("fiel?x=0.5", ""),
            ("fil:/tmp/a.jsonl", ""),
            ("sink:x", "; 'sink' stands alone, with no ':' after it"),
            ("console:x", "; 'console' stands alone, with no ':' after it"),
        ],
    )
    @pytest.mark.usefixtures("sink")
    def test_guess(self, name, guess):
        """Who gives a path, or what takes none, is told what was meant."""
        with pytest.raises(ee.UnknownDestination) as caught:
            ee.record(EVENT, name)

        assert guess == "".join(str(caught.value).partition("; ")[1:])

    def test_nothing_left(self):
        """A wrong name leaves no logger behind that swallows records."""
        with pytest.raises(ee.UnknownDestination):
            ee._get_or_create_logger("nope")

        assert "elastic_events.nope" not in logging.root.manager.loggerDict

    @pytest.mark.parametrize(
        ("name", "stream"), [("console", "stderr"), ("stdout", "stdout")]
    )
    def test_streams(self, name, stream, monkeypatch, validate):
        """console and stdout are the streams as they are at that moment."""
        first, second = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, stream, first)
        ee.record(EVENT, name)
        monkeypatch.setattr(sys, stream, second)
        ee.record(EVENT, name)

        assert [0, 1] == [
            validate(each.getvalue().encode())["seq"]
            for each in (first, second)
        ]

    def test_order_on_a_stream(self, capfd):
        """What was printed before a line comes before it."""
        code = (
            "import elastic_events as ee, sys\n"
            "sys.stdout.write('before ')\n"
            "ee.get_logger('stdout').info('m')\n"
            "print('after')\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        out = capfd.readouterr().out

        assert out.startswith('before {"timestamp":')
        assert out.endswith("after\n")


class TestFile:
    def test_lines(self, tmp_path, validate):
        """Each event is one line at the end of the file."""
        file = tmp_path / "a" / "b" / "log.jsonl"
        for _ in range(3):
            ee.record(EVENT, f"file:{file}")

        assert [0, 1, 2] == [validate(each)["seq"] for each in lines_in(file)]

    def test_appends(self, tmp_path, validate):
        """What stands in the file stays."""
        file = tmp_path / "log.jsonl"
        file.write_bytes(b"old\n")
        ee.record(EVENT, f"file:{file}")

        assert b"old\n" == lines_in(file)[0]
        assert 0 == validate(lines_in(file)[1])["seq"]

    def test_two_spellings(self, tmp_path, monkeypatch, validate):
        """Two spellings of one path are one destination."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "link").symlink_to(tmp_path)
        for path in ("x.jsonl", "./x.jsonl", tmp_path / "link" / "x.jsonl"):
            ee.record(EVENT, f"file:{path}")
        lines = lines_in(tmp_path / "x.jsonl")

        assert [0, 1, 2] == [validate(each)["seq"] for each in lines]
        assert [f"file:{tmp_path / 'x.jsonl'}"] == list(ee.health())

    def test_working_directory(self, tmp_path, monkeypatch):
        """A relative path stays where it was first named."""
        monkeypatch.chdir(tmp_path)
        ee.get_logger("file:x.jsonl")
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        ee.record(EVENT, "file:x.jsonl")

        assert (tmp_path / "x.jsonl").exists()

    def test_no_working_directory(self, tmp_path, monkeypatch):
        """Without one, absolute paths work and relative ones are refused."""
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        ee.record(EVENT, f"file:{tmp_path}/x.jsonl")
        with pytest.raises(
            ee.UnknownDestination, match="no working directory"
        ):
            ee.record(EVENT, "file:x.jsonl")

        assert 1 == len(lines_in(tmp_path / "x.jsonl"))

    def test_folder_with_braces(self, tmp_path, monkeypatch):
        """Placeholders are what is given, not what the folder is called."""
        folder = tmp_path / "{pid}{x}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        ee.record(EVENT, "file:x.jsonl")

        assert (folder / "x.jsonl").exists()

    def test_placeholders(self, tmp_path, as_worker, here):
        """Placeholders tell host, process and place in the job."""
        name = "{hostname}-{pid}-{rank}-{local_rank}-{run_id}-{restart}"
        ee.record(EVENT, f"file:{tmp_path}/{name}")

        assert [f"{here['hostname']}-{here['pid']}-3-1-job-7-2"] == os.listdir(
            tmp_path
        )

    def test_unknown_placeholders(self, tmp_path):
        """In an agent the ranks are "agent", what else is unknown "none"."""
        name = "{rank}-{local_rank}-{run_id}-{restart}"
        ee.record(EVENT, f"file:{tmp_path}/{name}")

        assert ["agent-agent-none-none"] == os.listdir(tmp_path)

    @pytest.mark.parametrize(
        ("run_id", "name"),
        [
            ("../../etc/x", "_._.._etc_x"),
            ("..", "_."),
            ("a b/c", "a_b_c"),
            ("x" * 500, "x" * 128),
        ],
    )
    def test_cleaned(self, tmp_path, monkeypatch, run_id, name):
        """No value of a placeholder leads out of the folder."""
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", run_id)
        ee.record(EVENT, f"file:{tmp_path}/d/{{run_id}}")

        assert [name] == os.listdir(tmp_path / "d")

    def test_question_mark(self, tmp_path):
        """%3F stands for a question mark in the path."""
        ee.record(EVENT, f"file:{tmp_path}/a%3Fb?check=0")

        assert ["a?b"] == os.listdir(tmp_path)

    def test_mode(self, tmp_path):
        """mode= gives the permissions of a new file, less the umask."""
        before = os.umask(0o027)
        try:
            ee.record(EVENT, f"file:{tmp_path}/a?mode=666")
            ee.record(EVENT, f"file:{tmp_path}/b?mode=600")
        finally:
            os.umask(before)

        assert [0o640, 0o600] == [
            (tmp_path / name).stat().st_mode & 0o777 for name in "ab"
        ]

    def test_other_options(self, tmp_path):
        """One file cannot be had with two sets of options."""
        ee.get_logger(f"file:{tmp_path}/x?mode=600")
        ee.get_logger(f"file:{tmp_path}/x")
        with pytest.raises(ee.UnknownDestination, match="is in use with"):
            ee.get_logger(f"file:{tmp_path}/x?mode=640")


class TestRegistered:
    def test_callable(self, validate):
        """A callable is given each line as bytes."""
        lines = []
        ee.register_destination("mine", lines.append)
        ee.record(EVENT, "mine")

        assert "n" == validate(lines[0])["name"]

    def test_handler(self, validate):
        """A logging.Handler is given each line as a message."""
        stream = io.StringIO()
        ee.register_destination("mine", logging.StreamHandler(stream))
        ee.record(EVENT, "mine")

        assert "n" == validate(stream.getvalue().encode())["name"]

    @pytest.mark.parametrize(
        "query", ["format=gcp", "max_line=9000&format=gcp"]
    )
    def test_options(self, query):
        """A callable and a handler are given the form that is asked for."""
        lines, stream = [], io.StringIO()
        ee.register_destination("mine", lines.append)
        ee.register_destination("other", logging.StreamHandler(stream))
        ee.record(EVENT, f"mine?{query}")
        ee.record(EVENT, f"queue:other?size=5&{query}")
        ee.flush()
        forms = [json.loads(each) for each in (lines[0], stream.getvalue())]

        assert ["INFO", "INFO"] == [each["severity"] for each in forms]

    def test_max_line(self, sink):
        """A line for a callable is not longer than it is asked for."""
        ee.get_logger("sink?max_line=4096").info("m" * 9000)

        assert 4096 >= len(sink[0])
        assert sink.one["truncated"]

    def test_shared(self, sink):
        """Without options it is had as it is, with others not at all."""
        ee.record(EVENT, "sink?max_line=4096")
        ee.record(EVENT, "sink")
        with pytest.raises(ee.UnknownDestination, match="is in use with"):
            ee.record(EVENT, "sink?max_line=5000")

        assert [0, 1] == [each["seq"] for each in sink.said]
        assert ["sink"] == list(ee.health())

    def test_options_again(self, sink):
        """What a name is given anew can have other options."""
        ee.record(EVENT, "sink?max_line=4096")
        lines = []
        ee.register_destination("sink", lines.append)
        ee.record(EVENT, "sink?max_line=5000")

        assert (1, 1) == (len(sink), len(lines))

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            (
                "sink?mode=640",
                "malformed destination 'sink?mode=640': 'mode=640' is no"
                " option here: max_line=BYTES, 4096 or more; format=NAME,"
                " such as ecs",
            ),
            ("sink?", "malformed destination 'sink?': '' is no option here"),
            (
                "sink?format=esc",
                "malformed destination 'sink?format=esc': unknown format",
            ),
            (
                "other?format=ecs",
                "malformed destination 'other?format=ecs': 'other' stands for"
                " 'sink': give the options there",
            ),
            *(
                (
                    f"{name}?format=ecs",
                    "malformed destination 'null?format=ecs': 'null' takes no"
                    " options: ELASTIC_EVENTS_DESTINATION, which says where it"
                    " goes, can have them",
                )
                for name in ("null", "dynamic_rendezvous")
            ),
        ],
    )
    @pytest.mark.usefixtures("sink")
    def test_wrong_options(self, name, text):
        """What cannot be asked for is said, and what can."""
        ee.register_destination("other", "sink")
        with pytest.raises(ee.UnknownDestination) as caught:
            ee.record(EVENT, name)

        assert str(caught.value).startswith(text)

    def test_null_handler(self):
        """A NullHandler is nowhere."""
        ee.register_destination("mine", logging.NullHandler())
        with pytest.raises(ee.UnknownDestination, match="is no option here"):
            ee.get_logger("mine?mode=640")

        assert destinations.resolve("mine?format=ecs") is None
        assert isinstance(ee.get_logging_handler("mine"), logging.NullHandler)

    def test_name(self, sink):
        """Another name leads to the same outlet."""
        ee.register_destination("mine", "sink")
        ee.record(EVENT, "mine")
        ee.record(EVENT, "sink")

        assert [0, 1] == [each["seq"] for each in sink.said]

    def test_processors(self, sink):
        """What is registered with processors runs them, the rest does not."""

        def mark(_, __, line):
            return {**line, "marked": True}

        ee.register_destination("mine", "sink", processors=[mark])
        ee.record(EVENT, "mine")
        ee.get_logging_handler("mine").info(EVENT)
        ee.record(EVENT, "sink")

        assert [True, True, None] == [each.get("marked") for each in sink.said]

    def test_again(self, sink):
        """A name can be given another meaning, for every door at once."""
        other = []
        ee.register_destination("mine", other.append)
        log = ee.get_logger("mine")
        ee.record(EVENT, "mine")
        ee.register_destination("mine", "sink")
        ee.record(EVENT, "mine")
        ee.get_logging_handler("mine").info(EVENT)
        log.record(EVENT)

        assert (2, 2) == (len(other), len(sink))

    def test_rendezvous(self, sink):
        """dynamic_rendezvous goes nowhere until it is registered."""
        ee.record_rdzv_event(EVENT)
        ee.register_destination("dynamic_rendezvous", "sink")
        ee.record_rdzv_event(EVENT)

        assert 1 == len(sink)

    @pytest.mark.parametrize(
        ("name", "target", "error", "text"),
        [
            ("null", "console", ValueError, "set ELASTIC_EVENTS_DESTINATION"),
            ("console", "null", ValueError, "is built in"),
            ("a:b", "null", ValueError, "cannot be named 'a:b'"),
            ("a?b", "null", ValueError, "cannot be named 'a\\?b'"),
            ("", "null", ValueError, "cannot be named ''"),
            (5, "null", ValueError, "cannot be named 5"),
            ("a", 5, TypeError, "cannot be a int: expected a destination's"),
            ("a", "fiel", ee.UnknownDestination, "unknown destination 'fiel'"),
            ("a", "a", ee.UnknownDestination, "stands for itself: a -> a"),
        ],
    )
    def test_refused(self, name, target, error, text):
        """What cannot work is refused when it is registered."""
        with pytest.raises(error, match=text):
            ee.register_destination(name, target)
        with pytest.raises(ee.UnknownDestination):
            ee.get_logger("a")

    def test_circle(self):
        """Names that stand for each other are refused, the old one stays."""
        ee.register_destination("a", "console")
        ee.register_destination("b", "a")
        with pytest.raises(ee.UnknownDestination, match="a -> b -> a"):
            ee.register_destination("a", "b")

        assert "console" == destinations.resolve("b").outlet.name

    def test_refused_again(self):
        """After a refusal the name means what it meant before."""
        ee.register_destination("a", logging.NullHandler())
        with pytest.raises(ee.UnknownDestination):
            ee.register_destination("a", "fiel")

        assert destinations.resolve("a") is None

    def test_health_of_one_name(self):
        """The health of a name counts all that it stood for."""
        ee.register_destination("a", lambda _: None)
        handler = ee.get_logging_handler("a")
        handler.info(EVENT)
        ee.register_destination("a", lambda _: 1 / 0)
        ee.record(EVENT, "a")

        assert {
            "recorded": 2,
            "written": 1,
            "dropped": {"ZeroDivisionError": 1},
            "queued": 0,
        } == ee.health()["a"]
        assert handler

    def test_environment_in_a_circle(self, monkeypatch):
        """An environment that leads back to null is null."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", "dynamic_rendezvous")

        assert destinations.resolve("null") is None
        assert destinations.resolve("dynamic_rendezvous") is None


class TestRaisingSinks:
    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (Unprintable(), "Unprintable"),
            (OSError([], "odd"), "OSError"),
            (asyncio.CancelledError(), "CancelledError"),
            (GeneratorExit(), "GeneratorExit"),
        ],
        ids=["unprintable", "odd errno", "cancelled", "exit"],
    )
    def test_counted(self, error, reason, capfd):
        """Whatever a destination raises is counted, and raised to nobody."""
        calls = []

        def raising(line):
            calls.append(line)
            raise error

        ee.register_destination("raising", raising)
        ee.record(EVENT, "raising")
        ee.get_logger("raising").info("m")
        ee.get_logging_handler("raising").info("m")

        assert {
            "recorded": 3,
            "written": 0,
            "dropped": {reason: 3},
            "queued": 0,
        } == ee.health()["raising"]
        assert 1 == capfd.readouterr().err.count("raising: an event was not")

    def test_other_attributes(self):
        """A callable is called, whatever attributes it has."""
        target = mock.MagicMock()
        ee.register_destination("mock", target)
        ee.record(EVENT, "mock")

        assert 1 == target.call_count


class TestEntryPoints:
    def test_provided(self, provide, sink):
        """Other distributions provide callables, names and handlers."""
        provide(
            "import logging\n"
            "lines = []\n"
            "def write(line): lines.append(line)\n"
            "class Handler(logging.Handler):\n"
            "    def emit(self, record): lines.append(record.getMessage())\n"
            "name = 'sink'\n",
            function="provider:write",
            handler="provider:Handler",
            other="provider:name",
        )
        for name in ("function", "handler", "other"):
            ee.record(EVENT, name)
        import provider

        assert [bytes, str] == [type(each) for each in provider.lines]
        assert 1 == len(sink)

    def test_options(self, provide):
        """What is provided takes the options of a callable."""
        provide(
            "lines = []\ndef write(line): lines.append(line)\n",
            mine="provider:write",
        )
        ee.record(EVENT, "mine?format=gcp")
        import provider

        assert "INFO" == json.loads(provider.lines[0])["severity"]

    def test_broken(self, provide):
        """A provider that cannot be loaded is named in the error."""
        provide("1 / 0", broken="provider:x")

        with pytest.raises(
            ee.UnknownDestination,
            match="'broken', provided by 'provider:x', cannot be had:"
            " ZeroDivisionError",
        ):
            ee.get_logger("broken")

    @pytest.mark.parametrize(
        "name", ["null", "console", "stdout", "dynamic_rendezvous"]
    )
    def test_built_in(self, provide, capfd, name):
        """What is provided under a name of ours is complained of."""
        provide("", **{name: "provider:x", "mine": "provider:y"})
        with pytest.raises(ee.UnknownDestination):
            ee.get_logger("other")

        assert (
            f"elastic_events: {name!r}, provided by 'provider:x' in"
            " elastic_events.destinations, is not used: the name is built in,"
            " so give it another\n"
        ) == capfd.readouterr().err

    def test_listed(self, provide):
        """What is provided is named where a name is unknown."""
        provide("", mine="provider:x")

        with pytest.raises(
            ee.UnknownDestination, match="dynamic_rendezvous, mine"
        ):
            ee.get_logger("other")


class TestFailingWrites:
    def fail(self, error=None):
        """
        Register a destination that fails as often as it is told to.
        """
        lines, state = [], {"failing": True}

        def write(line):
            if state["failing"]:
                raise error or OSError(28, "No space left on device")
            lines.append(line)

        ee.register_destination("failing", write)
        return lines, state

    def test_never_raises(self, capsys):
        """A failing write is counted, said once, and raised by no door."""
        self.fail()
        ee.record(EVENT, "failing")
        ee.get_logger("failing").info("m")
        ee.get_logging_handler("failing").handle(
            logging.makeLogRecord({"msg": "m"})
        )

        assert {
            "failing": {
                "recorded": 3,
                "written": 0,
                "dropped": {"ENOSPC": 3},
                "queued": 0,
            }
        } == ee.health()
        assert (
            "elastic_events: failing: an event was not written: [Errno 28] No"
            " space left on device\n"
        ) == capsys.readouterr().err

    def test_drop_line(self, frozen, validate):
        """After losses, one line says so just before the next line."""
        lines, state = self.fail()
        for _ in range(3):
            ee.record(EVENT, "failing")
        state["failing"] = False
        ee.record(EVENT, "failing")
        ee.record(EVENT, "failing")
        said = [validate(each) for each in lines]

        assert [
            ("log", "warning", "elastic_events", "dropped 3 events"),
            ("event", "info", None, "n"),
            ("event", "info", None, "n"),
        ] == [
            (each["kind"], each["level"], each.get("logger"), each["message"])
            for each in said
        ]
        assert {
            "dropped": 3,
            "reasons": {"ENOSPC": 3},
            "since": frozen,
        } == said[0]["metadata"]

    def test_numbers(self, validate):
        """The numbers missing are those of the lines that were dropped."""
        lines, state = self.fail()
        for failing in (False, True, True, False, True, False, False):
            state["failing"] = failing
            ee.record(EVENT, "failing")
        numbers = [validate(line)["seq"] for line in lines]
        health = ee.health()["failing"]

        assert 3 == health["recorded"] - health["written"]
        assert {"ENOSPC": 3} == health["dropped"]
        assert len(numbers) == len(set(numbers)) == health["written"]
        assert 3 == max(numbers) + 1 - len(numbers)

    def test_other_reasons(self):
        """What is no OSError is counted under its type's name."""
        self.fail(ValueError("closed"))
        ee.record(EVENT, "failing")

        assert {"ValueError": 1} == ee.health()["failing"]["dropped"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
    def test_unwritable_folder(self, tmp_path):
        """A folder that cannot be written to stops nothing."""
        code = (
            "import os, elastic_events as ee\n"
            f"log = ee.get_logger('file:{tmp_path}/log.jsonl')\n"
            "os.setuid(65534)\n"
            "log.info('m')\n"
            "print(ee.health())\n"
        )
        tmp_path.chmod(0o700)
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

        assert "'dropped': {'EACCES': 1}" in done.stdout
        assert "elastic_events: file:" in done.stderr

    def test_a_folder(self, tmp_path):
        """A folder in the place of the file stops nothing."""
        ee.record(EVENT, f"file:{tmp_path}")

        assert {"EISDIR": 1} == ee.health()[f"file:{tmp_path}"]["dropped"]


def test_one_complaint_a_minute(monkeypatch, capsys):
    """Standard error is told of losses at most once a minute."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    ee.register_destination("failing", lambda _: 1 / 0)
    for step in (0, 30, 29.9, 0.2, 1):
        now[0] += step
        ee.record(EVENT, "failing")

    assert 2 == capsys.readouterr().err.count("elastic_events: failing")
