"""
How many records there are of what, when, and what failed.
"""

import json
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from running import runner
from strategies import JSON_VALUES

import elastic_events as ee
from elastic_events.reading import activity
from elastic_events.reading.activity import Activity, Silence
from elastic_events.reading.moments import instant
from elastic_events.reading.records import Record
from elastic_events.reading.stats import FIELDS, Statistics


NOW = 1_709_210_096_789


def counted(*lines):
    statistics = Statistics()
    for number, said in enumerate(lines, start=1):
        statistics.see(Record("FILE", number, b"x" * 9, said))
    return statistics.as_dict()


class TestStatistics:
    def test_whole(self):
        """All is counted, with its rate, and the most frequent is first."""
        event = {
            "timestamp": NOW,
            "level": "info",
            "kind": "event",
            "name": "step",
            "source": "WORKER",
            "hostname": "node1",
            "rank": 3,
            "run_id": "job-1",
        }
        failed = event | {
            "timestamp": NOW + 10_000,
            "level": "error",
            "name": "torchelastic.worker.status.FAILED",
            "rank": 0,
            "restart": 2,
        }
        dropped = {
            "timestamp": NOW - 10_000,
            "level": "warning",
            "kind": "log",
            "logger": "elastic_events",
            "metadata": {"dropped": 7},
        }

        assert {
            "lines": 5,
            "bytes": 50,
            "first": "2024-02-29T12:34:46.789Z",
            "last": "2024-02-29T12:35:06.789Z",
            "span": 20.0,
            "per_second": 0.2,
            "untimed": 1,
            "kinds": {
                "event": {"lines": 3, "per_second": 0.15},
                "log": {"lines": 1, "per_second": 0.05},
            },
            "levels": {
                "info": {"lines": 2, "per_second": 0.1},
                "error": {"lines": 1, "per_second": 0.05},
                "warning": {"lines": 1, "per_second": 0.05},
            },
            "sources": {"WORKER": {"lines": 3, "per_second": 0.15}},
            "names": {
                "step": {"lines": 2, "per_second": 0.1},
                "torchelastic.worker.status.FAILED": {
                    "lines": 1,
                    "per_second": 0.05,
                },
            },
            "loggers": {"elastic_events": {"lines": 1, "per_second": 0.05}},
            "hosts": {"node1": {"lines": 3, "per_second": 0.15}},
            "ranks": {
                "3": {"lines": 2, "per_second": 0.1},
                "0": {"lines": 1, "per_second": 0.05},
            },
            "left_out": {},
            "runs": {"job-1": {"lines": 3, "failures": 1, "restarts": 2}},
            "failures": {"lines": 1, "workers": 1},
            "dropped": 7,
            "silences": [
                {
                    "from": "2024-02-29T12:34:46.789Z",
                    "to": "2024-02-29T12:34:56.789Z",
                    "seconds": 10.0,
                },
                {
                    "from": "2024-02-29T12:34:56.789Z",
                    "to": "2024-02-29T12:35:06.789Z",
                    "seconds": 10.0,
                },
            ],
        } == counted(event, failed, event, dropped, {})

    def test_nothing(self):
        """Of nothing there is nothing, in the same shape."""
        nothing = counted()

        assert counted({}).keys() == nothing.keys()
        assert 0 == nothing["lines"]
        assert nothing["first"] is nothing["per_second"] is None

    def test_keepalives(self):
        """Keep-alives are counted, but do not end a silence."""
        keepalive = {"kind": "rdzv", "name": "d.py:Executor._keep_alive"}
        result = counted(
            {"timestamp": NOW},
            keepalive | {"timestamp": NOW + 5000},
            {"timestamp": NOW + 9000},
        )

        assert 3 == result["lines"]
        assert [9.0] == [each["seconds"] for each in result["silences"]]

    @pytest.mark.parametrize(
        "timestamp", [10**400, -(10**400), 1e300, 2**63, "1", True, None]
    )
    def test_no_time(self, timestamp):
        """What is no moment of the calendar is no time."""
        result = counted({"timestamp": timestamp}, {"timestamp": NOW})

        assert 1 == result["untimed"]
        assert result["first"] == result["last"] == "2024-02-29T12:34:56.789Z"

    @pytest.mark.parametrize("timestamp", [-1, 0, -1000, -62_135_596_800_000])
    def test_before_the_epoch(self, timestamp):
        """A time before the epoch is one."""
        result = counted({"timestamp": timestamp}, {"timestamp": timestamp})

        assert 0 == result["untimed"]
        assert instant(timestamp) == result["first"] == result["last"]

    def test_one_by_one(self):
        """One by one or all at once is the same, in any order of time."""
        times = [0, 5, 70_000, 3000, 1, 69_999, 70_000.5, 200_000]
        records = [
            Record("FILE", 1, b"", {"timestamp": NOW + time}) for time in times
        ]
        at_once, reverse, one_by_one = Statistics(), Statistics(), Statistics()
        at_once.see_all(records)
        reverse.see_all(reversed(records))
        for record in records:
            one_by_one.see(record)

        assert at_once.as_dict() == one_by_one.as_dict() == reverse.as_dict()
        assert [129.9995, 66.999, 2.995] == [
            each["seconds"] for each in at_once.as_dict()["silences"]
        ]

    def test_foreign_dropped(self):
        """Only the package's own lines say what it dropped."""
        said = {"logger": "elastic_events", "metadata": {"dropped": 7}}

        assert 0 == counted(said)["dropped"]
        assert 7 == counted(said | {"kind": "log"})["dropped"]
        assert (
            0
            == (
                counted(said | {"kind": "log", "metadata": {"dropped": True}})[
                    "dropped"
                ]
            )
        )

    def test_restarts(self):
        """Of each run the highest restart is told, if there is one."""
        result = counted(
            {"run_id": "a", "restart": 3},
            {"run_id": "a", "restart": 1},
            {"run_id": "a", "restart": "9"},
            {"run_id": "b"},
        )

        assert {
            "a": {"lines": 3, "failures": 0, "restarts": 3},
            "b": {"lines": 1, "failures": 0, "restarts": None},
        } == result["runs"]

    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from([*FIELDS.values(), "run_id", "timestamp"]),
                JSON_VALUES,
            )
        )
    )
    def test_any_values(self, lines):
        """Values of any type are counted, each once."""
        result = counted(*lines)

        assert len(lines) == result["lines"]
        json.dumps(result)
        for field, key in FIELDS.items():
            given_ = sum(said.get(key) is not None for said in lines)
            assert given_ == sum(
                each["lines"] for each in result[field].values()
            )

    def test_bounded(self):
        """However many and long the values, memory is bounded, none lost."""
        import tracemalloc

        statistics = Statistics()
        tracemalloc.start()
        for number in range(12_000):
            said = {
                "name": f"{number}" + "n" * 3000,
                "run_id": f"{number}",
                "timestamp": number * 3_600_000,
            }
            statistics.see(Record("FILE", number, b"", said))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        result = statistics.as_dict()

        assert peak < 30_000_000
        assert 1000 == len(result["names"]) == len(result["runs"])
        assert {"names": 11_000, "runs": 11_000} == result["left_out"]
        assert 200 == max(map(len, result["names"]))


