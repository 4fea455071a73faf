"""
``elastic-events convert`` gives records another form, and their own back.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from running import (
    EVENT,
    KEEPALIVE,
    command,
    file_of_three as _file_of_three,
    run_here as _run_here,
    start,
)
from waiting import wait_until

import elastic_events as ee
from elastic_events import formats
from elastic_events.encoding import encode
from elastic_events.schema import KEYS


INVERTIBLE = [name for name, each in formats.FORMATS.items() if each.back]

run, file = _run_here, _file_of_three


def said_in(file):
    return [json.loads(each) for each in file.read_bytes().splitlines()]


def _said_by(row):
    """
    Return the line that a row of CSV says.
    """
    context = json.loads(row.pop("context") or "{}")
    said = {
        key: text if KEYS[key].type is str else json.loads(text)
        for key, text in row.items()
        if text
    }
    return {**said, **context}


def _together(requests):
    """
    Return one request of OTLP with what these have, as a collector writes it:
    the records of one process together.
    """
    resources = []
    for request in requests:
        (found,) = request["resourceLogs"]
        for each in resources:
            if each["resource"] == found["resource"]:
                records = found["scopeLogs"][0]["logRecords"]
                each["scopeLogs"][0]["logRecords"] += records
                break
        else:
            resources.append(found)
    return {"resourceLogs": resources}


def is_asleep(pid):
    """
    Tell whether the process waits for something, where that can be told.
    """
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2][1] == "S"


class TestFormats:
    @pytest.mark.parametrize("name", INVERTIBLE)
    def test_like_the_destination(self, run, file, name):
        """Each line is the form that a destination would have written."""
        wanted = b"".join(
            encode(formats.FORMATS[name].to(each)) for each in said_in(file)
        )

        assert (0, wanted, "") == run("convert", "-o", name, file)

    @pytest.mark.parametrize("name", INVERTIBLE)
    def test_back(self, run, file, tmp_path, name):
        """Converted and converted back the lines are what they were."""
        other = tmp_path / "other.jsonl"
        assert (0, b"", "") == run("convert", "-o", name, "-O", other, file)

        assert (0, file.read_bytes(), "") == run(
            "convert", "--from", name, "-o", "json", other
        )

    def test_several_in_one(self, run, file, tmp_path):
        """A request of OTLP with several records gives a line for each."""
        forms = [formats.FORMATS["otel"].to(each) for each in said_in(file)]
        event, rdzv, log = file.read_bytes().splitlines(keepends=True)
        other = tmp_path / "other.jsonl"
        other.write_bytes(encode(_together(forms)) + encode(forms[1]))

        assert (0, event + log + rdzv + rdzv, "") == run(
            "convert", "--from", "otel", "-o", "json", other
        )

    def test_part_without_records(self, run, file, tmp_path):
        """A part that has no records, as protobuf leaves it, has no lines."""
        form = formats.FORMATS["otel"].to(said_in(file)[0])
        form["resourceLogs"] += [{"resource": {}}, {"scopeLogs": [{}]}]
        other = tmp_path / "other.jsonl"
        other.write_bytes(encode(form))

        assert (0, file.read_bytes().splitlines(keepends=True)[0], "") == run(
            "convert", "--from", "otel", "-o", "json", other
        )

    def test_bad_one_of_several(self, run, file, tmp_path):
        """One record that is no line leaves the others as they are."""
        forms = [formats.FORMATS["otel"].to(each) for each in said_in(file)]
        del forms[0]["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0][
            "body"
        ]
        _, rdzv, log = file.read_bytes().splitlines(keepends=True)
        other = tmp_path / "other.jsonl"
        other.write_bytes(encode(_together(forms)))
        status, out, err = run(
            "convert", "--from", "otel", "-o", "json", other
        )

        assert (0, log + rdzv) == (status, out)
        assert err.startswith(
            f"{other}:1: not converted: expected one log record of OTLP as"
            " JSON: KeyError: 'body'\n"
        )

    def test_from_one_to_another(self, run, file, tmp_path):
        """A form can be converted to another one."""
        other = tmp_path / "other.jsonl"
        run("convert", "-o", "ecs", "-O", other, file)

        assert run("convert", "-o", "gcp", file) == run(
            "convert", "--from", "ecs", "-o", "gcp", other
        )

    def test_torch(self, run, file):
        """Logs, which have no such form, are left out."""
        status, out, err = run("convert", "-o", "torch", file)
        event, rdzv = map(json.loads, out.splitlines())

        assert (0, "") == (status, err)
        assert "n" == ee.Event.deserialize(json.dumps(event)).name
        assert "joined" == ee.RdzvEvent.deserialize(json.dumps(rdzv)).message

    def test_torchs_own(self, run, tmp_path):
        """torch's own lines stay what they are in its form."""
        file = tmp_path / "torch.jsonl"
        rdzv = ee.RdzvEvent("f", "j", "m", "h", 1, ee.NodeState.INIT)
        raw = f"{EVENT}\n{rdzv}\n"
        file.write_text(raw)
        status, out, err = run("convert", "-o", "torch", file)

        assert (0, "") == (status, err)
        assert [json.loads(each) for each in raw.splitlines()] == [
            json.loads(each) for each in out.splitlines()
        ]

    def test_json(self, run, file):
        """Our own lines stay byte for byte what they are."""
        assert (0, file.read_bytes(), "") == run("convert", "-o", "json", file)

    def test_csv(self, run, file):
        """A table has the fields that are asked for."""
        assert (
            0,
            b"kind,run_id\r\nevent,job-1\r\nrdzv,job-1\r\nlog,job-1\r\n",
            "",
        ) == run(*("convert", "-o", "csv", "--fields", "kind,run_id", file))
        assert run("show", "-o", "csv", file) == run(
            "convert", "-o", "csv", file
        )

    def test_csv_has_all(self, run, file):
        """Without fields, each line can be had back from its row."""
        ee.get_logger(f"file:{file}").bind(team="x", context=[1]).record(
            ee.Event(
                "torchelastic.worker.status.FAILED",
                ee.EventSource.WORKER,
                metadata={"global_rank": 3, "worker_id": "7"},
            )
        )
        _, out, _ = run("convert", "-o", "csv", file)
        rows = csv.DictReader(io.StringIO(out.decode(), newline=""))

        assert said_in(file) == [_said_by(row) for row in rows]

    def test_keeps_order(self, run, tmp_path):
        """Files are converted one after the other, all lines in order."""
        names = []
        for number in (2, 1):
            log = ee.get_logger(f"file:{tmp_path}/{number}.jsonl")
            for step in range(2):
                names.append(f"{number}.{step}")
                log.record(ee.Event(names[-1], ee.EventSource.AGENT, number))
        files = [tmp_path / "2.jsonl", tmp_path / "1.jsonl"]
        _, out, _ = run("convert", "-o", "datadog", *files)

        assert names == [
            json.loads(each)["message"] for each in out.splitlines()
        ]


