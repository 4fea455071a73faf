import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import (
    EVENT,
    SOON,
    WITHOUT_RICH,
    acting,
    command,
    file_of_three,  # noqa: F401 (a fixture)
    having,
    line,
    read_soon,
    run_here,  # noqa: F401 (a fixture)
    start,
)

import elastic_events as ee
from elastic_events import cli
from elastic_events.formats import FORMATS
from elastic_events.schema import line_schema


EVIL = "\n\x1b[2J\x07\x9b31m\x7f\u200b\u202e\u2028\ufeff\U000e0041\udcff"
# Each format from which there is a way back.
BACK = [each.name for each in FORMATS.values() if each.back]


class TestRecord:
    def test_event(self, run, tmp_path, validate):
        """One event is recorded, its values typed as JSON spells them."""
        file = tmp_path / "e.jsonl"
        status, out, err = run(
            *("record", "prolog", "--source", "AGENT", "--run-id", "job-1"),
            *("--meta", "code=0", "ok=true", "x=null", "v=1.10", "f=1.5"),
            *("--meta", "t=a=b", "e=", "n=007", "to=NaN"),
            *("--to", f"file:{file}"),
        )
        said = validate(file.read_bytes())

        assert (0, b"", "") == (status, out, err)
        assert ("prolog", "AGENT", "job-1") == (
            said["name"],
            said["source"],
            said["run_id"],
        )
        assert {
            "code": 0,
            "ok": True,
            "x": None,
            "v": "1.10",
            "f": 1.5,
            "t": "a=b",
            "e": "",
            "n": "007",
            "to": "NaN",
        } == said["metadata"]

    def test_environment(self, tmp_path):
        """Without --to it goes where the environment says."""
        file = tmp_path / "e.jsonl"
        done = command(
            *("record", "n", "--source", "WORKER"),
            env={**os.environ, "ELASTIC_EVENTS_DESTINATION": f"file:{file}"},
        )

        assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
        assert 1 == len(file.read_bytes().splitlines())

    @pytest.mark.parametrize(
        ("arguments", "status", "text"),
        [
            ([], 2, "the event would go nowhere: give --to DESTINATION"),
            (["--to", "fiel"], 2, "unknown destination 'fiel'"),
            (["--to", "file:/proc/no/x"], 1, "an event was not written"),
            (["--to", "queue:file:/proc/no/x"], 1, "was not written"),
            (["--to", "console", "--meta", "x"], 2, "expected KEY=VALUE"),
            (["--to", "null"], 0, ""),
        ],
    )
    def test_status(self, run, arguments, status, text):
        """What was not recorded has a status and a reason."""
        got, _, err = run("record", "n", "--source", "AGENT", *arguments)

        assert status == got
        assert text in err
        assert "Traceback" not in err

    @pytest.mark.parametrize(
        ("variable", "text"),
        [
            ("", "the event would go nowhere: give --to DESTINATION"),
            ("null", "the event would go nowhere: give --to DESTINATION"),
            ("queue:null", "the event would go nowhere: give --to"),
            ("fil:x", "DESTINATION: unknown destination 'fil:x'"),
            ("file:x?a=1", "DESTINATION: malformed destination 'file:x?a=1'"),
            ("otlp:", "DESTINATION: destination 'otlp:' needs OpenTelemetry"),
        ],
    )
    def test_wrong_environment(self, run, monkeypatch, variable, text):
        """Where the environment names no place, nothing seems recorded."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", variable)
        for missing in "settings", "sink":
            monkeypatch.setitem(
                sys.modules, f"elastic_events.otlp.{missing}", None
            )
        got, out, err = run("record", "n", "--source", "AGENT")

        assert (2, b"", 1) == (got, out, err.count("\n"))
        assert text in err

    @pytest.mark.parametrize(
        ("to", "status"), [("null", 2), ("stdout", 0), ("queue:stdout", 0)]
    )
    def test_null(self, run, monkeypatch, to, status):
        """The environment matters to what goes to null, and to that alone."""
        monkeypatch.setenv("ELASTIC_EVENTS_DESTINATION", "fil:x")
        got, _, err = run("record", "n", "--source", "AGENT", "--to", to)

        assert (status, status == 0) == (got, err == "")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["n", "--meta", "a=1", "b=2"],
            ["n", "--meta", "a=1", "--meta", "b=2"],
            ["--meta", "a=1", "b=2", "n"],
            ["--meta", "a=1", "--meta", "b=2", "n"],
            ["--meta=a=1", "--meta", "b=2", "--", "n"],
            ["--meta", "a=1", "n", "--meta", "b=2"],
        ],
    )
    def test_meta(self, run, sink, arguments):
        """The name may stand before, among and after the metadata."""
        source = ("--source", "WORKER", "--to", "sink")

        assert (0, b"", "") == run("record", *source, *arguments)
        assert ("n", {"a": 1, "b": 2}) == (
            sink.one["name"],
            sink.one["metadata"],
        )

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["--meta", "a=1"], "required: NAME"),
            (["n", "--meta", "a"], "expected KEY=VALUE, got 'a'"),
            (["n", "--meta"], "expected one argument"),
            (["n", "--meta", "--run-id", "x"], "expected one argument"),
            (["n", "--meta", "=1"], "expected KEY=VALUE, got '=1'"),
            (["n", "m"], "unrecognized arguments: m"),
            ([""], "an event needs a name"),
            ([" "], "an event needs a name"),
            (["\x1b[2J", "\x1b[2J"], r"\x1b[2J"),
        ],
    )
    def test_usage(self, run, sink, arguments, text):
        """What is no event is told of, and nothing is recorded."""
        status, _, err = run(
            *("record", "--source", "AGENT", "--to", "sink", *arguments)
        )

        assert (2, []) == (status, sink)
        assert text in err
        assert set() == acting(err)

    def test_help(self, run):
        """Help says what a source is."""
        text = " ".join(run("record", "--help")[1].decode().split())

        assert "--source {AGENT,WORKER} who says so: the job's agent," in text

    def test_not_utf8(self, tmp_path, validate):
        """Arguments that are no UTF-8 are recorded, escaped."""
        file = tmp_path / "e.jsonl"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "elastic_events", "record", b"\xff"),
                *("--source", "AGENT", "--to", f"file:{file}"),
                *("--meta", b"k=\xfe"),
            ],
            capture_output=True,
            timeout=60,
            check=False,
        )
        said = validate(file.read_bytes())

        assert (0, b"") == (done.returncode, done.stderr)
        assert (r"\udcff", {"k": r"\udcfe"}) == (
            said["name"],
            said["metadata"],
        )


class TestOtherFormats:
    @pytest.fixture(name="formatted", params=BACK)
    def _formatted(self, tmp_path, request):
        file = tmp_path / "events.jsonl"
        log = ee.get_logger(f"file:{file}?format={request.param}")
        for event in EVENT, EVENT:
            log.record(event)
        return file, request.param

    @pytest.mark.parametrize(
        "arguments",
        [
            ["show"],
            ["show", "-o", "pretty"],
            ["explain"],
            ["timeline", "-O", "-"],
            ["stats"],
            ["validate"],
            ["validate", "-o", "json"],
            ["convert", "-o", "json"],
        ],
        ids=" ".join,
    )
    def test_named(self, run, formatted, arguments):
        """Who reads lines of another format is told once how to."""
        file, name = formatted
        _, _, err = run(*arguments, file)

        assert 1 == err.count(
            f"elastic-events: these lines look like format {name}:"
            f" elastic-events convert --from {name} -o json FILE\n"
        )

    def test_followed(self, formatted):
        """Who follows such lines is told at the end."""
        file, name = formatted
        process = start("show", "--follow", file)
        read_soon(process.stdout, 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON)

        assert 130 == process.returncode
        assert f"look like format {name}:".encode() in err

    def test_converted(self, run, formatted):
        """Who does as he is told is not told again."""
        file, name = formatted
        status, _, err = run("convert", "--from", name, "-o", "json", file)

        assert (0, "") == (status, err)

    def test_bound(self, run, tmp_path, validate):
        """Our own line is one whatever was bound to it."""
        file = tmp_path / "events.jsonl"
        bound = {"ecs.version": "1", "resourceLogs": [], "ddsource": "x"}
        ee.get_logger(f"file:{file}").bind(**bound).record(EVENT)
        validate(file.read_bytes())

        assert (0, file.read_bytes(), "") == run("show", file)

    def test_among_ours(self, run, file):
        """Where others stand among our lines, ours are what is read."""
        whole = b'{"ddsource":"python"}\n' + file.read_bytes()
        file.write_bytes(whole)

        assert (0, whole, "") == run("show", file)

    def test_unknown(self, run, tmp_path):
        """Of a form that nobody knows nothing is said."""
        file = tmp_path / "f"
        file.write_bytes(b'{"@timestamp":"2024-02-29","message":"m"}\n')

        assert (0, file.read_bytes(), "") == run("show", file)


class TestSchema:
    def test_schema(self, run):
        """The schema is printed, its keys in the order of the file."""
        status, out, _ = run("schema")

        assert 0 == status
        assert list(json.loads(out).items()) == list(line_schema().items())
        assert b'\n  "title": ' in out


class TestDemo:
    def test_interrupt(self, tmp_path):
        """^C leaves the record, says where it is, and leaves no process."""
        mark = str(tmp_path)
        process = start("demo", env={**os.environ, "TMPDIR": mark})
        deadline = time.monotonic() + SOON
        while time.monotonic() < deadline:
            files = [*tmp_path.glob("*/worker-3-0.stderr")]
            if files:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
        (file,) = tmp_path.glob("*/events.jsonl")

        assert (130, b"") == (process.returncode, out)
        assert f"\nThe record is in {file}\n" == err.decode()
        assert [] == [*having(mark)]

    def test_demo(self, validate, tmp_path):
        """A job of real processes fails, restarts, and leaves its lines."""
        done = command("demo", env={**os.environ, "TMPDIR": str(tmp_path)})
        lines = [
            validate(each.encode())
            for each in done.stdout.splitlines(keepends=True)
        ]
        ended = {
            state: [
                each
                for each in lines
                if each.get("name", "").endswith(f".{state}")
                and each["source"] == "WORKER"
            ]
            for state in ("FAILED", "SUCCEEDED")
        }
        failed = ended["FAILED"]
        (file,) = tmp_path.glob("*/events.jsonl")

        assert 0 == done.returncode, done.stderr
        assert done.stderr.startswith("\nRun demo: SUCCEEDED\n  2 attempts, ")
        assert "rank 3 failed with exit code 1: Floating" in done.stderr
        assert done.stderr.endswith(f"\n\nThe record is in {file}\n")
        assert file.read_text() == done.stdout
        assert {0} == {each["restart"] for each in failed}
        assert ["FloatingPointError"] == [
            each["worker"]["error"]["type"]
            for each in failed
            if "error" in each["worker"]
        ]
        assert {"event", "rdzv"} == {each["kind"] for each in lines}
        started = {
            each["worker"]["pid"]
            for each in lines
            if each.get("name", "").endswith(".START")
        }
        # One may be stopped before it records anything.
        assert 4 + 4 == len(started)
        assert 2 == len({each["pid"] for each in lines} - started)
        assert [(0, -15), (1, -15), (2, -15), (3, 1)] == sorted(
            (each["rank"], each["worker"]["exit_code"])
            for each in failed
            if "exit_code" in each["worker"]
        )
        assert [0, 1, 2, 3] == sorted(
            each["rank"] for each in ended["SUCCEEDED"]
        )


class TestCommands:
    @pytest.mark.parametrize("name", cli.COMMANDS)
    def test_help(self, run, name):
        """Every command has help that begins with a sentence."""
        status, out, _ = run(name, "--help")

        assert 0 == status
        assert re.search(r"\n\n[A-Z][^\n]*\.\n", out.decode())

    @pytest.mark.parametrize(
        ("name", "default"),
        [
            ("show", "without them in rows"),
            ("explain", "with them"),
            ("timeline", "with them"),
            ("stats", "with them"),
            ("validate", "with them"),
            ("convert", "with them"),
        ],
    )
    def test_keepalives(self, run, name, default):
        """Help says which commands leave keep-alives out."""
        text = " ".join(run(name, "--help")[1].decode().split())

        assert f"keep-alives of the rendezvous (default: {default})" in text

    @pytest.mark.parametrize("name", cli.COMMANDS)
    def test_example(self, run, file, name):
        """The example in the help of every command works."""
        text = run(name, "--help")[1].decode()
        (example,) = re.findall(r"^Example: (.+)$", text, re.MULTILINE)
        program = f"{sys.executable} -m elastic_events"
        done = subprocess.run(
            example.replace("elastic-events", program).replace(
                "/logs/", f"{file.parent}/"
            ),
            shell=True,
            cwd=file.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert example.startswith(f"elastic-events {name}")
        assert done.returncode in {0, 1, 3}
        assert "elastic-events: " not in done.stderr
        assert "Traceback" not in done.stderr

    def test_interrupt(self, tmp_path):
        """^C while the package is still imported has its status, no more."""
        (tmp_path / "structlog.py").write_text(
            "import os, signal, time\n"
            "os.kill(os.getpid(), signal.SIGINT)\n"
            "time.sleep(20)\n"
        )
        path = [str(tmp_path), str(Path(ee.__file__).parents[1])]
        done = command(
            program=(
                "-c",
                "import elastic_events_command as c, sys\nsys.exit(c.main())",
            ),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )

        assert (130, "", "") == (done.returncode, done.stdout, done.stderr)

    def test_no_command(self, run):
        """Without a command the help is shown, with status 2."""
        status, out, err = run()

        assert (2, b"") == (status, out)
        assert err.startswith("usage: elastic-events")
        for name in cli.COMMANDS:
            assert re.search(rf"^ +{name} +[A-Z].*\.?$", err, re.MULTILINE)

    @pytest.mark.parametrize("arguments", [["--help"], ["show", "--help"]])
    def test_ascii_help(self, arguments):
        """Help is shown by a terminal that is not UTF-8, too."""
        done = command(
            *arguments, env={**os.environ, "PYTHONIOENCODING": "ascii"}
        )

        assert (0, "") == (done.returncode, done.stderr)

    def test_all_help(self, run):
        """--help names every command."""
        status, out, _ = run("--help")

        assert 0 == status
        assert all(name in out.decode() for name in cli.COMMANDS)

    def test_version(self, run):
        """--version tells the package's."""
        assert (0, f"elastic-events {ee.__version__}\n".encode(), "") == run(
            "--version"
        )

    @pytest.mark.parametrize(
        "arguments",
        [["sow\x1b[2J"], ["--sow\u202e"], ["show", "--sow\x9b", "f"], ["--"]],
    )
    def test_usage(self, run, arguments):
        """What is no command or option is told of, escaped, with status 2."""
        status, out, err = run(*arguments)

        assert (2, b"") == (status, out)
        assert err.startswith("usage: elastic-events")
        assert set() == acting(err)

    @pytest.mark.parametrize(
        "arguments",
        [
            ("show", "-o", "pretty", "--traces"),
            ("explain", "--run-id", EVIL, "-v"),
            ("explain",),
            ("stats",),
            ("validate",),
        ],
    )
    def test_terminal_codes(self, run, tmp_path, arguments):
        """Whatever lines and names hold, nothing acts on the terminal."""
        file = tmp_path / EVIL
        said = dict.fromkeys(
            ("name", "message", "hostname", "run_id", "node_state", EVIL), EVIL
        )
        worker = {"entry_point": EVIL, "error": {"type": EVIL, EVIL: EVIL}}
        failed = {
            "level": "error",
            "name": "torchelastic.worker.status.FAILED",
            "source": "WORKER",
            "rank": 1,
            "error_trace": EVIL,
            "pid": 1,
            "metadata": {"state": "FAILED", EVIL: {EVIL: [EVIL]}},
            "worker": {**worker, "exit_code": 1},
        }
        file.write_bytes(
            line(10_000, **said)
            + line(1, **{**said, "kind": EVIL, "level": EVIL, "source": EVIL})
            + line(2, **{**said, "kind": "rdzv"})
            + line(3, **{**said, "kind": "event", **failed})
            + f"{EVIL[1:]}\n".encode("utf-8", "surrogatepass")
        )
        _, out, err = run(*arguments, file, tmp_path / f"no{EVIL}")

        assert out
        assert set() == acting(out.decode())
        assert set() == acting(err)

    @pytest.mark.parametrize("arguments", ["--help", "show --help", "schema"])
    def test_head(self, arguments):
        """A reader that leaves early is no error of any command."""
        done = subprocess.run(
            f"{sys.executable} -m elastic_events {arguments} | true;"
            ' echo "${PIPESTATUS[0]}"',
            shell=True,
            executable="/bin/bash",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

        assert ("0\n", "") == (done.stdout, done.stderr)

    @pytest.mark.parametrize(
        "arguments",
        [
            "show -o json",
            "show -o csv",
            "explain",
            "explain -o json",
            "stats",
            "stats -o json",
            "validate",
            "validate -o json",
        ],
    )
    def test_without_rich(self, file, arguments):
        """Without rich, what can do without it works as with it."""
        given = [*arguments.split(), str(file)]
        with_rich = command(*given)
        without = command(*given, program=WITHOUT_RICH)

        assert "" == without.stderr
        assert with_rich.returncode == without.returncode
        assert with_rich.stdout == without.stdout

    @pytest.mark.parametrize(
        "arguments",
        [
            "show -o pretty",
            "explain --color always",
            "demo -o pretty",
        ],
    )
    def test_missing_extra(self, file, arguments):
        """What cannot do without rich says in one line what to install."""
        name, *others = arguments.split()
        files = [] if name == "demo" else [str(file)]
        done = command(name, *others, *files, program=WITHOUT_RICH)

        assert (2, "") == (done.returncode, done.stdout)
        assert 1 == done.stderr.count("\n")
        assert "pip install 'elastic-events[cli]'" in done.stderr
