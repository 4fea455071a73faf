"""
Whether lines are as they are promised to be, and none is missing.
"""

import json
import random

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st
from running import runner
from strategies import JSON_VALUES
from test_torchelastic import STREAMS

import elastic_events as ee
from elastic_events.encoding import encode
from elastic_events.reading import sequences, writers
from elastic_events.reading.moments import instant
from elastic_events.reading.records import Finding, Record
from elastic_events.reading.rules import problems
from elastic_events.reading.sequences import Loss, Sequences
from elastic_events.reading.validating import Validator
from elastic_events.reading.wording import counted
from elastic_events.reading.writers import Writers
from elastic_events.schema import KEYS, line_schema


SCHEMA = jsonschema.Draft202012Validator(line_schema())
NOW = 1_709_210_096_789
WORKER = {
    "local_rank": 1,
    "role_rank": 1,
    "role_world_size": 2,
    "group_world_size": 1,
    "exit_code": -9,
    "pid": 12,
    "entry_point": "train.py",
    "error": {"type": "ValueError", "message": "no", "timestamp": 5},
}
COMMON = {
    "timestamp": NOW,
    "time": "2024-02-29T12:34:56.789Z",
    "level": "info",
    "kind": "event",
    "name": "n",
    "message": "n",
    "source": "WORKER",
    "hostname": "node1",
    "pid": 12,
    "seq": 0,
}
EVENT = {
    **COMMON,
    "truncated": True,
    "run_id": "job-1",
    "rank": 1,
    "local_rank": 1,
    "restart": 0,
    "error_trace": "Traceback",
    "worker": WORKER,
    "metadata": {"step": 1},
    "user": "jo",
}
RDZV = {
    **COMMON,
    "kind": "rdzv",
    "node_state": "RUNNING",
    "local_id": 0,
    "master_endpoint": "h:1",
}
LOG = {key: COMMON[key] for key in COMMON if key != "name"} | {
    "kind": "log",
    "logger": "trainer",
    "metadata": {},
}
LINES = [EVENT, RDZV, LOG]

# What is nearly right, and what is not.
TRICKY = st.sampled_from(
    [
        *("", "event", "rdzv", "log", "info", "AGENT", "2024-02-29"),
        *("2024-02-29T12:34:56.789Z", "x2024-02-29T12:34:56.789Z", "x"),
        *(0, 1, -1, 1.0, 1.5, True, False, None, 2**70, -(2**70), 1e300),
        *(
            float("nan"),
            float("inf"),
            -62_135_596_800_001,
            253_402_300_800_000,
        ),
        *([], {}, ["event"], {"x": 1}, {"error": {}}, {"pid": 1.0}),
        *({"error": {"type": 1}}, {"error": {"type": ""}}, {"error": 1}),
        *({"error": {"other": 1}}, {"entry_point": None}, {"pid": True}),
        *({"error": {"timestamp": 1.0}}, {"error": {"message": None}}),
    ]
)


def seen(*lines, file="FILE", **options):
    """
    Return what a validator says of lines, each bytes or what it says.
    """
    validator = Validator(**options)
    for number, said in enumerate(lines, start=1):
        raw = encode(said).rstrip(b"\n")
        validator.see(Record(file, number, raw, said))
    validator.finish()
    return validator


def found(*lines, **options):
    return [
        (flaw.kind, str(flaw.finding))
        for flaw in seen(*lines, **options).flaws
    ]


def written(seq, **changes):
    timestamp = changes.get("timestamp", NOW)
    return EVENT | {"seq": seq, "time": instant(timestamp)} | changes


