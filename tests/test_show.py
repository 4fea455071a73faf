import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from running import (
    KEEPALIVE,
    ODD,
    SOON,
    WITHOUT_RICH,
    acting,
    command,
    environment,
    file_of_three,  # noqa: F401 (a fixture)
    in_terminal,
    line,
    read_soon,
    run_here,  # noqa: F401 (a fixture)
    start,
)

import elastic_events as ee
from elastic_events.schema import KEYS


class TestShow:
    def test_json(self, run, file):
        """-o json passes the lines through byte for byte."""
        file.write_bytes(file.read_bytes() + ODD)
        status, out, err = run("show", "-o", "json", file)

        assert (0, file.read_bytes(), "") == (status, out, err)

    def test_not_a_terminal(self, run, file):
        """Into a pipe or file, the default is json."""
        assert file.read_bytes() == run("show", file)[1]

    def test_pretty(self, run, file):
        """-o pretty gives a row each: time, level, who, what, details."""
        status, out, _ = run("show", "-o", "pretty", file)
        rows = [re.sub(" +", " ", row) for row in out.decode().splitlines()]
        host = os.uname().nodename

        assert 0 == status
        assert re.fullmatch(r"-- \d{4}-\d\d-\d\d \(UTC\)", rows[0])
        assert re.fullmatch(
            rf"\d\d:\d\d:\d\d\.\d\d\d INFO {host} worker n step=1", rows[1]
        )
        assert rows[2].endswith("INFO h agent f.py:join joined")
        assert rows[3].endswith(
            f"! ERROR {host} agent trainer broken reason=disk"
        )

    def test_bad_lines(self, run, file):
        """A bad line is reported with its place, and the rest is shown."""
        text = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"not json\n" + text[0] + b"\n[1]\n" + text[1])
        status, out, err = run("show", "-o", "pretty", file)

        first, second, count = err.splitlines()

        assert (0, 1 + 2) == (status, len(out.splitlines()))
        assert first.startswith(f"{file}:1: not JSON")
        assert second.startswith(f"{file}:4: not an object")
        assert "elastic-events: 2 bad lines in 1 file" == count

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
            r"elastic-events: .*no\.jsonl: No such file.*\n", err
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
        first, *_, last = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(first[:-1])
        other = file.with_name("other.jsonl")
        other.write_bytes(last[:-1])

        assert first + last == run("show", file, other)[1]

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
        pretty, plain = (
            command("show", "-o", output, str(file), program=WITHOUT_RICH)
            for output in ("pretty", "json")
        )

        assert 2 == pretty.returncode
        assert (
            "elastic-events: -o pretty needs rich: pip install"
            " 'elastic-events[cli]', or use -o json\n"
        ) == pretty.stderr
        assert (0, file.read_text()) == (plain.returncode, plain.stdout)

    def test_merge(self, run, tmp_path):
        """Files are shown by time, each in its own order."""
        one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
        one.write_bytes(line(10, n=1) + line(30, n=3) + line(30, n=4))
        two.write_bytes(line(20, n=2) + line(15, n=2.5) + line(40, n=5))
        out = run("show", tmp_path / "*.jsonl")[1]

        assert [1, 2, 2.5, 3, 4, 5] == [
            json.loads(each)["n"] for each in out.splitlines()
        ]

    def test_gzip(self, run, file):
        """Compressed files are shown as others are."""
        packed = file.with_name("events.jsonl.gz")
        packed.write_bytes(gzip.compress(file.read_bytes()))

        assert (0, file.read_bytes(), "") == run("show", packed)

    def test_filter(self, run, file):
        """Only what the filters want is shown."""
        lines = file.read_bytes().splitlines(keepends=True)

        assert (0, lines[1], "") == run("show", "--kind", "rdzv", file)
        assert (0, b"", "") == run("show", "--run-id", "job-2", file)
        assert (0, lines[2], "") == run(
            *("show", file, "--where", "message", "=", "broken")
        )
        assert 3 == run("show", "--since", "-1h", file)[1].count(b"\n")

    def test_wrong_filter(self, run, file):
        """A filter that is wrong is told of in the usage's last line."""
        status, out, err = run("show", "--grep", "(\x1b[2J", file)

        assert (2, b"") == (status, out)
        assert "elastic-events show: error: argument --grep" in err
        assert set() == acting(err)

    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            (["-n", "2"], [3, 4]),
            (["-n", "0"], []),
            (["--lines", "9"], [0, 1, 2, 3, 4]),
            (["-n", "2", "--where", "n<3"], [1, 2]),
        ],
    )
    def test_lines(self, run, tmp_path, arguments, shown):
        """-n shows the last that are wanted."""
        file = tmp_path / "n.jsonl"
        file.write_bytes(b"".join(line(n=number) for number in range(5)))
        out = run("show", file, *arguments)[1]

        assert shown == [json.loads(each)["n"] for each in out.splitlines()]

    @pytest.mark.parametrize(
        "arguments",
        [
            ["-n", "-1"],
            ["-n", "x"],
            ["--max-line", "0"],
            ["--max-line", "4M"],
            ["--fields", "a,,b", "-o", "csv"],
            ["--fields", "a", "-o", "json"],
            ["--utc", "--local"],
            ["--color", "blue"],
        ],
    )
    def test_usage(self, run, file, arguments):
        """What an option cannot be has status 2, and nothing is shown."""
        status, out, err = run("show", file, *arguments)

        assert (2, b"") == (status, out)
        assert re.search("^elastic-events.*: .+\\n\\Z", err, re.MULTILINE)

    def test_keepalives(self, run, tmp_path):
        """Keep-alives are left out where people read, unless asked for."""
        file = tmp_path / "k.jsonl"
        file.write_bytes(line(kind="rdzv", name=KEEPALIVE, message="m"))
        pretty = ("show", "-o", "pretty", file)

        assert file.read_bytes() == run("show", file)[1]
        assert b"" == run("show", "--no-keepalive", file)[1]
        assert b"" == run(*pretty)[1]
        assert KEEPALIVE.encode() in run(*pretty, "--keepalive")[1]

    def test_csv(self, run, tmp_path):
        """-o csv gives a table with a header, its values as they are."""
        file = tmp_path / "c.jsonl"
        file.write_bytes(
            line(1, message='a,"b"\nc\x1b', rank=0, pid=7)
            + line(2, message="=1+1 \ud800", metadata={"a": [1]}, rank=None)
        )
        _, out, _ = run("show", "-o", "csv", file)
        fields = ("--fields", "rank, message,metadata.a,metadata")
        some = run("show", "-o", "csv", *fields, file)[1]
        head, *rows = csv.reader(io.StringIO(out.decode(), newline=""))

        assert [*KEYS, "context"] == head
        assert ["1", "", "info", "log", "", 'a,"b"\nc\x1b'] == rows[0][:6]
        assert [
            b"rank,message,metadata.a,metadata",
            b'0,"a,""b""\nc\x1b",,',
            b',=1+1 \\ud800,[1],"{""a"": [1]}"',
            b"",
        ] == some.split(b"\r\n")

    def test_fields(self, run, file):
        """--fields chooses the columns of rows, too."""
        out = run(
            *("show", "-o", "pretty", "--fields", "kind,metadata.step", file)
        )[1]

        assert b"event  1\nrdzv   -\nlog    -\n" == out

    @pytest.mark.parametrize(
        "arguments",
        [
            ["show", "-o", "csv"],
            ["show", "-o", "pretty"],
            ["convert", "-o", "csv"],
        ],
        ids=" ".join,
    )
    def test_missing_fields(self, run, file, arguments):
        """A field that no record has is told of once, after the table."""
        fields = "mesage,logger,metadata.step,me\x1b,mesage"
        told = "elastic-events: no record has a value for mesage, me\\x1b\n"

        assert told == run(*arguments, "--fields", fields, file)[2]
        assert "" == run(*arguments, "--fields", "logger,kind", file)[2]
        assert "" == run(*arguments, "--fields", "x", "--name", "-", file)[2]

    def test_traces(self, run, tmp_path):
        """--traces shows tracebacks below their rows, by line, escaped."""
        file = tmp_path / "t.jsonl"
        file.write_bytes(line(level="error", error_trace="T\n  \x1b[2J\n"))
        plain = run("show", "-o", "pretty", file)[1]
        traces = run("show", "-o", "pretty", "--traces", file)[1]

        assert plain + b"      T\n        \\x1b[2J\n" == traces

    def test_local(self, file):
        """--local shows times in the machine's zone, and says so."""
        file.write_bytes(line(0))
        arguments = ("show", "-o", "pretty", "--local", str(file))
        done = command(*arguments, env={**os.environ, "TZ": "Asia/Kolkata"})

        assert (
            "-- 1970-01-01 (local, UTC+0530)\n05:30:00.000     INFO\n"
            == done.stdout
        )

    @pytest.mark.parametrize(
        ("arguments", "variables", "has_colors"),
        [
            ([], {}, False),
            (["--color", "always"], {}, True),
            (["--color", "always"], {"NO_COLOR": "1"}, True),
            ([], {"FORCE_COLOR": "1"}, True),
            ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
            (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        ],
    )
    def test_colors(
        self, run, file, monkeypatch, arguments, variables, has_colors
    ):
        """Colours are for terminals, unless option or environment differ."""
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        out = run("show", "-o", "pretty", *arguments, file)[1]

        assert has_colors is (b"\x1b[" in out)

    @pytest.mark.parametrize(
        ("variables", "has_colors"),
        [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    )
    def test_terminal(self, file, variables, has_colors):
        """In a terminal the default is rows in colours."""
        status, shown = in_terminal(
            "show", str(file), env=environment(**variables)
        )

        assert (0, 4) == (status, len(shown.splitlines()))
        assert has_colors is ("\x1b[" in shown)
        assert "broken" in shown

    def test_strict(self, run, file):
        """--strict gives bad lines a status; unreadable files have theirs."""
        file.write_bytes(file.read_bytes() + b"bad\n")
        missing = file.with_name("no.jsonl")
        found = [
            run("show", *arguments)[0]
            for arguments in (
                [file],
                ["--strict", file],
                ["--strict", "--run-id", "job-2", file],
                ["--strict", file, missing],
            )
        ]

        assert [0, 1, 1, 2] == found

    def test_many_bad_lines(self, run, tmp_path):
        """A flood of bad lines is cut short, and counted."""
        for name in "ab":
            (tmp_path / name).write_bytes(b"bad\n" * 100)
        _, _, err = run("show", tmp_path / "a", tmp_path / "b")
        told = err.splitlines()

        assert 100 + 2 == len(told)
        assert [
            "elastic-events: further bad lines are only counted",
            "elastic-events: 200 bad lines in 2 files",
        ] == told[100:]

    def test_max_line(self, run, file):
        """Longer lines than asked for are told of, not shown."""
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(lines[0] + b" " * 2000 + lines[1] + lines[2])
        status, out, err = run("show", "--max-line", "1000", file)

        assert (0, lines[0] + lines[2]) == (status, out)
        assert f"{file}:2: " in err

    def test_clocks(self, run, tmp_path):
        """A clock that steps back is told of at the end, as it is shown."""
        file = tmp_path / "back.jsonl"
        file.write_bytes(
            line(10_000, hostname="h\x1b", pid=1)
            + line(3_000, hostname="h\x1b", pid=1)
        )
        status, out, err = run("show", file)

        assert (0, file.read_bytes()) == (status, out)
        assert re.fullmatch(rf"{file}:2: .*7\.0 s.*\n", err)
        assert r"h\x1b" in err

    def test_names(self, tmp_path):
        """Names may begin with a dash, and be no UTF-8."""
        for name in (b"-f", b"--", b"\xff.jsonl"):
            Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(
                line(name="n") + b"bad\n"
            )
        done = subprocess.run(
            [
                *(sys.executable, "-m", "elastic_events", "show"),
                *("-o", "pretty", "--", "-f", "--", b"\xff.jsonl"),
            ],
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=False,
        )

        assert 0 == done.returncode
        assert 1 + 3 == done.stdout.count(b"\n")
        assert rb"\udcff.jsonl:2: " in done.stderr
        assert b"\xff" not in done.stderr

    @pytest.mark.parametrize("output", ["json", "csv", "pretty"])
    def test_full(self, file, output):
        """Output that cannot be written is told of once, with status 2."""
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "elastic_events"),
                    *("show", "-o", output, str(file)),
                ],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )

        assert 2 == done.returncode
        assert re.fullmatch(
            r"elastic-events: cannot write: .*No space.*\n",
            done.stderr,
        )

    @pytest.mark.parametrize("stream", [1, 2])
    def test_closed(self, file, stream):
        """Without standard output or error it ends in good order."""
        done = subprocess.run(
            f"echo bad >> {file}; {sys.executable} -m elastic_events show"
            f" {file} {stream}>&-",
            shell=True,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        told = ["", "elastic-events: standard output is closed\n", ""]

        assert ([None, 2, 0][stream], told[stream]) == (
            done.returncode,
            done.stderr,
        )
        assert "" == done.stdout.partition("}\nbad")[2]

    def test_rows_are_for_people(self, file):
        """What machines read does without the rows and their colours."""
        code = (
            "import sys\n"
            "from elastic_events.cli import main\n"
            "for output in ('json', 'csv'):\n"
            "    main(['show', '-o', output, sys.argv[1]])\n"
            "assert 'elastic_events.reading.views' not in sys.modules\n"
        )
        subprocess.run(
            [sys.executable, "-c", code, file],
            stdout=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )

    def test_all_characters(self, run, tmp_path):
        """Of all Unicode nothing reaches a person that acts on a terminal."""
        file = tmp_path / "u.jsonl"
        scalars = [
            chr(each)
            for each in range(sys.maxunicode + 1)
            if not 0xD800 <= each < 0xE000
        ]
        file.write_bytes(
            b"".join(
                line(name=text, hostname=text[::9], metadata={text[:50]: text})
                for text in map(
                    "".join, zip(*[iter(scalars)] * 93, strict=False)
                )
            )
        )
        _, out, err = run("show", "-o", "pretty", "--color", "never", file)

        assert set() == acting(out.decode())
        assert "" == err

    @given(st.lists(st.binary() | st.sampled_from([line(n=1), b"\n"])))
    def test_any_bytes(self, run, tmp_path, pieces):
        """Any bytes are shown or told of, and nothing acts or breaks."""
        file = tmp_path / "any.jsonl"
        file.write_bytes(b"".join(pieces))
        status, out, err = run("show", "-o", "pretty", file)

        assert 0 == status
        assert set() == acting(out.decode())
        assert set() == acting(err)


_FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (70, 70))
from elastic_events.cli import main
sys.exit(main())
"""


class TestFollow:
    def test_lines(self, file):
        """What is written is shown soon, and ^C ends it in silence."""
        process = start("show", "-f", str(file))
        whole = file.read_bytes()
        first = read_soon(process.stdout, 3)
        with file.open("ab") as stream:
            stream.write(whole[:-1])
            stream.flush()
            more = read_soon(process.stdout, 2)
            stream.write(b"\n")
            stream.flush()
            more += read_soon(process.stdout, 1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)

        assert (whole, whole, b"", b"") == (first, more, out, err)
        assert 130 == process.returncode

    @pytest.mark.parametrize("arguments", [[], ["--where", "n>=0"]])
    def test_last(self, tmp_path, arguments):
        """-n and -f: the last that are there, and then what comes."""
        file = tmp_path / "n.jsonl"
        file.write_bytes(b"".join(line(n=number) for number in range(5)))
        process = start("show", "-f", "-n", "2", *arguments, str(file))
        first = read_soon(process.stdout, 2)
        with file.open("ab") as stream:
            stream.write(line(n=5))
        more = read_soon(process.stdout, 1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)

        assert line(n=3) + line(n=4) == first
        assert (line(n=5), b"", b"") == (more, out, err)

    def test_stdin_twice(self):
        """Standard input that is named twice is read once, in order."""
        lines = "".join(line(n, x="x" * 99).decode() for n in range(2000))
        done = command("show", "-", "-", input=lines)

        assert (0, lines, "") == (done.returncode, done.stdout, done.stderr)

    def test_stdin(self):
        """What comes by a pipe is shown as it comes."""
        process = start("show", "-", stdin=subprocess.PIPE)
        process.stdin.write(line(n=1))
        process.stdin.flush()
        first = read_soon(process.stdout, 1)
        out, err = process.communicate(line(n=2), timeout=SOON)

        assert (line(n=1), line(n=2), b"") == (first, out, err)
        assert 0 == process.returncode

    def test_pipe_by_name(self, tmp_path):
        """What comes by a pipe that has a name is shown as it comes, too."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        process = start("show", str(pipe))
        with pipe.open("wb") as stream:
            stream.write(line(n=1))
            stream.flush()
            first = read_soon(process.stdout, 1)
        out, err = process.communicate(timeout=SOON)

        assert (line(n=1), b"", b"", 0) == (
            first,
            out,
            err,
            process.returncode,
        )

    def test_bad_lines(self, file):
        """Bad lines are counted at ^C; what is too long is one of them."""
        file.write_bytes(b"bad\n" + line(n=1) + line(x="x" * 999))
        process = start("show", "-f", "--max-line", "500", str(file))
        first = read_soon(process.stdout, 1)
        told = read_soon(process.stderr, 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
        rows = (told + err).decode().splitlines()

        assert (line(n=1), b"", 130) == (first, out, process.returncode)
        assert rows[0].startswith(f"{file}:1: not JSON")
        assert rows[1].endswith("passed over: the limit is 500")
        assert ["elastic-events: 2 bad lines in 1 file"] == rows[2:]

    def test_piped(self):
        """Standard input is shown as it comes, and its end is the end."""
        process = start("show", "-f", "-", stdin=subprocess.PIPE)
        process.stdin.write(line(n=1))
        process.stdin.flush()
        first = read_soon(process.stdout, 1)
        out, err = process.communicate(line(n=2) + b"bad", timeout=SOON)

        assert (line(n=1), line(n=2)) == (first, out)
        assert b"1 bad line in 1 file" in err
        assert 0 == process.returncode

    @pytest.mark.parametrize("arguments", [[], ["-f"]])
    def test_too_many(self, tmp_path, arguments):
        """More files than can be open are one clear line, and status 2."""
        for number in range(100):
            (tmp_path / str(number)).write_bytes(line())
        done = command(
            *("show", *arguments, f"{tmp_path}/*"),
            program=("-c", _FEW_FILES),
        )

        assert (2, "", 1) == (
            done.returncode,
            done.stdout,
            done.stderr.count("\n"),
        )
        assert done.stderr.startswith(
            "elastic-events: 100 files are too many to read at once: the"
            " limit of open files is 70"
        )

    def test_reader_leaves(self, file):
        """Where nobody reads on, it ends in silence with the next line."""
        process = start("show", "-f", str(file))
        read_soon(process.stdout, 3)
        process.stdout.close()
        with file.open("ab") as stream:
            stream.write(line())
        err = process.stderr.read()

        assert (0, b"") == (process.wait(timeout=SOON), err)
        process.stderr.close()


class TestProgress:
    @pytest.fixture(name="large")
    def _large(self, tmp_path):
        """
        A file that is worth a bar.
        """
        file = tmp_path / "large.jsonl"
        file.write_bytes(line(x="x" * 99_000) * 320)
        return str(file)

    @pytest.mark.parametrize("arguments", [[], ["--run-id", "X"]])
    def test_bar(self, large, arguments):
        """A long reading is shown to who looks on."""
        status, shown = in_terminal(
            *("show", "-o", "json", large, *arguments),
            streams=("stderr",),
            env=environment(),
        )

        assert 0 == status
        assert "reading" in shown

    def test_no_bar(self, large, file):
        """It is not shown in a file, beside other output, or for little."""
        silent = in_terminal(
            *("show", "-o", "json", str(file)),
            streams=("stderr",),
            env=environment(),
        )
        beside = in_terminal(
            *("show", "-n", "1", large),
            streams=("stdout", "stderr"),
            env=environment(),
        )
        done = command("show", "-n", "1", large)

        assert (0, "") == silent
        assert "reading" not in beside[1]
        assert (0, "") == (done.returncode, done.stderr)
