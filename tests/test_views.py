import csv
import io
import json
import re
import sys
import time
import unicodedata

import pytest
from hypothesis import given, strategies as st

from elastic_events.reading.escaping import escaped
from elastic_events.reading.painting import plain
from elastic_events.reading.tables import (
    as_text,
    cells,
    value_at,
    whole,
)
from elastic_events.reading.views import Rows, colored


ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
SAID = {
    "timestamp": 1_709_210_096_789,
    "level": "info",
    "kind": "event",
    "name": "train.step",
    "message": "train.step",
    "source": "WORKER",
    "hostname": "h",
    "rank": 3,
    "metadata": {"step": 1, "loss": 0.5, "ok": True, "none": None},
}
FAILED = {
    **SAID,
    "level": "error",
    "restart": 2,
    "worker": {
        "exit_code": -9,
        "pid": 7,
        "error": {"type": "E", "message": "x\ny"},
    },
    "error_trace": "Traceback\n  a\x1b[2J\nE: x\n",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = (*SAID, "worker", "error_trace", "restart", "logger")


def rows_of(*said, **options):
    rows = Rows(**options)
    return [row for each in said for row in rows.of(each)]


def zone(monkeypatch, name):
    monkeypatch.setenv("TZ", name)
    time.tzset()


@pytest.fixture(autouse=True)
def _own_zone(monkeypatch):
    """
    Have the zone that a test sets be unset after it.
    """
    yield
    monkeypatch.undo()
    time.tzset()


class TestEscaped:
    def test_all_characters(self):
        """Of all Unicode, what could act on a terminal is never given out."""
        everything = "".join(map(chr, range(sys.maxunicode + 1)))
        shown = escaped(everything)

        assert not ACTING & set(map(unicodedata.category, set(shown)))

    @pytest.mark.parametrize(
        "text",
        [
            "plain",
            r"C:\temp",
            "naïve 你好 שלום",
            "a\xa0b\u3000c",
            "e\u0301",
            "🙂",
            "",
        ],
    )
    def test_text(self, text):
        """What is only seen stays as it is."""
        assert text == escaped(text)

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("\x1b[2J\r\n\t", r"\x1b[2J\r\n\t"),
            ("\x7f\x9b\x00", r"\x7f\x9b\x00"),
            ("\u202e\u2066\u200b\ufeff", r"\u202e\u2066\u200b\ufeff"),
            ("\u2028\u2029", r"\u2028\u2029"),
            ("\ud800\udcff", r"\ud800\udcff"),
            ("a\ufe0e\u3164\U000e0041", r"a\ufe0e\u3164\U000e0041"),
            ("\U000e0100\U0010ffff\ue000", r"\U000e0100\U0010ffff\ue000"),
        ],
    )
    def test_other(self, text, shown):
        """What acts, hides or is unknown is shown as Python spells it."""
        assert shown == escaped(text)

    @pytest.mark.parametrize(
        ("value", "shown"), [(5, "5"), (None, "None"), ({"a": "\n"}, None)]
    )
    def test_values(self, value, shown):
        """Other values are shown as their text."""
        assert (shown or str(value)) == escaped(value)

    def test_longest(self):
        """No more than was asked for is looked at."""
        assert ("abc…", "abc", r"\x1b…") == (
            escaped("abcd", 3),
            escaped("abc", 3),
            escaped("\x1b" * 10_000_000, 1),
        )


class TestTables:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("a", {"b": {"c": 1}, "b.c": 2, "l": [0, {"x": 3}]}),
            ("a.b", {"c": 1}),
            ("a.b.c", 2),
            ("a.l.1.x", 3),
            ("a.l.2", None),
            ("a.l.x", None),
            ("a.l.-1", None),
            ("a.b.c.d", None),
            ("b", None),
            ("", None),
            ("..", None),
        ],
    )
    def test_value_at(self, path, value):
        """Dots lead into objects, numbers into lists, or nowhere."""
        said = {"a": {"b": {"c": 1}, "b.c": 2, "l": [0, {"x": 3}]}}

        assert value == value_at(said, path)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, ""),
            ("é\n", "é\n"),
            (True, "true"),
            (2**64, "18446744073709551616"),
            (0.1, "0.1"),
            ({"a": ["é"]}, '{"a": ["é"]}'),
            pytest.param(10**5000, "…", id="huge"),
        ],
    )
    def test_as_text(self, value, text):
        """A text is itself, null is nothing, and all else is JSON."""
        assert text == as_text(value)

    def test_cells(self):
        """Cells are in the order of the fields, formulas as they are."""
        said = {"rank": 0, "message": "=1+1", "worker": {"pid": 7}}

        assert ["=1+1", "0", "", "7"] == cells(
            said, ("message", "rank", "name", "worker.pid")
        )

    @given(st.dictionaries(st.sampled_from([*KEYS, "team", "step"]), JSON))
    def test_csv(self, said):
        """What a CSV reader makes of the cells is the cells."""
        given_cells = [each.replace("\0", "") for each in whole(said)]
        file = io.StringIO(newline="")
        csv.writer(file).writerow(given_cells)
        file.seek(0)

        assert [given_cells] == [*csv.reader(file)]


