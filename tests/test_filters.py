"""
Which records are wanted.
"""

import argparse
import json
import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st
from strategies import JSON_VALUES

from elastic_events.commands import filtering
from elastic_events.commands.statuses import UsageError
from elastic_events.encoding import encode
from elastic_events.reading import filters
from elastic_events.reading.conditions import where
from elastic_events.reading.filters import Filter
from elastic_events.reading.moments import instant, moment


NOW = datetime(2024, 2, 29, 12, 34, 56, 789_000, tzinfo=timezone.utc)
NOW_MS = 1_709_210_096_789

WORKER = {
    "timestamp": NOW_MS,
    "time": "2024-02-29T12:34:56.789Z",
    "level": "error",
    "kind": "event",
    "name": "torchelastic.worker.status.FAILED",
    "message": "torchelastic.worker.status.FAILED",
    "source": "WORKER",
    "hostname": "node1.cluster.local",
    "pid": 7,
    "seq": 3,
    "run_id": "job-1",
    "rank": 3,
    "worker": {"exit_code": -9, "error": {"type": "ValueError"}},
    "metadata": {
        "state": "FAILED",
        "loss": 0.5,
        "ok": True,
        "none": None,
        "id": 15878708649682983132,
        "text": "5",
        "a.b": {"c.d": 1},
        "list": [10, {"x": 11}],
        "metadata": '{"local_rank": [3], "role": "trainer"}',
    },
    "user": "jo",
}
KEEPALIVE = {
    "timestamp": NOW_MS,
    "level": "info",
    "kind": "rdzv",
    "name": "dynamic_rendezvous.py:"
    "_DistributedRendezvousOpExecutor._keep_alive",
    "source": "AGENT",
    "hostname": "node2",
    "node_state": "RUNNING",
    "run_id": "job-1",
}
LOG = {"level": "warning", "kind": "log", "message": "disk is full"}


def those(wanted):
    """
    Tell which of the three records above are wanted.
    """
    return [
        name
        for name, said in (("w", WORKER), ("k", KEEPALIVE), ("l", LOG))
        if wanted.matches(said)
    ]