class TestActivity:
    @given(st.lists(st.integers(0, 100_000) | st.floats(0, 1e6), min_size=1))
    def test_silences(self, moments):
        """All silences from a spell on are found, in any order."""
        there = Activity()
        for each in moments:
            there.see(each)
        gaps = [end - start for start, end in pairwise(sorted(moments))]
        found = [each.end - each.start for each in there.silences(1000)]

        assert sorted(found, reverse=True) == found
        assert [each for each in found if each >= 2000] == sorted(
            (each for each in gaps if each >= 2000), reverse=True
        )

    def test_wider(self, monkeypatch):
        """With too many spells the longest silence is still right."""
        monkeypatch.setattr(activity, "_MOST_SPELLS", 10)
        there = Activity()
        for second in (*range(100), *range(1000, 1100)):
            there.see(second * 1000)

        assert [Silence(99_000, 1_000_000)] == there.silences(1)
        assert 901.0 == there.silences(1)[0].seconds
        assert len(there._spells) <= 10

    def test_far(self):
        """Moments of any size are taken."""
        there = Activity()
        for each in -1e300, 0, 2**70:
            there.see(each)

        assert 2 == len(there.silences(3))

    def test_nothing(self):
        """Without a moment there is no silence."""
        assert [] == Activity().silences(3)