class TestProblems:
    @pytest.mark.parametrize("said", LINES)
    def test_none(self, said):
        """A line that is right has none."""
        SCHEMA.validate(said)

        assert [] == problems(said)

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (
                {},
                [
                    "no timestamp",
                    "no time",
                    "no level",
                    "no kind",
                    "no message",
                    "no source",
                    "no hostname",
                    "no pid",
                    "no seq",
                ],
            ),
            (
                EVENT | {"level": "loud"},
                [
                    'level is "loud", expected one of debug, info, warning,'
                    " error, critical"
                ],
            ),
            (EVENT | {"pid": "7"}, ['pid is "7", expected an integer']),
            (
                EVENT | {"run_id": ""},
                ['run_id is "", expected a text that is not empty'],
            ),
            (
                EVENT | {"time": "now"},
                [
                    'time is "now", expected a text like'
                    " 2024-02-29T12:34:56.789Z"
                ],
            ),
            (
                EVENT | {"timestamp": 10**18},
                [
                    "timestamp is 1000000000000000000, expected milliseconds"
                    " within the years 1 to 9999"
                ],
            ),
            (RDZV | {"metadata": {}}, ["metadata on a line of kind rdzv"]),
            (LOG | {"name": "n"}, ["name on a line of kind log"]),
            (
                EVENT | {"worker": {"x\x1b": 1, "error": {"type": 5}}},
                [
                    'unknown key worker."x\\u001b"',
                    "worker.error.type is 5, expected a text",
                ],
            ),
            (
                EVENT | {"worker": "w" * 10_000},
                [
                    f'worker is "{"w" * 58}…, expected an object that is not'
                    " empty"
                ],
            ),
        ],
    )
    def test_told(self, said, expected):
        """What is wrong is told with what came and what is expected."""
        assert expected == problems(said)

    @settings(max_examples=600)
    @given(st.data())
    def test_as_the_schema(self, data):
        """A line has problems if, and only if, the schema does not take it."""
        said = dict(data.draw(st.sampled_from(LINES)))
        for _ in range(data.draw(st.integers(1, 3))):
            key = data.draw(st.sampled_from([*KEYS, "user"]))
            if data.draw(st.booleans()):
                said[key] = data.draw(TRICKY | JSON_VALUES)
            else:
                said.pop(key, None)

        assert SCHEMA.is_valid(said) is not bool(problems(said))

    def test_every_value(self):
        """The same for every key of every kind with every tricky value."""
        values = [*TRICKY.elements, *WORKER.values()]
        for line in LINES:
            for key in KEYS:
                left_out = {each: line[each] for each in line if each != key}
                for said in (
                    left_out,
                    *(line | {key: value} for value in values),
                ):
                    assert SCHEMA.is_valid(said) is not bool(problems(said))


class TestFlaws:
    def test_none(self):
        """Where all is well nothing is found."""
        validator = seen(*(written(seq) for seq in range(200)))

        assert {"lines": 200, "raw": 0, "findings": [], "counts": {}} == (
            validator.as_dict()
        )

    def test_order(self):
        """Our keys stand in their order, before all others."""
        keys = list(EVENT)
        swapped = [keys[1], keys[0], *keys[2:]]
        first = [keys[-1], *keys[:-1]]

        assert [
            ("order", "FILE:1: keys out of order"),
            ("order", "FILE:2: keys out of order"),
        ] == found(
            {key: EVENT[key] for key in swapped},
            {key: written(1)[key] for key in first},
            written(2),
        )

    def test_time(self):
        """The time is that of the timestamp."""
        assert [
            (
                "time",
                'FILE:1: time is "2024-02-29T12:34:56.789Z", but timestamp'
                " 1709210096788",
            )
        ] == found(EVENT | {"timestamp": NOW - 1})

    def test_time_goes_back(self):
        """A step back of more than a second is found, and only the step."""
        times = [0, 5000, 4000, 2999, 3000, 9000]
        lines = [
            written(seq, timestamp=NOW + time)
            for seq, time in enumerate(times)
        ]

        assert [
            ("time_back", "FILE:4: time goes back by 1.0 s (node1 pid 12)")
        ] == found(*lines)

    @pytest.mark.parametrize("timestamp", [10**400, 1e300, float("nan")])
    def test_no_time(self, timestamp):
        """What is no time does not go back."""
        lines = [
            EVENT | {"seq": seq, "timestamp": each}
            for seq, each in enumerate([NOW, timestamp, NOW])
        ]

        assert {"schema": 1} == {
            kind: count
            for kind, count in seen(*lines).as_dict()["counts"].items()
            if kind != "time"
        }

    def test_schema(self):
        """What the schema does not take is found."""
        assert [
            ("schema", 'FILE:1: pid is "7", expected an integer')
        ] == found(EVENT | {"pid": "7"})

    def test_kept(self):
        """Of many flaws the first are kept, and all are counted."""
        told = []
        validator = seen(
            *(written(seq, level="x") for seq in range(1500)), tell=told.append
        )

        assert 1000 == len(validator.flaws)
        assert told == validator.flaws
        assert {"schema": 1500} == validator.as_dict()["counts"]

    def test_reader(self):
        """What the reader found is taken, by its kind."""
        validator = Validator()
        for what in (
            "torn record, 5 bytes",
            "2 records on one line",
            "line of 5 bytes passed over: longer than 4",
            "not JSON: x",
        ):
            validator.report(Finding("FILE", 3, what))

        assert {"torn": 1, "glued": 1, "over_long": 1, "bad": 1} == (
            validator.as_dict()["counts"]
        )
        assert {
            "file": "FILE",
            "line": 3,
            "what": "torn record, 5 bytes",
            "kind": "torn",
        } == validator.as_dict()["findings"][0]

    @given(st.lists(st.dictionaries(st.sampled_from([*KEYS]), JSON_VALUES)))
    def test_any(self, lines):
        """Any lines at all are looked at."""
        result = seen(*lines).as_dict()

        assert len(lines) == result["lines"]
        json.dumps(result)