class TestEach:
    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (filters.of_run("job-1"), ["w", "k"]),
            (filters.of_run("job"), []),
            (filters.of_source("worker"), ["w"]),
            (filters.of_source("AGENT"), ["k"]),
            (filters.of_name("torchelastic.worker.status.FAILED"), ["w"]),
            (filters.of_name("torchelastic.*"), ["w"]),
            (filters.of_name("TORCH*"), []),
            (filters.of_name("*"), ["w", "k"]),
            (filters.of_kind("log"), ["l"]),
            (filters.of_state("failed"), ["w"]),
            (filters.of_state("Running"), ["k"]),
            (filters.from_level("WARNING"), ["w", "l"]),
            (filters.from_level("debug"), ["w", "k", "l"]),
            (filters.of_ranks("0, 2-5"), ["w"]),
            (filters.of_ranks("0-2,4"), []),
            (filters.of_host("node1"), ["w"]),
            (filters.of_host("NODE1.cluster.local"), ["w"]),
            (filters.of_host("node1.elsewhere"), []),
            (filters.of_host("node2.cluster.local"), ["k"]),
            (filters.of_host("node[12]"), ["w", "k"]),
            (filters.of_host("*.local"), ["w", "k"]),
            (filters.since(str(NOW_MS)), ["w", "k"]),
            (filters.since(str(NOW_MS + 1)), []),
            (filters.until(str(NOW_MS)), ["w", "k"]),
            (filters.until(str(NOW_MS - 1)), []),
            (filters.grep("^ValueErr"), ["w"]),
            (filters.grep("exit_code|0.5"), []),
            (filters.grep("full$"), ["l"]),
            (filters.without_keepalives(), ["w", "l"]),
            (Filter(), ["w", "k", "l"]),
        ],
    )
    def test_wanted(self, wanted, expected):
        """Each filter keeps what it says, and only that."""
        assert expected == those(wanted)

    def test_addresses(self):
        """Two addresses are not one host because they begin alike."""
        wanted = filters.of_host("10.0.0.1")

        assert wanted.matches({"hostname": "10.0.0.1"})
        assert not wanted.matches({"hostname": "10.0.0.2"})

    def test_failed_keepalive(self):
        """A keep-alive that failed is never left out."""
        wanted = filters.without_keepalives()

        assert not wanted.matches(KEEPALIVE)
        assert wanted.matches(KEEPALIVE | {"level": "error"})
        assert not wanted.matches(
            KEEPALIVE | {"name": "d.py:_DistributedRendezvousOpExecutor.run"}
        )
        assert wanted.matches(KEEPALIVE | {"name": "train.run"})

    def test_all(self):
        """Together they keep what passes each, and every needle is held."""
        wanted = filters.all_of(
            [
                filters.of_run("job-1"),
                filters.of_source("WORKER"),
                where("user=jo"),
                filters.of_run("job-1"),
            ]
        )

        assert ["w"] == those(wanted)
        assert (b'"job-1"', b'"WORKER"', b'"jo"') == wanted.must_hold

    def test_nothing(self):
        """No filters together keep all."""
        assert ["w", "k", "l"] == those(filters.all_of([]))

    @pytest.mark.parametrize(
        ("build", "text", "expected"),
        [
            (
                filters.of_source,
                "X",
                "unknown source 'X': expected one of AGENT, WORKER",
            ),
            (
                filters.of_kind,
                "",
                "unknown kind '': expected one of event, rdzv, log",
            ),
            (
                filters.from_level,
                "loud",
                "unknown level 'loud': expected one of debug, info, warning,"
                " error, critical",
            ),
            (
                filters.of_ranks,
                "1,,2",
                "unknown ranks '1,,2': expected numbers and ranges, e.g."
                " 0,2-5",
            ),
            (filters.of_ranks, "5-2", "empty range '5-2' in ranks '5-2'"),
            (
                filters.grep,
                "a(",
                "no regular expression 'a(': missing ), unterminated"
                " subpattern at position 1",
            ),
        ],
    )
    def test_wrong(self, build, text, expected):
        """What is wrong is told with what came and what is allowed."""
        with pytest.raises(ValueError, match=re.escape(expected)):
            build(text)

    @pytest.mark.parametrize(
        "pattern", ["a{99999999999}", "(" * 5000 + ")" * 5000, "[[a]", "\\"]
    )
    def test_odd_patterns(self, pattern):
        """No pattern leads to an error or warning of another kind."""
        with suppress(ValueError):
            filters.grep(pattern)

    @pytest.mark.parametrize(
        "ranks", ["x", "-1", "1-", "", "1.5", "٣", "9" * 19]
    )
    def test_wrong_ranks(self, ranks):
        """Ranks are numbers of ordinary digits and size."""
        with pytest.raises(ValueError, match="unknown ranks"):
            filters.of_ranks(ranks)


