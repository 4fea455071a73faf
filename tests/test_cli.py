import json
import os
import re
import subprocess
import sys

import pytest

import elastic_events as ee
from elastic_events import cli


EVENT = ee.Event("n", ee.EventSource.WORKER, metadata={"step": 1})


@pytest.fixture(name="run")
def _run(capfdbinary):
    """
    Run the command and give back exit status, output and errors.
    """

    def run(*arguments):
        try:
            status = cli.main([str(each) for each in arguments])
        except SystemExit as error:
            status = error.code
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return status, captured.out, captured.err.decode()

    return run


@pytest.fixture(name="file")
def _file(tmp_path):
    """
    A file with three lines of different kinds.
    """
    file = tmp_path / "events.jsonl"
    log = ee.get_logger(f"file:{file}", name="trainer").bind(run_id="job-1")
    log.record(EVENT)
    log.record(ee.RdzvEvent("f.py:join", "job-1", "joined", "h", 1, "RUNNING"))
    log.error("broken", reason="disk")
    return file


def command(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "elastic_events", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


class TestShow:
    def test_json(self, run, file):
        """-o json passes the lines through byte for byte."""
        status, out, err = run("show", "-o", "json", file, file)

        assert (0, 2 * file.read_bytes(), "") == (status, out, err)

    def test_not_a_terminal(self, run, file):
        """Into a pipe or file, the default is json."""
        assert file.read_bytes() == run("show", file)[1]

    def test_pretty(self, run, file):
        """-o pretty gives a row each: time, level, who, what, details."""
        status, out, _ = run("show", "-o", "pretty", file)
        rows = [re.sub(" +", " ", row) for row in out.decode().splitlines()]
        host = os.uname().nodename

        assert 0 == status
        assert re.fullmatch(
            rf"\d\d:\d\d:\d\d\.\d\d\d INFO {host} worker n step=1 *", rows[0]
        )
        assert rows[1].endswith("INFO h agent f.py:join joined")
        assert rows[2].endswith(
            f"ERROR {host} agent trainer broken reason=disk"
        )

    def test_bad_lines(self, run, file):
        """A bad line is reported with its place, and the rest is shown."""
        text = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"not json\n" + text[0] + b"\n[1]\n" + text[1])
        status, out, err = run("show", "-o", "pretty", file)

        assert (0, 2) == (status, len(out.splitlines()))
        assert err.startswith(f"{file}:1: not JSON: ")
        assert err.endswith(f"{file}:4: not an object but list\n")

    def test_terminal_codes(self, run, tmp_path):
        """What could act on the terminal is shown escaped, in one row."""
        file = tmp_path / "x\x1b[2J.jsonl"
        evil = "\x1b[2J\x07\nFAKE \x9b31m\x00\u202e\u2028"
        (tmp_path / "ok.jsonl").write_bytes(
            json.dumps({"message": evil, "name": evil + "x"}).encode()
        )
        file.write_bytes(b"bad\n")
        _, out, err = run("show", "-o", "pretty", file, tmp_path / "ok.jsonl")

        assert 1 == len(out.splitlines())
        assert not set(evil) - set("2J[FAKE 31m\n") & set(out.decode())
        assert r"\x1b[2J\x07\nFAKE \x9b31m\x00\u202e\u2028" in out.decode()
        assert "\x1b" not in err

    @pytest.mark.parametrize(
        "said",
        [
            {},
            {"timestamp": None, "level": 5, "metadata": 7, "worker": []},
            {"timestamp": 1e300, "worker": {"error": 5}, "message": None},
            {"timestamp": "x", "rank": {}, "metadata": {"a": {"b": 1}}},
        ],
    )
    def test_odd_values(self, run, tmp_path, said):
        """Fields of any type are shown without a crash."""
        file = tmp_path / "odd.jsonl"
        file.write_text(json.dumps(said) + "\n")

        assert (0, 1) == (
            run("show", "-o", "pretty", file)[0],
            len(run("show", "-o", "pretty", file)[1].splitlines()),
        )

    def test_missing(self, run, tmp_path):
        """A file that cannot be read is one line, and status 2."""
        status, out, err = run("show", tmp_path / "no.jsonl")

        assert (2, b"") == (status, out)
        assert re.fullmatch(
            r"elastic-events: .*No such file.*no\.jsonl'\n", err
        )

    def test_missing_beside_others(self, run, file, tmp_path):
        """A file that cannot be read does not keep others from being shown."""
        status, out, err = run("show", tmp_path / "no.jsonl", file)

        assert (2, file.read_bytes()) == (status, out)
        assert 1 == err.count("\n")

    def test_stdin(self, file):
        """A dash is standard input."""
        with file.open() as stdin:
            done = command("show", "-", stdin=stdin)

        assert (0, file.read_text()) == (done.returncode, done.stdout)

    @pytest.mark.parametrize("output", ["json", "pretty"])
    def test_head(self, file, output):
        """A reader that leaves early ends it in silence."""
        file.write_bytes(file.read_bytes() * 20_000)
        done = subprocess.run(
            f"{sys.executable} -m elastic_events show -o {output} {file}"
            " | head -n 1;"
            ' echo "${PIPESTATUS[0]}"',
            shell=True,
            executable="/bin/bash",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

        assert "" == done.stderr
        assert ["0"] == done.stdout.splitlines()[1:]

    def test_missing_end(self, run, file):
        """A file that lacks its last line feed is not glued to the next."""
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])

        assert 2 * whole == run("show", file, file)[1]

    def test_ascii_terminal(self, file):
        """Where the output is not UTF-8, other characters are escaped."""
        ee.get_logger(f"file:{file}").info("naïve")
        done = command(
            *("show", "-o", "pretty", str(file)),
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )

        assert (0, "") == (done.returncode, done.stderr)
        assert "na\\xefve" in done.stdout

    def test_without_rich(self, file):
        """Without rich, json works and pretty says what to install."""
        code = (
            "import sys; sys.modules['rich'] = None\n"
            "from elastic_events.cli import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        pretty, plain = (
            subprocess.run(
                [sys.executable, "-c", code, "show", "-o", output, file],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            for output in ("pretty", "json")
        )

        assert 2 == pretty.returncode
        assert (
            "elastic-events: -o pretty needs rich: pip install"
            " 'elastic-events[cli]', or use -o json\n"
        ) == pretty.stderr
        assert (0, file.read_text()) == (plain.returncode, plain.stdout)


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


class TestDemo:
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
        assert f"\nThe record is in {file}\n" == done.stderr
        assert file.read_text() == done.stdout
        assert {0} == {each["restart"] for each in failed}
        assert ["FloatingPointError"] == [
            each["worker"]["error"]["type"]
            for each in failed
            if "error" in each["worker"]
        ]
        assert {"event", "rdzv"} == {each["kind"] for each in lines}
        assert 2 + 4 + 4 == len({each["pid"] for each in lines})
        assert [(0, -15), (1, -15), (2, -15), (3, 1)] == sorted(
            (each["rank"], each["worker"]["exit_code"])
            for each in failed
            if "exit_code" in each["worker"]
        )
        assert [0, 1, 2, 3] == sorted(
            each["rank"] for each in ended["SUCCEEDED"]
        )


class TestHelp:
    @pytest.mark.parametrize("name", ["show", "record", "demo"])
    def test_commands(self, run, name):
        """Every command has help that begins with a sentence."""
        status, out, _ = run(name, "--help")

        assert 0 == status
        assert re.search(r"\n\n[A-Z][^\n]*\.\n", out.decode())

    def test_no_command(self, run):
        """Without a command the usage is shown, with status 2."""
        status, _, err = run()

        assert 2 == status
        assert err.startswith("usage: elastic-events")