class TestCommand:
    @pytest.fixture(name="run")
    def _run(self, capfd):
        return runner(capfd, "stats")

    @pytest.fixture(name="file")
    def _file(self, tmp_path):
        file = tmp_path / "events.jsonl"
        log = ee.get_logger(f"file:{file}", name="trainer").bind(
            run_id="j\x1b"
        )
        for timestamp in NOW, NOW + 3_600_500:
            log.record(
                ee.Event("n\u202e", ee.EventSource.WORKER, timestamp, {"a": 1})
            )
        log.record(ee.RdzvEvent("f.py:join", "j", "joined", "h", 1, "RUNNING"))
        log.record(
            ee.Event("n\u202e", ee.EventSource.AGENT, NOW + 5000, {"a": 1})
        )
        return file

    def test_json(self, run, file):
        """-o json gives one object."""
        status, out, err = run("-o", "json", "--name", "n*", file)
        result = json.loads(out)

        assert (0, "") == (status, err)
        assert {"n\u202e": {"lines": 3, "per_second": 0.000833}} == (
            result["names"]
        )
        assert file.stat().st_size > result["bytes"]

    def test_pretty(self, run, file):
        """People get tables, in which nothing acts on their terminal."""
        status, out, err = run("--name", "n*", file)
        lines = out.splitlines()

        assert (0, "") == (status, err)
        assert lines[0].startswith("3 lines, ")
        assert [
            "from 2024-02-29T12:34:56.789Z to 2024-02-29T13:34:57.289Z:"
            " 1:00:00.500, 0.000833 lines per second",
            "0 lines of failures, 0 events of failed workers",
            "",
            "kind   lines  per second",
            "event      3    0.000833",
            "",
            "level  lines  per second",
            "info       3    0.000833",
            "",
            "source  lines  per second",
            "WORKER      2    0.000555",
            "AGENT       1    0.000278",
        ] == lines[1:13]
        assert [
            "name     lines  per second",
            "n\\u202e      3    0.000833",
        ] == lines[17:19]
        assert [
            "run_id  lines  failures  restarts",
            "j\\x1b       3         0         -",
            "",
            "longest silences, of all hosts together (keep-alives do not"
            " count)",
            "from                                            to          for",
            "2024-02-29T12:35:01.789Z  2024-02-29T13:34:57.289Z  0:59:55.500",
            "2024-02-29T12:34:56.789Z  2024-02-29T12:35:01.789Z      0:00:05",
        ] == lines[-7:]

    def test_nothing(self, run, file):
        """Where nothing is wanted, nothing is counted."""
        expected = (
            "0 lines, 0 bytes\n"
            "0 lines of failures, 0 events of failed workers\n"
        )

        assert (0, expected, "") == run("--name", "x", file)

    def test_many(self, run, tmp_path):
        """Of a long table the beginning is shown."""
        file = tmp_path / "f"
        file.write_text(
            "".join(f'{{"kind":"log","rank":{i}}}\n' for i in range(1100))
        )
        _, out, _ = run(file)

        assert out.startswith("1100 lines, ")
        assert "\n1100 lines without a time\n" in out
        assert out.endswith(
            "\n… and 980 more (all with -o json)"
            "\n… and 100 lines with others\n"
        )