class TestInput:
    def test_filters(self, run, file, tmp_path):
        """The filters of the other commands hold, whatever the lines' form."""
        _, wanted, _ = run("show", "-o", "json", "--kind", "log", file)
        other = tmp_path / "other.jsonl"
        run("convert", "-o", "otel", "-O", other, file)

        for filter_ in (("--kind", "log"), ("--level", "error")):
            assert (0, wanted, "") == run(
                *("convert", "--from", "otel", "-o", "json", *filter_, other)
            )
            assert (0, wanted, "") == run(
                "convert", "-o", "json", *filter_, file
            )

    def test_keepalives_stay(self, run, tmp_path):
        """Keep-alives are converted, unless they are not wanted."""
        file = tmp_path / "e.jsonl"
        ee.get_logger(f"file:{file}").record(
            ee.RdzvEvent(KEEPALIVE, "j", "m", "h", 1, "RUNNING")
        )

        assert 1 == run("convert", "-o", "ecs", file)[1].count(b"\n")
        assert b"" == run("convert", "-o", "ecs", "--no-keepalive", file)[1]

    def test_bad_lines(self, run, tmp_path):
        """What cannot be converted is told of with its place, and no more."""
        file = tmp_path / "e.jsonl"
        ee.get_logger(f"file:{file}").info("good")
        good = json.loads(file.read_bytes())
        bad = [
            EVENT.serialize(),
            '{"a": 1}',
            "[1]",
            json.dumps({**good, "level": 5}),
            json.dumps({**good, "rank": "x"}),
            json.dumps({**good, "level": "loud"}),
            json.dumps({**good, "kind": ["log"]}),
            json.dumps({**good, "pid": 1.0}),
            json.dumps({**good, "worker": {"error": 5}}),
            json.dumps({**good, "name": "n"}),
            json.dumps({**good, "time": "2024-02-29T12:34:56.789Z"}),
        ]
        with file.open("a") as stream:
            stream.writelines(f"{each}\n" for each in bad)
        status, out, err = run("convert", "-o", "gcp", file)

        assert (0, 1) == (status, out.count(b"\n"))
        assert [
            f"{file}:2: not converted: no timestamp",
            f"{file}:3: not converted: it is no line of ours, nor of torch",
            f"{file}:4: not an object but list",
            f"{file}:5: not converted: level is 5, expected one of debug,"
            " info, warning, error, critical",
            f'{file}:6: not converted: rank is "x", expected an integer',
            f'{file}:7: not converted: level is "loud", expected one of debug,'
            " info, warning, error, critical",
            f"{file}:8: not converted: it is no line of ours, nor of torch",
            f"{file}:9: not converted: its pid cannot be 1.0",
            f"{file}:10: not converted: worker.error is 5, expected an object"
            " that is not empty",
            f"{file}:11: not converted: name on a line of kind log",
            f"{file}:12: not converted: time and timestamp are not the same"
            " moment",
            "elastic-events: 11 bad lines in 1 file",
        ] == err.splitlines()
        assert 1 == run("convert", "--strict", "-o", "gcp", file)[0]

    def test_bad_forms(self, run, file, tmp_path):
        """So is what is not of the format that it is said to be."""
        for name in INVERTIBLE:
            status, out, err = run(
                "convert", "--from", name, "-o", "json", file
            )

            assert (0, b"") == (status, out)
            assert 4 == len(err.splitlines())
            assert all(
                each.startswith(f"{file}:{number}: not converted: ")
                for number, each in enumerate(err.splitlines()[:3], 1)
            )

    @pytest.mark.parametrize(
        ("name", "place", "value", "said"),
        [
            (
                "ecs",
                "log.level",
                "loud",
                'level is "loud", expected one of debug, info, warning, error,'
                " critical",
            ),
            (
                "ecs",
                "process",
                {"pid": 1.5},
                "pid is 1.5, expected an integer",
            ),
            ("ecs", "event", 5, "'event' is no object"),
            ("gcp", "severity", "LOUD", "'LOUD' is no severity of ours"),
            ("gcp", "context", {"level": 1}, "'level' cannot have been bound"),
            (
                "datadog",
                "timestamp",
                10**18,
                "no time: 1000000000000000000",
            ),
            (
                "otel",
                "resourceLogs",
                5,
                "expected log records of OTLP as JSON: TypeError: 'int'"
                " object is not iterable",
            ),
        ],
    )
    def test_forged_forms(self, run, file, tmp_path, name, place, value, said):
        """What comes back is a line as every line must be, or is told of."""
        other = tmp_path / "other.jsonl"
        run("convert", "-o", name, "-O", other, file)
        form, *rest = said_in(other)
        other.write_bytes(
            b"".join(map(encode, [{**form, place: value}, *rest]))
        )
        status, out, err = run("convert", "--from", name, "-o", "json", other)

        assert (0, 2) == (status, out.count(b"\n"))
        assert f"{other}:1: not converted: {said}" == err.splitlines()[0]

    @pytest.mark.parametrize(
        ("to", "said"),
        [
            (lambda line: line["odd"], "it has no 'odd'"),
            (lambda _: 1 / 0, "division by zero"),
            (lambda _: [1], "expected a dict, got list"),
        ],
        ids=["key", "raises", "list"],
    )
    def test_broken_format(self, run, file, monkeypatch, to, said):
        """A format that makes nothing of a line is told of as well."""
        monkeypatch.setitem(formats.FORMATS, "odd", formats.Format("odd", to))
        status, out, err = run("convert", "-o", "odd", file)

        assert (0, b"") == (status, out)
        assert f"{file}:1: not converted: {said}" == err.splitlines()[0]


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (
                ("-o", "esc"),
                "unknown format 'esc': expected one of ecs, otel, gcp,"
                " datadog, torch, csv, json",
            ),
            (
                ("--from", "esc", "-o", "ecs"),
                "unknown format 'esc': expected one of ecs, otel, gcp,"
                " datadog, torch",
            ),
            (
                ("--from", "torch", "-o", "ecs"),
                "there is no way back from torch: expected one of ecs, otel,"
                " gcp, datadog",
            ),
            (("--fields", "rank", "-o", "ecs"), "--fields needs -o csv"),
        ],
    )
    def test_wrong(self, run, file, arguments, said):
        """What cannot be is said, and what can."""
        assert (2, b"", f"elastic-events: {said}\n") == run(
            "convert", *arguments, file
        )

    def test_no_output(self, run, file):
        """A format must be named."""
        assert 2 == run("convert", file)[0]

    def test_output_is_input(self, run, file):
        """A file that is read is not emptied."""
        before = file.read_bytes()
        pattern = str(file.parent / "*.jsonl")
        status, _, err = run("convert", "-o", "ecs", "-O", file, pattern)

        assert 2 == status
        assert "is read, and cannot be written to" in err
        assert before == file.read_bytes()

    def test_output_cannot_be(self, run, file):
        """A file that cannot be written is named."""
        status, out, err = run("convert", "-o", "ecs", "-O", file.parent, file)

        assert (2, b"") == (status, out)
        assert str(file.parent) in err

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
    def test_full(self, file):
        """A full disk is told of, and the status is 2."""
        done = command("convert", "-o", "ecs", "-O", "/dev/full", str(file))

        assert 2 == done.returncode
        assert "No space left on device" in done.stderr
        assert 1 == done.stderr.count("\n")