class TestSequences:
    def test_missing(self):
        """What is missing between the first and last line is told."""
        assert [
            ("missing", "FILE: node1 pid 12: 4 lines missing (seq 5-7, 9)")
        ] == found(*(written(seq) for seq in (3, 4, 8, 10)))

    def test_one(self):
        """One line is one line."""
        assert [
            ("missing", "FILE: node1 pid 12: 1 line missing (seq 1)")
        ] == found(written(0), written(2))

    def test_many_gaps(self):
        """Of many gaps the first are named."""
        assert [
            (
                "missing",
                "FILE: node1 pid 12: 7 lines missing (seq 1, 3, 5, 7, 9, …)",
            )
        ] == found(*(written(seq) for seq in range(0, 15, 2)))

    def test_filtered(self):
        """What was left out on purpose is not missed."""
        assert [] == found(written(0), written(5), is_whole=False)

    def test_duplicate(self):
        """A line that comes twice is found, wherever it comes again."""
        lines = [written(seq) for seq in range(3)]

        assert [
            ("duplicate", "FILE:4: seen before: seq 1"),
            ("duplicate", "FILE:5: seen before: seq 0"),
        ] == found(*lines, lines[1], lines[0])

    def test_file_twice(self):
        """The lines of a file that is given twice are found."""
        lines = [written(seq) for seq in range(70)]
        lines += [written(seq, message="again") for seq in range(70)]

        assert [
            ("duplicate", f"FILE:{140 + number}: seen before: seq {seq}")
            for number, seq in enumerate([*range(70)] * 2, start=1)
        ] == found(*lines, *lines)

    def test_new_writer(self):
        """A zero begins a new writer, with a sequence of its own."""
        assert [] == found(
            *(written(seq, message="a") for seq in range(100)),
            *(written(seq, message="b") for seq in range(100)),
        )

    @pytest.mark.parametrize("seed", range(20))
    def test_threads(self, seed):
        """Lines that threads wrote in another order are no flaws."""
        order = sorted(
            range(300),
            key=lambda seq: seq + random.Random(seed + seq * 97).uniform(0, 9),
        )

        assert [] == found(
            *(written(seq, message="a") for seq in order),
            *(written(seq, message="b") for seq in order),
        )

    def test_destinations(self):
        """One process's lines in two files are two sequences."""
        validator = Validator()
        for file, numbers in (("a", range(9)), ("b", range(7)), ("a", [9])):
            for seq in numbers:
                said = written(seq, message=file)
                validator.see(Record(file, seq + 1, encode(said), said))
        validator.finish()

        assert [] == validator.flaws

    def test_rotated(self):
        """A sequence goes on in the next file, and a gap there is found."""
        validator = Validator()
        for file, numbers in (("f.1", range(9)), ("f", range(10, 20))):
            for seq in numbers:
                said = written(seq)
                validator.see(Record(file, seq + 1, encode(said), said))
        validator.finish()

        assert ["f.1: node1 pid 12: 1 line missing (seq 9)"] == [
            str(flaw.finding) for flaw in validator.flaws
        ]

    @given(st.lists(st.integers(1, 400), min_size=1, unique=True))
    def test_losses(self, numbers):
        """Exactly what is not there is missing."""
        there = Sequences()
        for seq in numbers:
            assert not there.see(("h", 1), "f", seq, b"%d" % seq)
        missing = set(range(min(numbers), max(numbers))) - set(numbers)
        losses = there.losses()

        assert len(missing) == sum(loss.lines for loss in losses)
        for loss in losses:
            assert loss.spans
            for first, last in loss.spans:
                assert set(range(first, last + 1)) <= missing

    @pytest.mark.parametrize("step", [1, 1000, 10**18])
    def test_bounded(self, monkeypatch, step):
        """However many lines and writers, memory is bounded."""
        monkeypatch.setattr(sequences, "_MOST_PAGES", 8)
        there = Sequences()
        for number in range(5000):
            there.see(("h", number % 7), "f", number * step, b"%d" % number)
            assert sum(map(len, there._streams.values())) <= 9
            assert len(there._current) <= 9

        assert len(there.losses()) <= 7

    def test_many_writers(self, monkeypatch):
        """Nor does it grow with the writers that rendezvous events name."""
        monkeypatch.setattr(sequences, "_MOST_PAGES", 8)
        there = Sequences()
        for seq in range(100):
            there.see(("h", seq), "f", seq, b"%d" % seq, is_rdzv=True)

            assert len(there._current) <= 9

    def test_far(self):
        """A gap may be of any size."""
        there = Sequences()
        for seq in 1, 10**30:
            there.see(("h", 1), "f", seq, b"%d" % seq)

        assert [
            Loss(("h", 1), "f", 10**30 - 2, ((2, 10**30 - 1),))
        ] == there.losses()