class TestMoments:
    @pytest.fixture(autouse=True)
    def _zone(self, monkeypatch):
        import time

        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
        monkeypatch.undo()
        time.tzset()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2024-02-29T12:34:56.789Z", NOW_MS),
            ("2024-02-29T12:34:56,7891z", NOW_MS),
            ("2024-02-29 12:34:56.789 +00:00", NOW_MS),
            ("2024-02-29T07:34:56.789-05:00", NOW_MS),
            ("2024-02-29T18:04:56.789+0530", NOW_MS),
            ("2024-02-29T13:34:56.789+01", NOW_MS),
            ("2024-02-29T07:34:56.789", NOW_MS),
            ("2024-02-29T07:34", NOW_MS - 56_789),
            ("2024-02-29", 1_709_182_800_000),
            ("2024-07-01", 1_719_806_400_000),
            ("1709210096", NOW_MS - 789),
            ("1709210096.789", NOW_MS),
            ("1709210096789", NOW_MS),
            ("1709210096789000", NOW_MS),
            ("1709210096789000000", NOW_MS),
            ("0", 0),
            ("now", NOW_MS),
            ("-15m", NOW_MS - 900_000),
            ("15m", NOW_MS - 900_000),
            (" -2h30m ", NOW_MS - 9_000_000),
            ("-3d", NOW_MS - 3 * 86_400_000),
            ("-1w10s", NOW_MS - 7 * 86_400_000 - 10_000),
            ("today", 1_709_182_800_000),
            ("Yesterday", 1_709_182_800_000 - 86_400_000),
        ],
    )
    def test_forms(self, text, expected):
        """Every form names its moment, without a zone the local one."""
        assert expected == moment(text, NOW)

    def test_short_day(self):
        """Yesterday begins at its midnight, though it had 23 hours."""
        after = datetime(2024, 3, 11, 12, tzinfo=timezone.utc)

        assert 1_710_129_600_000 == moment("today", after)
        assert 1_710_046_800_000 == moment("yesterday", after)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "-15",
            "-m",
            "tomorrow",
            "2024-02-30",
            "2024-2-3",
            "2024-01-01T25:00",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00+99:00",
            "0001-01-01T00:00:00+23:00x",
            "1e9",
            "-999999999w",
            "9" * 5000,
            "٢٠٢٤-01-01",
        ],
    )
    def test_wrong(self, text):
        """Whatever else is told with what came."""
        with pytest.raises(ValueError, match=re.escape(repr(text))):
            moment(text, NOW)

    @given(st.text(max_size=30))
    def test_any_text(self, text):
        """Any text is a moment or a ValueError."""
        with suppress(ValueError):
            assert isinstance(moment(text), int)

    @given(
        st.datetimes(
            min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)
        ),
        st.integers(-1439, 1439),
    )
    def test_round(self, when, minutes):
        """A moment is the same in any zone, and as the lines write it."""
        zone = timezone(timedelta(minutes=minutes))
        aware = when.replace(tzinfo=timezone.utc)
        try:
            text = aware.astimezone(zone).isoformat()
        except OverflowError:
            return
        expected = (
            aware - datetime(1970, 1, 1, tzinfo=timezone.utc)
        ) // timedelta(milliseconds=1)

        assert expected == moment(text)
        assert expected == moment(instant(expected))

    @pytest.mark.parametrize(
        "timestamp", [None, True, "5", [], float("nan"), float("inf")]
    )
    def test_no_time(self, timestamp):
        """What has no time is within no bounds."""
        said = {"timestamp": timestamp}

        assert not filters.since("0").matches(said)
        assert not filters.until("9999-12-31T00:00Z").matches(said)
        assert filters.since("0").matches({"timestamp": 0.5})

    def test_no_moment(self):
        """What no calendar has stays a number."""
        assert "1e+300" == instant(1e300)