class TestProcess:
    def test_pipe(self, file):
        """A record is converted as soon as it is read from a pipe."""
        with start("convert", "-o", "ecs", "-", stdin=subprocess.PIPE) as one:
            one.stdin.write(file.read_bytes().splitlines(True)[0])
            one.stdin.flush()
            first = one.stdout.readline()
            rest = one.communicate(timeout=60)

        assert "n" == json.loads(first)["message"]
        assert (0, (b"", b"")) == (one.returncode, rest)

    def test_reader_is_gone(self, file):
        """A reader that is gone is the end, without a word."""
        many = file.parent / "many.jsonl"
        many.write_bytes(file.read_bytes() * 20_000)
        with start("convert", "-o", "otel", str(many)) as one:
            one.stdout.readline()
            one.stdout.close()
            status = one.wait(timeout=60)
            err = one.stderr.read()

        assert (0, b"") == (status, err)

    def test_interrupt(self, file):
        """^C is the end, without a word."""
        with start("convert", "-o", "ecs", "-", stdin=subprocess.PIPE) as one:
            one.stdin.write(file.read_bytes())
            one.stdin.flush()
            one.stdout.readline()
            # A moment before it is seen only when the wait is over.
            wait_until(lambda: is_asleep(one.pid))
            one.send_signal(signal.SIGINT)
            status = one.wait(timeout=60)
            err = one.stderr.read()

        assert (130, b"") == (status, err)

    def test_without_extras(self, file):
        """Neither rich nor protobuf is needed."""
        code = (
            "import sys\n"
            "sys.modules['rich'] = sys.modules['google'] = None\n"
            "from elastic_events.cli import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "convert", "-o", "otel", file],
            capture_output=True,
            timeout=60,
            check=True,
        )

        assert 3 == done.stdout.count(b"\n")
        assert b"" == done.stderr