class TestWriters:
    @pytest.mark.parametrize("first", ["event", "rdzv"])
    @pytest.mark.parametrize("host", ["localhost", "node1.cluster", "node1"])
    def test_rendezvous(self, host, first):
        """A process is one writer, whatever torch calls its host."""
        lines = [
            RDZV | {"seq": seq, "hostname": host, "message": first}
            if (seq % 3 == 0) is (first == "rdzv")
            else written(seq)
            for seq in range(20)
        ]

        assert [] == found(*lines)
        assert [
            ("duplicate", f"FILE:{21 + seq}: seen before: seq {seq}")
            for seq in range(20)
        ] == found(*lines, *lines)
        del lines[7:9]
        ((kind, what),) = found(*lines)
        assert "missing" == kind
        assert what.endswith("pid 12: 2 lines missing (seq 7-8)")

    @pytest.mark.parametrize("start", range(3))
    def test_other_process(self, start):
        """A rendezvous event that states another process breaks no gap."""
        lines = [
            RDZV | {"seq": seq, "hostname": "h", "pid": 1}
            if (seq + start) % 3
            else written(seq)
            for seq in range(20)
        ]
        again = [said | {"message": "again"} for said in lines]

        assert [] == found(*lines, *again)
        assert {"duplicate": 20} == (seen(*lines, *lines).as_dict()["counts"])
        del lines[7:9]
        assert ["missing"] == [kind for kind, _ in found(*lines, *again)]

    def test_rotated(self):
        """In the next file the process is known by either name."""
        validator = Validator()
        lines = [RDZV | {"hostname": "localhost"}, written(1), written(3)]
        for file, said in zip(("f.1", "f.1", "f"), lines, strict=True):
            validator.see(Record(file, 1, encode(said), said))
        validator.finish()

        assert ["f.1: localhost pid 12: 1 line missing (seq 2)"] == [
            str(flaw.finding) for flaw in validator.flaws
        ]

    @pytest.mark.parametrize("host", ["node%d", "node%d.cluster", "10.0.0.%d"])
    def test_nodes(self, host):
        """Nodes whose agents have the same process id are not mixed up."""
        lines = [
            (RDZV if seq % 2 else EVENT)
            | {"seq": seq, "hostname": host % node, "message": f"{node}"}
            for seq in range(20)
            for node in range(3)
        ]

        assert [] == found(*lines)
        del lines[30]
        assert ["missing"] == [kind for kind, _ in found(*lines)]

    def test_bounded(self, monkeypatch):
        """However many there are, memory is bounded."""
        monkeypatch.setattr(writers, "_MOST_PLACES", 10)
        there = Writers()
        for pid in range(100):
            there.writer("f", "h", pid, is_rdzv=pid % 2 == 0)

        assert len(there._places) <= 10
        assert len(there._aliases) <= 10