class TestRows:
    def test_row(self):
        """A row is time, level, host, who, what, details, below its date."""
        assert [
            "-- 2024-02-29 (UTC)",
            "12:34:56.789     INFO      h  rank 3  train.step"
            "  step=1 loss=0.5 ok=true",
        ] == rows_of(SAID)

    def test_said_twice(self):
        """What the metadata say again is not shown again."""
        said = {"run_id": "r", "rank": 1, "state": "OK", "metadata": "{}"}

        assert rows_of({"run_id": "r", "rank": 1, "metadata": said})[
            0
        ].endswith("  rank 1    state=OK")

    def test_failure(self):
        """A failure is marked, and tells restart, exit code and signal."""
        assert (
            "12:34:56.789  !  ERROR     h  rank 3  train.step"
            r"  restart=2 exit_code=-9 (SIGKILL) pid=7 E: x\ny"
        ) == rows_of(FAILED)[1]

    def test_traces(self):
        """Tracebacks stand below their rows, indented, escaped by line."""
        assert [
            "      Traceback",
            r"        a\x1b[2J",
            "      E: x",
        ] == rows_of(FAILED, has_traces=True)[2:]

    def test_days(self):
        """The date is told where a day begins, and where one comes back."""
        day = 24 * 3600 * 1000
        times = [0, 1, day, day - 1, "no time", day - 1]
        rows = rows_of(*({"timestamp": each} for each in times))

        assert [
            "-- 1970-01-01 (UTC)",
            "00:00:00.000",
            "00:00:00.001",
            "-- 1970-01-02 (UTC)",
            "00:00:00.000",
            "-- 1970-01-01 (UTC)",
            "23:59:59.999",
            "--:--:--.---",
            "23:59:59.999",
        ] == rows

    @pytest.mark.skipif(not hasattr(time, "tzset"), reason="no tzset")
    def test_local(self, monkeypatch):
        """Local times say their zone, and when it changes."""
        zone(monkeypatch, "America/New_York")
        first, second = 1_730_611_800_000, 1_730_615_400_000
        rows = rows_of(
            {"timestamp": first}, {"timestamp": second}, is_utc=False
        )

        assert [
            "-- 2024-11-03 (local, UTC-0400)",
            "01:30:00.000",
            "-- 2024-11-03 (local, UTC-0500)",
            "01:30:00.000",
        ] == rows

    @pytest.mark.parametrize(
        "timestamp",
        [None, True, "1705105985", 1e30, -1e30, 10**30, {}, [], ""],
    )
    def test_no_time(self, timestamp):
        """What is no moment in milliseconds is shown as no time."""
        assert ["--:--:--.---"] == rows_of({"timestamp": timestamp})

    def test_widths(self):
        """Columns are as wide as their widest until then, within bounds."""
        hosts = ["a", "node-7", "a", "x" * 60, "a"]
        rows = rows_of(*({"hostname": each, "name": "N"} for each in hosts))
        host = len("--:--:--.---     " + " " * 8 + "  ")

        assert [1, 6, 6, 60, 40] == [
            row.index("N") - host - len("    ") for row in rows
        ]

    def test_fields(self):
        """Chosen fields are shown alone, in their order, absent as a dash."""
        assert ["train.step  3  -", "\\n          -  1"] == rows_of(
            SAID,
            {"name": "\n", "worker": {"pid": 1}},
            fields=("name", "rank", "worker.pid"),
        )

    def test_huge(self):
        """However much a record says, its row is short."""
        big = "x" * 5_000_000
        said = {
            key: big for key in ("level", "hostname", "source", "name", big)
        }
        metadata = {f"{big}{number}": [big] for number in range(2)}
        many = dict.fromkeys(map(str, range(100_000)), 1)
        rows = rows_of(
            {**said, "message": "m" * 5_000_000, "metadata": metadata},
            {"message": "", "metadata": many},
            {"rank": big, "worker": {"error": {"message": big}}},
            {"error_trace": big},
            has_traces=True,
        )

        assert 5 <= len(rows)
        assert all(len(each) < 1000 for each in rows[:3])
        assert sum(map(len, rows)) < 110_000

    def test_colors(self):
        """In colours a row has the same text, and ours are the only codes."""
        evil = {**FAILED, "message": "\x1b[31m", "hostname": "\x9b1m"}
        codes = re.compile(r"\x1b\[[0-9;]*m")
        colors = rows_of(evil, paint=colored, has_traces=True)
        plains = rows_of(evil, paint=plain, has_traces=True)

        assert plains == [codes.sub("", each).rstrip() for each in colors]
        assert "\x1b[1;31m" in colors[1]

    @given(st.dictionaries(st.sampled_from(KEYS) | st.text(), JSON))
    def test_any_values(self, said):
        """Whatever a record says, its rows are text that cannot act."""
        for options in ({}, {"has_traces": True}, {"fields": tuple(said)}):
            text = "".join(rows_of(said, **options))

            assert not ACTING & set(map(unicodedata.category, text))

    def test_all_characters(self):
        """In no place of a record does any character act on the terminal."""
        acting = [
            each
            for each in map(chr, range(sys.maxunicode + 1))
            if unicodedata.category(each) in ACTING
        ]
        said = [
            {
                "timestamp": 0,
                **dict.fromkeys(
                    ("level", "hostname", "source", "name", "message"), text
                ),
                "metadata": {text: {text: [text]}},
                "error_trace": text,
            }
            for text in map("".join, zip(*[iter(acting)] * 8, strict=False))
        ]
        said = json.loads(json.dumps(said))
        text = "".join(rows_of(*said, has_traces=True))

        assert not ACTING & set(map(unicodedata.category, set(text)))