class TestConditions:
    @pytest.mark.parametrize(
        "condition",
        [
            "worker.exit_code=-9",
            "worker.exit_code==-9.0",
            "worker.exit_code!=0",
            "worker.exit_code < 0",
            " worker.exit_code  <=  -9 ",
            "metadata.loss > 0.25",
            "metadata.loss >= 0.5",
            "metadata.loss=0.5",
            "metadata.metadata.local_rank=3",
            "metadata.metadata.local_rank.0=3",
            "metadata.metadata.role=trainer",
            "metadata.metadata ~ local_rank",
            "metadata.a.b.c.d=1",
            "metadata.list.0=10",
            "metadata.list.1.x=11",
            "metadata.text=5",
            'metadata.text="5"',
            "metadata.text ~ ^5$",
            "metadata.loss ~ ^0",
            "metadata.ok=true",
            "metadata.none=null",
            "metadata.id==15878708649682983132",
            "user=jo",
            'user="jo"',
            "user>ja",
            'user ~ "^j"',
            "time>2024-02-29",
            "name=torchelastic.worker.status.FAILED",
        ],
    )
    def test_met(self, condition):
        """What is so meets the condition."""
        assert where(condition).matches(WORKER)

    @pytest.mark.parametrize(
        "condition",
        [
            "worker.exit_code=9",
            'worker.exit_code="-9"',
            "metadata.text>4",
            "metadata.ok=1",
            "metadata.ok>0",
            "metadata.none=0",
            "metadata.none=false",
            "metadata.id=15878708649682983133",
            "metadata.id=15878708649682983131",
            "metadata.id>15878708649682983132",
            "metadata.list.2=1",
            "metadata.list=10",
            "metadata.list ~ 1",
            "metadata={}",
            "metadata.metadata.local_rank.1=3",
            "absent=5",
            "absent=null",
            "absent<5",
            "absent~.",
            "absent!=5",
            "absent!~.",
            "worker.exit_code.x=1",
            "user.x=1",
        ],
    )
    def test_not_met(self, condition):
        """What is not so does not."""
        assert not where(condition).matches(WORKER)

    @pytest.mark.parametrize(
        ("condition", "value"),
        [
            ("x=NaN", float("nan")),
            ("x=NaN", "NaN"),
            ("x=-Infinity", float("-inf")),
            ("x>1", float("inf")),
            ("x=1e400", float("inf")),
            ("x=18446744073709551617", 2**64 + 1),
            ("x=18446744073709551617", "18446744073709551617"),
            ("x=", ""),
            ('x=""', ""),
            ("x=a=b", "a=b"),
            ("x=[1]", "[1]"),
            ("x=é", "é"),
            ("x=1", [[[1]]]),
            ("x.y=1", [{"y": 1}]),
            ("x.0.y=1", [{"y": 1}]),
            ("x=" + "9" * 5000, "9" * 5000),
        ],
    )
    def test_values(self, condition, value):
        """Every value can be asked for."""
        assert where(condition).matches({"x": value})

    def test_longest_key(self):
        """Of keys with dots in them each is found, the longest first."""
        said = {"a": {"b": {"c": 1}}, "a.b": {"c": 2}, "a.b.c": 3}

        assert [True] * 3 == [
            where(f"a.b.c={each}").matches(said) for each in (1, 2, 3)
        ]
        assert not where("a.b.c=4").matches(said)

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("", "unknown condition ''"),
            ("rank", "unknown condition 'rank'"),
            ("=5", "unknown condition '=5'"),
            ('x="a', 'no JSON text "a'),
            ("x<true", "< needs a number or a text, got true"),
            ("x~a(", "no regular expression 'a('"),
            (".".join("x" * 51) + "=1", "more than 50 parts"),
        ],
    )
    def test_wrong(self, condition, expected):
        """What is wrong is told with what came."""
        with pytest.raises(ValueError, match=re.escape(expected)):
            where(condition)

    def test_deep(self):
        """However deep a value or JSON in a string is, it is looked at."""
        deep = json.loads("[" * 900 + "1" + "]" * 900)

        assert where("x=1").matches({"x": deep})
        assert not where("x.y=1").matches({"x": "[" * 100_000})
        assert not where("x.y.z=1").matches({"x": '{"y":' * 5000})

    @given(st.text(max_size=20), st.dictionaries(st.text(), JSON_VALUES))
    def test_any(self, text, said):
        """Any text is a condition or a ValueError, on any record."""
        for condition in text, f"a{text}", f"a={text}", f"a ~ {text}":
            try:
                wanted = where(condition)
            except ValueError:
                continue
            wanted.matches(said)
            wanted.matches({"a": said})

    @given(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=5)
    )
    def test_negation(self, said):
        """!= is met wherever = is not, and !~ wherever ~ is not."""
        for equal, not_equal in (("=", "!="), ("~", "!~")):
            for value in "1", "true", '"1"', "a":
                is_met = where(f"a{equal}{value}").matches({"a": said})

                assert is_met is not where(f"a{not_equal}{value}").matches(
                    {"a": said}
                )


TEXTS = st.text(max_size=6) | st.sampled_from(
    ["job-1", "a/b", 'a"b', "\\", ""]
)
SAID = st.fixed_dictionaries(
    {},
    optional={
        key: TEXTS | JSON_VALUES
        for key in ("run_id", "name", "source", "user", "message")
    },
)


class TestNeedles:
    @given(SAID, TEXTS, st.sampled_from(["user", "run_id", "name", "message"]))
    def test_safe(self, said, text, key):
        """What matches has every needle in it, whoever wrote the line."""
        wanted = [
            filters.of_run(text),
            filters.of_name(text),
            filters.of_source("WORKER"),
            where(f"{key}={json.dumps(text)}"),
            where(f"{key}={text.strip()}") if text[:1] != '"' else Filter(),
        ]
        for line in (said, said | {key: text}, said | {"source": "WORKER"}):
            spellings = encode(line), json.dumps(line).encode()
            for each in wanted:
                if each.matches(json.loads(spellings[1])):
                    assert all(
                        needle in raw
                        for needle in each.must_hold
                        for raw in spellings
                    )

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (filters.of_run("job-1"), (b'"job-1"',)),
            (filters.of_run('a"b'), ()),
            (filters.of_run("a\\b"), ()),
            (filters.of_run("a/b"), ()),
            (filters.of_run("é"), ()),
            (filters.of_run("\x7f"), ()),
            (filters.of_name("n"), (b'"n"',)),
            (filters.of_name("n*"), ()),
            (filters.of_source("worker"), (b'"WORKER"',)),
            (filters.of_source("AGENT"), ()),
            (filters.of_kind("event"), ()),
            (where("user=jo"), (b'"jo"',)),
            (where('user="5"'), (b'"5"',)),
            (where("user=5"), ()),
            (where("user!=jo"), ()),
            (where("user~jo"), ()),
            (where("level=error"), ()),
            (where("metadata.x=jo"), ()),
            (where("error_trace=jo"), ()),
        ],
    )
    def test_which(self, wanted, expected):
        """There are needles where they are sure."""
        assert expected == wanted.must_hold