class TestCommand:
    @pytest.fixture(name="run")
    def _run(self, capfd):
        return runner(capfd, "validate")

    @pytest.fixture(name="file")
    def _file(self, tmp_path):
        file = tmp_path / "events.jsonl"
        log = ee.get_logger(f"file:{file}", name="trainer").bind(run_id="j")
        log.record(ee.Event("n", ee.EventSource.WORKER, metadata={"a": 1}))
        log.record(ee.RdzvEvent("f.py:join", "j", "joined", "h", 0, "RUNNING"))
        log.error("broken", reason="disk")
        return file

    def test_fine(self, run, file):
        """What the package writes is well."""
        assert (0, "3 lines: all is well\n", "") == run(file)

    def test_pretty(self, run, file):
        """Each finding is a row, what cannot be shown is escaped."""
        lines = file.read_bytes().splitlines(keepends=True)
        odd = file.with_name("odd\x1b")
        odd.write_bytes(lines[0] + b"junk\n" + lines[2] + lines[2])
        place = str(odd).replace("\x1b", "\\x1b")
        status, out, err = run(odd)
        rows = out.splitlines()

        assert (1, "") == (status, err)
        assert rows[0].startswith(f"{place}:2: not JSON")
        assert f"{place}:4: seen before: seq 2" == rows[1]
        assert rows[2].endswith("1 line missing (seq 1)")
        assert ["3 lines: 1 bad, 1 duplicate, 1 missing"] == rows[3:]

    def test_json(self, run, file):
        """-o json gives one object."""
        status, out, _ = run("-o", "json", file, file)
        result = json.loads(out)

        assert 1 == status
        assert {"duplicate": 3} == result["counts"]
        assert [1, 2, 3] == [each["line"] for each in result["findings"]]

    def test_filtered(self, run, file):
        """With a filter nothing is missed, and bad lines are still found."""
        file.write_bytes(b"x\n" + file.read_bytes())
        status, out, _ = run("--kind", "log", "--run-id", "j", file)

        assert 1 == status
        assert out.endswith("\n1 line: 1 bad\n")

    def test_over_long(self, run, file):
        """A line that is too long is a finding."""
        _, out, _ = run("-o", "json", "--max-line", "100", file)

        assert {"over_long": 3} == json.loads(out)["counts"]

    def test_unreadable(self, run, file):
        """What could not be read is told of, and not said to be well."""
        missing = file.with_name("none")
        told = f"elastic-events: {missing}: No such file or directory\n"

        assert (2, "3 lines: all is well in what was read\n", told) == run(
            file, missing
        )
        assert (2, "0 lines: nothing to check\n", told) == run(missing)

    def test_nothing(self, run, file):
        """Where there is no line, nothing is said to be well."""
        assert (0, "0 lines: nothing to check\n", "") == run(
            "--run-id", "x", file
        )

    def test_strict(self, run, file):
        """Bad lines always matter, with --strict or without."""
        file.write_bytes(b"x\n" + file.read_bytes())

        assert 1 == run(file)[0]
        assert run(file) == run("--strict", file)
        assert "--strict" not in run("--help")[1]

    @pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
    def test_raw(self, run, stream):
        """torch's own lines are counted only."""
        status, out, _ = run(stream)
        count = len(stream.read_bytes().splitlines())

        assert (
            0,
            f"{counted(count, 'line')}, {count} of them torch's own, not"
            " checked: all is well\n",
        ) == (status, out)
