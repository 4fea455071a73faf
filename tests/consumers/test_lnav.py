"""
lnav shows the lines by the format that the package ships.
"""

import json
import os
import subprocess
import sys
from datetime import datetime, timezone

import pytest
import shipping_page

import elastic_events as ee
from elastic_events.schema import KEYS


KINDS = {int: "integer", str: "string", bool: "boolean", dict: "json"}
LOSSES = [
    "`timestamp`",
    "`message`",
    "`truncated`",
    "what was bound",
    "an integer above `2**63 - 1`",
    "the integer `-2**63`",
    "U+0000 in a text",
    "a number, where the first row of its column has none",
    "a line older than the one before it in its file",
    "a line of before 1970-01-01T00:00:01",
    "a file whose first three lines are less than a second from 1970",
]
NOW = 1_709_210_096_789
WITHOUT_COLUMNS = ("odd.unsigned", "odd.negative")
# These are found in log_time and log_body.
ELSEWHERE = ("timestamp", "message")
COLUMNS = [key for key in KEYS if key not in ELSEWHERE]


@pytest.fixture(name="home")
def _home(program, run, tmp_path):
    """
    A home where the format is installed as the page says.
    """
    program("lnav")
    folder = os.path.dirname(sys.executable)
    install = shipping_page.block("lnav", "bash")
    run(
        *("sh", "-e", "-c", install),
        env={"HOME": str(tmp_path), "PATH": f"{folder}:{os.environ['PATH']}"},
    )
    return tmp_path


@pytest.fixture(name="query")
def _query(program, run, home):
    """
    Ask lnav about a file.
    """

    def query(what, file):
        out = run(
            *(program("lnav"), "-n", "-c", f";SELECT {what}"),
            *("-c", ":write-json-to -", file),
        )
        return json.loads(out)

    return query


def as_held(said):
    """
    Return what the columns hold of it, by the table of the page.
    """
    if said.get("name") in WITHOUT_COLUMNS:
        return {**dict.fromkeys(COLUMNS), "log_body": None}
    held = {key: said.get(key) for key in COLUMNS}
    if held["truncated"]:
        held["truncated"] = 1
    return {**held, "log_body": said["message"]}


def recorded_at(folder, timestamps):
    """
    Return a file with an event of each time.
    """
    file = folder / "timed.jsonl"
    for timestamp in timestamps:
        ee.record(
            ee.Event("n", ee.EventSource.AGENT, timestamp=timestamp),
            f"file:{file}",
        )
    return file


def shown(milliseconds):
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds")


class TestFormat:
    def test_keys(self, run):
        """Every owned key is listed, in the order of a line."""
        out = run(sys.executable, "-m", "elastic_events", "schema", "--lnav")
        values = json.loads(out)["elastic_events_log"]["value"]

        assert [(key, KINDS[about.type]) for key, about in KEYS.items()] == [
            (key, value["kind"]) for key, value in values.items()
        ]

    def test_checked(self, program, run, home):
        """lnav finds nothing wrong with it."""
        assert b"" == run(program("lnav"), "-n", "-C")