class TestOptions:
    @pytest.fixture(name="parse")
    def _parse(self):
        parser = argparse.ArgumentParser(prog="show")
        parser.add_argument("files", nargs="+")
        filtering.add_arguments(parser)

        def parse(*arguments):
            return parser.parse_args(
                filtering.joined_arguments(["FILE", *arguments])
            )

        return parse

    def test_all(self, parse):
        """Every option takes part, and all of them together."""
        options = parse(
            *("--run-id", "job-1", "--source", "WORKER", "--name", "torch*"),
            *("--kind", "event", "--state", "failed", "--level", "error"),
            *("--rank", "3", "--host", "node1", "--since", "2024-02-29"),
            *("--until", "2024-03-02", "--where", "user=jo"),
            *("--where", "metadata.loss", "<", "1", "--grep", "Value"),
            "--no-keepalive",
        )
        wanted = filtering.filter_of(options)

        assert ["FILE"] == options.files
        assert 14 == len(wanted.tests)
        assert ["w"] == those(wanted)

    def test_none(self, parse):
        """Without options all is wanted, but for what the default is."""
        options = parse()

        assert ["w", "k", "l"] == those(filtering.filter_of(options))
        assert ["w", "l"] == those(
            filtering.filter_of(options, keepalive=False)
        )

    def test_keepalive(self, parse):
        """What is said of keep-alives goes before the default."""
        assert ["w", "k", "l"] == those(
            filtering.filter_of(parse("--keepalive"), keepalive=False)
        )

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--level", "loud"),
            ("--rank", "x"),
            ("--since", "tomorrow"),
            ("--since", "-5x"),
            ("--where", "rank"),
            ("--grep", "("),
        ],
    )
    def test_wrong(self, parse, capsys, arguments):
        """What is wrong ends the command with 2 and says the option."""
        with pytest.raises(SystemExit) as caught:
            parse(*arguments)

        assert 2 == caught.value.code
        assert re.search(
            rf"\nshow: error: argument {arguments[0]}: .*\n\Z",
            capsys.readouterr().err,
        )

    def test_no_time(self, parse):
        """Times between which there is none are told of, not searched."""
        with pytest.raises(UsageError, match="--since now is after --until"):
            filtering.filter_of(parse("--since", "now", "--until=-1d"))

        assert filtering.filter_of(parse("--since", "0", "--until", "0"))

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["--since", "-15m", "f"], ["--since=-15m", "f"]),
            (["--until", "-3d"], ["--until=-3d"]),
            (["--since", "-f"], ["--since", "-f"]),
            (["--since"], ["--since"]),
            (["--since", "now"], ["--since", "now"]),
            (["--rank", "-15m"], ["--rank", "-15m"]),
            (["--where", "a", "<", "-5", "f"], ["--where=a < -5", "f"]),
            (["--where", "a=1", "f", "g"], ["--where", "a=1", "f", "g"]),
            (["--where", "a=1", "=", "g"], ["--where", "a=1", "=", "g"]),
            (["--where", "a", "="], ["--where", "a", "="]),
            (["--", "--since", "-15m"], ["--", "--since", "-15m"]),
            ([], []),
        ],
    )
    def test_joined(self, arguments, expected):
        """What argparse would take apart is one argument."""
        assert expected == filtering.joined_arguments(arguments)

    def test_help(self, capsys):
        """The help names every option."""
        parser = argparse.ArgumentParser()
        filtering.add_arguments(parser)
        parser.print_help()
        text = capsys.readouterr().out

        assert all(f"  {name} " in text for name in filtering._OPTIONS)
        assert "--keepalive, --no-keepalive" in text