class TestLines:
    def test_equal(self, query, recorded, exact):
        """The columns of a line are equal, but for what the page lists."""
        pairs = ", ".join(
            f"'{key}', json({key})"
            if KEYS[key].type is dict
            else f"'{key}', \"{key}\""
            for key in COLUMNS
        )
        rows = query(
            f"json_object({pairs}, 'log_body', log_body) AS held"
            " FROM elastic_events_log",
            recorded.file,
        )

        assert exact([*map(as_held, recorded.said)]) == exact(
            [row["held"] for row in rows]
        )

    def test_output(self, query, recorded):
        """
        By itself a text is cut at U+0000, and a number is text below a row
        without one; ``json_object`` helps, as said above.
        """
        rows = query(
            "logger, log_body, rank FROM elastic_events_log", recorded.file
        )
        by_logger = {row["logger"]: row for row in rows}

        assert "before" == by_logger["odd.nul"]["log_body"]
        assert "3" == by_logger["launcher"]["rank"]

    def test_whole(self, query, recorded):
        """``log_raw_text`` is every line as it was written."""
        rows = query("log_raw_text FROM elastic_events_log", recorded.file)

        assert recorded.file.read_bytes().decode().split("\n")[:-1] == [
            row["log_raw_text"] for row in rows
        ]

    def test_bound(self, query, recorded):
        """What was bound is in the whole line."""
        helps = {row[0]: row[2] for row in shipping_page.losses("lnav")}

        assert [{"found": "acme"}] == query(
            f"{helps['what was bound'].strip('`')} AS found"
            " FROM elastic_events_log WHERE found IS NOT NULL",
            recorded.file,
        )

    def test_time(self, query, tmp_path):
        """A line that is older than the one before it is shown after it."""
        file = recorded_at(tmp_path, [NOW, NOW - 96_789])

        assert [
            ("2024-02-29 12:34:56.789", "2024-02-29T12:34:56.789Z"),
            ("2024-02-29 12:34:56.789", "2024-02-29T12:33:20.000Z"),
        ] == [
            (row["log_time"], row["time"])
            for row in query("log_time, time FROM elastic_events_log", file)
        ]

    @pytest.mark.parametrize(
        ("timestamps", "found"),
        [
            ([NOW, 999, NOW], [(NOW, NOW), (NOW, NOW)]),
            ([NOW, -999, NOW], [(NOW, NOW), (NOW, NOW)]),
            ([1000, -1000], [(1000, 1000), (1000, -1000)]),
            ([-1000, NOW], [(NOW, NOW)]),
            ([-1, NOW], [(NOW, -1), (NOW, NOW)]),
            ([1000, NOW], [(1000, 1000), (NOW, NOW)]),
            ([-1000, -1000, -1000, NOW], [(NOW, NOW)]),
        ],
    )
    def test_about_1970(self, query, home, timestamps, found):
        """A line of before 1970's first second is over may be in no row."""
        file = recorded_at(home, timestamps)
        rows = query("log_time, time FROM elastic_events_log", file)

        assert [(shown(at), shown(given)) for at, given in found] == [
            (row["log_time"], row["time"].replace("T", " ").rstrip("Z"))
            for row in rows
        ]

    def test_none(self, query, home):
        """If the first three lines are so near 1970, no line is in a row."""
        file = recorded_at(home, [1, 1, 1, NOW])

        assert [{"count(*)": 0}] == query("count(*) FROM all_logs", file)

    @pytest.mark.parametrize("name", ["a.jsonl.1", "a.jsonl-20240229.gz"])
    def test_rotated(self, query, tmp_path, name):
        """Files are recognised whose names rotation changed."""
        file = tmp_path / "a.jsonl"
        ee.get_logger(f"file:{file}", name="n").error("broken")
        renamed = file.rename(tmp_path / name.removesuffix(".gz"))
        if name.endswith(".gz"):
            subprocess.run(["gzip", renamed], check=True)

        assert [{"log_level": "error", "log_body": "broken"}] == query(
            "log_level, log_body FROM elastic_events_log", tmp_path / name
        )

    def test_shown(self, program, run, home):
        """A line is shown as one, with what else it says below."""
        file = home / "a.jsonl"
        log = ee.get_logger(f"file:{file}", name="n").bind(tenant="acme")
        log.error("broken", reason="disk")
        (said,) = map(json.loads, file.read_bytes().splitlines())
        with file.open() as piped:
            for shown in (
                run(program("lnav"), "-n", file),
                run(program("lnav"), "-n", stdin=piped),
            ):
                first, *others = shown.decode().splitlines()

                assert [
                    *(said["time"].rstrip("Z"), "error", "AGENT"),
                    *(said["hostname"], "-", "broken"),
                ] == first.split()
                assert '  metadata: {"reason":"disk"}' in others
                assert "  tenant: acme" in others


class TestPage:
    def test_losses(self):
        """The page lists what is not held."""
        assert LOSSES == [row[0] for row in shipping_page.losses("lnav")]

    def test_command(self, program, run, home, jobs):
        """The command of the page finds something in a job that failed."""
        command = shipping_page.block("lnav", "bash", 1)
        header, *rows = (
            run("sh", "-c", command.replace("/logs/*.jsonl", jobs))
            .decode()
            .splitlines()
        )

        assert "time,hostname,rank,exit_code,log_body" == header
        assert rows
