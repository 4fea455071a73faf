"""
Reading bytes that may be anything, and what is found among them.
"""

import gzip
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import elastic_events as ee
from elastic_events.reading.lines import LineReader, chunks_of, records_of
from elastic_events.reading.records import Finding, Record, said_by, time_of
from elastic_events.reading.sources import expand, read


STREAMS = sorted((Path(__file__).parent / "data" / "torchrun").glob("*.jsonl"))
BOM = b"\xef\xbb\xbf"


def line(number, **more):
    """
    Return one of our lines, without its end.
    """
    said = {
        "timestamp": 1_700_000_000_000 + number,
        "time": "2023-11-14T22:13:20.000Z",
        "level": "info",
        "kind": "log",
        "message": f"message {number}",
        **more,
    }
    return json.dumps(said, separators=(",", ":")).encode()


A, B, C = (line(number) for number in range(3))
TORN = A[:-9]
NESTED = line(7, metadata={"inner": json.loads(B)})


def records_in(stream, report, **options):
    """
    Return the records of *stream*.
    """
    return records_of(chunks_of(stream), LineReader("f", report, **options))


def found_in(data, **options):
    """
    Return numbers and bytes of the records in *data*, and what is reported.
    """
    findings = []
    records = records_in(io.BytesIO(data), findings.append, **options)
    return (
        [(record.number, record.raw) for record in records],
        [(finding.number, finding.what) for finding in findings],
    )


def read_all(*paths, **options):
    findings = []
    records = list(read(map(str, paths), findings.append, **options))
    return records, findings


class TestRecord:
    def test_place(self):
        """A record's place is its file and line."""
        assert "a.jsonl:7" == Record("a.jsonl", 7, b"{}", {}).place

    @pytest.mark.parametrize(
        ("number", "text"), [(7, "a.jsonl:7: torn"), (0, "a.jsonl: torn")]
    )
    def test_finding(self, number, text):
        """A finding's text has the file, the line if any, and what it is."""
        assert text == str(Finding("a.jsonl", number, "torn"))

    @pytest.mark.parametrize(
        ("timestamp", "time"),
        [
            (1705105985, 1705105985),
            (1705105985123456789, 1705105985123456789),
            (1705105985.5, 1705105985.5),
            (-1, -1),
            (1e30, 1e30),
            (float("inf"), None),
            (float("nan"), None),
            ("1705105985", None),
            (True, None),
            (None, None),
            ({}, None),
        ],
    )
    def test_time(self, timestamp, time):
        """A finite number is a time in milliseconds, anything else is none."""
        assert time == time_of({"timestamp": timestamp})


class TestSaidBy:
    @pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
    def test_same_as_recorded(self, sink, stream):
        """A raw line of torch says what our line of the same event says."""
        events = [json.loads(text) for text in stream.read_text().splitlines()]
        for event in events:
            kind = ee.Event if "source" in event else ee.RdzvEvent
            given = kind.deserialize(json.dumps(event))
            ee.get_logger("sink").record(given)
        recorded = []
        for said in sink.said:
            own = ("timestamp", "time", "seq")
            if said["kind"] == "event":
                own += ("hostname", "pid")
            recorded.append({k: v for k, v in said.items() if k not in own})

        assert recorded == [said_by(event) for event in events]

    def test_own_time(self):
        """A raw event that has a time keeps it."""
        event = {
            "name": "n",
            "source": "WORKER",
            "timestamp": 5,
            "metadata": {"a": 1},
        }

        assert {
            "timestamp": 5,
            "level": "info",
            "kind": "event",
            "name": "n",
            "message": "n",
            "source": "WORKER",
            "metadata": {"a": 1},
        } == said_by(event)

    @pytest.mark.parametrize(
        "value",
        [
            {},
            {"event": None, "level": 30, "timestamp": {}, "metadata": "str"},
            {"name": "n", "source": [], "timestamp": 0, "metadata": {}},
            json.loads(A),
        ],
    )
    def test_others(self, value):
        """Our lines, and objects that are nobody's, are left as they are."""
        assert value == said_by(dict(value))

    @given(
        st.dictionaries(
            st.sampled_from(["name", "source", "timestamp", "metadata"]),
            st.sampled_from(["AGENT", "torchelastic.x", 0, None, [], {}]),
        )
    )
    def test_any_types(self, value):
        """Values of any type are no reason to fail."""
        assert isinstance(said_by(value), dict)


class TestLines:
    @pytest.mark.parametrize(
        "end", [b"\n", b"", b"\n\n \n\t\r\n", b"\n" + BOM + b"\n"]
    )
    def test_good(self, end):
        """Good lines are records, and blank ones nothing."""
        data = A + b"\n\n" + B + end

        assert ([(1, A), (3, B)], []) == found_in(data)

    def test_line_ends(self):
        """CRLF and byte order marks at the beginning of lines are no harm."""
        data = BOM + A + b"\r\n" + BOM + B + b"\r\n"

        assert ([(1, A + b"\r"), (2, B + b"\r")], []) == found_in(data)

    def test_separators(self):
        """A line ends at a line feed and at nothing else."""
        raw = '{"m":"a\u2028b\u2029c\x85d\x7f"}'.encode()

        assert ([(1, raw)], []) == found_in(raw)

    def test_stdlib_json(self):
        """What `json` writes and orjson refuses is read."""
        raw = (
            b'{"name":"n","source":"AGENT","timestamp":0,"metadata":'
            b'{"a":"\\udcff","b":NaN,"c":1180591620717411303424,"e":1e400}}'
        )

        assert ([(1, raw)], []) == found_in(raw + b"\n")

    @pytest.mark.parametrize(
        ("raw", "what"),
        [
            (b"null", "not an object but null"),
            (b"5", "not an object but int"),
            (b'"s"', "not an object but str"),
            (b"[]", "not an object but list"),
            (b"true", "not an object but bool"),
            (
                b"Program started...",
                "not JSON: Expecting value (character 1)",
            ),
            (TORN, f"torn record, {len(TORN)} bytes"),
            (A[4:], "not JSON: Expecting value (character 1)"),
            (b'{"a":"\xff"}', "not UTF-8: byte 7 is 0xff"),
            (b"\0" * 512, "512 NUL bytes"),
            (b"\0" * 12 + BOM + b"\r", "12 NUL bytes"),
            (b'{"a":' * 100_000, "not JSON: nested too deeply"),
        ],
    )
    def test_bad(self, raw, what):
        """What is no record is reported once, and spoils no other line."""
        data = b"\n".join((A, raw, B, raw))
        records, findings = found_in(data)

        assert [(1, A), (3, B)] == records
        assert [(2, what), (4, what)] == findings

    @pytest.mark.parametrize(
        ("raw", "records", "what"),
        [
            (A + B + C, [A, B, C], ["3 records on one line"]),
            (A + b" " + BOM + B, [A, B], ["2 records on one line"]),
            (TORN + B, [B], [f"torn record, {len(TORN)} bytes"]),
            (A + TORN, [A], [f"torn record, {len(TORN)} bytes"]),
            (A + b"oops", [A], ["torn record, 4 bytes"]),
            (b"oops " + A, [A], ["torn record, 4 bytes"]),
            (
                TORN + B + TORN + C,
                [B, C],
                [f"torn record, {len(TORN)} bytes"] * 2,
            ),
            (b"\0\0\0" + A, [A], ["3 NUL bytes"]),
            (A + b"\0\0\0", [A], ["3 NUL bytes"]),
            (A + b"\0\0\0" + B, [A, B], ["3 NUL bytes"]),
            (TORN + b"\0\0" + B, [B], [f"torn record, {len(TORN) + 2} bytes"]),
            (A + NESTED, [A, NESTED], ["2 records on one line"]),
            (TORN + NESTED, [NESTED], [f"torn record, {len(TORN)} bytes"]),
            # What is nested in a torn record is none.
            (NESTED[:-1], [], [f"torn record, {len(NESTED) - 1} bytes"]),
            (
                b'{"a":1}{"b":2}',
                [b'{"a":1}', b'{"b":2}'],
                ["2 records on one line"],
            ),
            (b"[1]" + A, [A], ["torn record, 3 bytes"]),
        ],
    )  # fmt: skip
    def test_salvage(self, raw, records, what):
        """Whole records on a line that is damaged are found."""
        data = b"\n".join((raw, C))
        found, findings = found_in(data)

        assert [(1, each) for each in records] + [(2, C)] == found
        assert [(1, each) for each in what] == findings

    def test_torch_salvage(self):
        """Raw lines of torch are salvaged too."""
        raw = STREAMS[0].read_bytes().splitlines()[:3]

        assert (
            [(1, raw[1]), (1, raw[2])],
            [(1, "torn record, 50 bytes")],
        ) == found_in(raw[0][:50] + raw[1] + raw[2])

    def test_hostile_salvage(self):
        """A line that is made of beginnings takes no more than its length."""
        nest = b'{"timestamp":1,"time":"","a":'
        data = nest * 50_000 + b"\n" + A

        assert (
            [(2, A)],
            [(1, "not JSON: nested too deeply")],
        ) == found_in(data)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
    def test_wide(self, encoding):
        """A file in UTF-16 or UTF-32 is one finding."""
        data = (A + b"\n" + B + b"\n").decode().encode(encoding)

        assert (
            [],
            [(0, "UTF-16 or UTF-32, expected UTF-8")],
        ) == found_in(data)

    @pytest.mark.parametrize("length", [1001, 5_000_000, 70_000])
    def test_long_line(self, length):
        """A line over the limit is passed over, and told of."""
        data = b"\n".join((A, b"x" * length, B, b"y" * length))
        what = f"line of {length} bytes passed over: the limit is 1000"

        assert (
            [(1, A), (3, B)],
            [(2, what), (4, what)],
        ) == found_in(data, max_line=1000)

    def test_hole(self):
        """A hole longer than any line hides no record."""
        data = A + b"\n" + bytes(300_000) + B + b"\n" + C

        assert (
            [(1, A), (2, B), (3, C)],
            [(2, "300000 NUL bytes")],
        ) == found_in(data, max_line=1000)

    def test_pieces(self):
        """It does not matter in which pieces the bytes come."""
        data = b"\n".join((BOM + A, TORN + B, b"oops", C + b"\r", b"\0" + A))
        records, findings = [], []
        reader = LineReader("f", findings.append)
        for byte in data:
            records += reader.feed(bytes((byte,)))
        records += reader.finish()

        assert found_in(data) == (
            [(record.number, record.raw) for record in records],
            [(finding.number, finding.what) for finding in findings],
        )

    @given(st.binary(), st.sampled_from([(), (b"a",), (b"a", b"/\xc3")]))
    def test_any_bytes(self, data, must_hold):
        """Any bytes at all are read to their end."""
        found_in(data, must_hold=must_hold)
        found_in(A + data + b"\n" + B, must_hold=must_hold, max_line=150)

    @given(
        st.lists(
            st.sampled_from(
                [A, B, NESTED, b"{", b"}", b'"', b"\n", b"\0", BOM,
                 b'{"name": "',
                 b'{"timestamp":1,"time":"', b"[", b",", b"\xff", b"\\"]
            )
        )
    )  # fmt: skip
    def test_any_pieces(self, pieces):
        """Whatever is glued together, each byte of a record is given once."""
        data = b"".join(pieces)
        records, _ = found_in(data)
        end = 0
        for _, raw in records:
            end = data.index(raw, end) + len(raw)

        assert end <= len(data)

    @given(st.data())
    def test_damage(self, data):
        """Every undamaged record is found, in order, whatever is around it."""
        expected, written = [], []
        for number in range(data.draw(st.integers(0, 8))):
            raw = line(number, metadata={"inner": json.loads(A)})
            before = data.draw(
                st.sampled_from([b"", BOM, b"\0" * 9, raw[:20], b"\n", b"x"])
                | st.integers(0, len(raw) - 1).map(raw.__getitem__).map(
                    lambda byte: bytes((byte,))
                ).filter(lambda byte: byte != b"{")
            )  # fmt: skip
            after = data.draw(st.sampled_from([b"\n", b"\r\n", b"\0\n"]))
            expected.append(raw)
            written.append(before + raw + after)
        records, _ = found_in(b"".join(written))

        assert expected == [raw.strip(b" \r") for _, raw in records]


class TestMustHold:
    def test_prefilter(self):
        """Of our lines only those are read that hold it; numbers stay."""
        data = b"\n".join((A, B, A, B, C))

        assert ([(2, B), (4, B)], []) == found_in(
            data, must_hold=(b"message 1",)
        )

    def test_all(self):
        """A line must hold all of it."""
        lines = [line(1, run_id="x"), line(2, run_id="x"), line(1, rank=2)]

        assert ([(1, lines[0])], []) == found_in(
            b"\n".join(lines), must_hold=(b'"x"', b"message 1")
        )

    def test_spelled_otherwise(self):
        """Lines in which characters may be spelled otherwise are read."""
        lines = [
            A,
            line(1, run_id="x").replace(b'"x"', rb'"\u0078"'),
            line(2, run_id="a/b").replace(b"a/b", rb"a\/b"),
            line(3, run_id="é"),
        ]
        data = b"\n".join(lines)

        assert [(2, lines[1]), (4, lines[3])] == found_in(
            data, must_hold=(b'"x"',)
        )[0]
        assert [(2, lines[1]), (3, lines[2]), (4, lines[3])] == found_in(
            data, must_hold=(b"a/b",)
        )[0]
        assert [(2, lines[1]), (4, lines[3])] == found_in(
            data, must_hold=("é".encode(),)
        )[0]

    def test_damaged(self):
        """Damage among other lines is reported, torch's lines are read."""
        raw = STREAMS[0].read_bytes().splitlines()[0]
        data = b"\n".join((A, TORN, raw, A, TORN + B))

        assert (
            [(3, raw), (5, B)],
            [(each, f"torn record, {len(TORN)} bytes") for each in (2, 5)],
        ) == found_in(data, must_hold=(b"message 1",))

    @given(
        st.lists(
            st.tuples(
                st.text(max_size=5), st.booleans(), st.sampled_from(" \0\r")
            ),
            max_size=9,
        ),
        st.data(),
    )
    def test_loses_nothing(self, given_lines, data):
        """What holds a value is found with the prefilter as without it."""
        lines = []
        for number, (text, is_ascii, blank) in enumerate(given_lines):
            said = json.loads(line(number, run_id=text))
            raw = json.dumps(
                said, separators=(",", ":"), ensure_ascii=is_ascii
            ).encode("utf-8", "backslashreplace")
            lines.append(raw + (blank.encode() if number % 3 else b""))
        whole = b"\n".join(lines)
        texts = [
            text
            for text, _, _ in given_lines
            if text.isprintable() and not set('"\\') & set(text)
        ] or ["x"]
        wanted = data.draw(st.sampled_from(texts))

        def holding(**options):
            records = records_in(io.BytesIO(whole), [].append, **options)
            return [
                record for record in records if record.said["run_id"] == wanted
            ]

        assert holding() == holding(must_hold=(wanted.encode(),))


class TestFiles:
    def test_many(self, tmp_path):
        """Files are read one after the other, patterns in order of names."""
        for name in "cab":
            (tmp_path / name).write_bytes(A + b"\n")
        records, findings = read_all(tmp_path / "c", tmp_path / "[ab]")

        assert [] == findings
        assert [
            Record(str(tmp_path / name), 1, A, json.loads(A)) for name in "cab"
        ] == records

    def test_expand(self, tmp_path):
        """What exists is taken by its name; what is not there stays."""
        odd = tmp_path / "a[1].jsonl"
        odd.write_bytes(A)
        (tmp_path / "a1.jsonl").write_bytes(A)
        given = [str(odd), "-", str(tmp_path / "no*"), str(tmp_path / "no")]

        assert given == expand(given)
        assert ["-", "no", "no"] == expand(["-", "no", "-", "no", "-"])

    def test_twice(self, tmp_path):
        """A file that is named twice is read twice."""
        (tmp_path / "a").write_bytes(A)

        assert 2 == len(read_all(tmp_path / "a", tmp_path / "a")[0])

    def test_unreadable(self, tmp_path):
        """What cannot be read is one finding, and the others are read."""
        (tmp_path / "a").write_bytes(A)
        names = ["no", "no*", "", "a"]
        paths = [str(tmp_path / name) for name in names]
        records, findings = read_all(*paths)

        assert [A] == [record.raw for record in records]
        assert [
            Finding(paths[0], 0, "No such file or directory", True),
            Finding(paths[1], 0, "No file matches", True),
            Finding(paths[2], 0, "Is a directory", True),
        ] == findings

    def test_error_while_reading(self):
        """An error in the middle keeps what was read."""

        class Failing(io.BytesIO):
            def read1(self, size):
                if self.tell():
                    raise OSError(5, "Input/output error")
                return super().read1(size)

        findings = []
        data = A + b"\n" + B + b"\n" + TORN
        records = list(records_in(Failing(data), findings.append))

        assert [A, B] == [record.raw for record in records]
        assert [Finding("f", 2, "Input/output error", True)] == findings

    def test_stdin(self, tmp_path):
        """A dash is standard input, which may be gzip."""
        script = (
            "from elastic_events.reading.sources import read\n"
            "for record in read(['-'], print): print(record.place)"
        )
        for data in (A + b"\n" + B, gzip.compress(A + b"\n" + B)):
            done = subprocess.run(
                [sys.executable, "-c", script],
                input=data,
                capture_output=True,
                check=True,
                timeout=60,
            )

            assert b"-:1\n-:2\n" == done.stdout


class TestGzip:
    @pytest.mark.parametrize("name", ["a.gz", "a.jsonl"])
    def test_whole(self, tmp_path, name):
        """gzip is told by its bytes; members may follow one another."""
        file = tmp_path / name
        file.write_bytes(
            gzip.compress(A + b"\n" + B[:9])
            + gzip.compress(b"")
            + b"\0" * 99
            + gzip.compress(B[9:] + b"\n" + C)
            + b"\0" * 512
        )
        records, findings = read_all(file)

        assert [] == findings
        assert [(1, A), (2, B), (3, C)] == [
            (record.number, record.raw) for record in records
        ]

    def test_not_gzip(self, tmp_path):
        """A name alone makes no gzip: lines are lines, the rest is told of."""
        (tmp_path / "a.gz").write_bytes(A)
        (tmp_path / "b.gz").write_bytes(b"\x28\xb5\x2f\xfd\n\n\x01")
        records, findings = read_all(tmp_path / "a.gz", tmp_path / "b.gz")

        assert [A] == [record.raw for record in records]
        assert ["not gzip data"] == [finding.what for finding in findings]

    def test_cut_off(self, tmp_path):
        """All that there is of a file that was cut off is read."""
        lines = [line(each, run_id=os.urandom(9).hex()) for each in range(999)]
        packed = gzip.compress(b"\n".join(lines))
        file = tmp_path / "a.gz"
        file.write_bytes(packed[: len(packed) // 2])
        records, findings = read_all(file)
        count = len(records)

        assert 300 < count < 700
        assert lines[:count] == [record.raw for record in records]
        assert [Finding(str(file), count, "gzip data are cut off")] == findings

    def test_damaged(self, tmp_path):
        """What stands before the damage is read, and the damage told once."""
        lines = [line(each, run_id=os.urandom(9).hex()) for each in range(999)]
        packed = bytearray(gzip.compress(b"\n".join(lines[:500]) + b"\n"))
        whole = len(packed)
        packed += gzip.compress(b"\n".join(lines[500:]))
        packed[whole + 10 : whole + 20] = b"\xff" * 10
        file = tmp_path / "a.gz"
        file.write_bytes(packed)
        records, findings = read_all(file)

        assert lines[:500] == [record.raw for record in records]
        assert [Finding(str(file), 500, "gzip data are damaged")] == findings

    @given(st.binary(max_size=40), st.integers(0, 200))
    def test_any_damage(self, tmp_path, damage, place):
        """Damage of any kind is told of, or does no harm."""
        packed = gzip.compress(A + b"\n" + B)
        file = tmp_path / "a"
        file.write_bytes(packed[:place] + damage + packed[place:])
        read_all(file)


def memory_of(script, *arguments):
    """
    Return by how many bytes the peak of memory rises in *script*.
    """
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return int(done.stdout)


_MEASURED = """
import atexit, resource, sys
from elastic_events.reading.merging import merged
from elastic_events.reading.sources import read
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
atexit.register(lambda: print(peak() - before))
findings = []
"""


class TestMemory:
    def test_no_line_feed(self):
        """Two hundred MB without a line feed take little memory."""
        script = """
class Endless:
    left = 200
    def read1(self, size):
        self.left -= 1
        return b"x" * (1 << 20) if self.left >= 0 else b""
    read = read1
from elastic_events.reading.lines import LineReader, chunks_of, records_of
reader = LineReader("f", findings.append)
assert [] == list(records_of(chunks_of(Endless()), reader))
assert 1 == len(findings)
"""

        assert memory_of(script) < 32 << 20

    @pytest.mark.parametrize(
        "raw",
        [
            b'{"timestamp":1,"time":"' * (1 << 16),
            b'{"a":[' + b"{}," * (1 << 18) + b"{}]",
            b'{"a":[' + b"[]," * (1 << 18) + b"[]]}",
            b"{}" * (1 << 19),
            b"{}\0" * (1 << 18),
            b"\0" + (BOM + b"\0") * (1 << 18),
            BOM * (1 << 20),
            b"\xff" * (1 << 20),
        ],
        ids=[
            "beginnings",
            "torn",
            "lists",
            "glued",
            "NULs",
            "both",
            "marks",
            "not UTF-8",
        ],
    )
    def test_long_line(self, tmp_path, raw):
        """Any line of about 1 MiB takes less than 64 MB more."""
        file = tmp_path / "a"
        file.write_bytes(raw + b"\n" + A)
        script = "for _ in read(sys.argv[1:], findings.append): pass"

        assert memory_of(script, file) < 64 << 20

    def test_many_files(self, tmp_path):
        """Many damaged files give all good lines, each bad span once."""
        chance = random.Random(1)
        good = bad = 0
        for name in range(200):
            with (tmp_path / str(name)).open("wb") as stream:
                for number in range(200):
                    raw = line(1000 * number + name)
                    if chance.random() < 0.01:
                        bad += 1
                        stream.write(raw[: chance.randrange(30, 90)])
                    else:
                        good += 1
                        stream.write(raw)
                    stream.write(b"\n")
        script = f"""
records = sum(1 for _ in merged([sys.argv[1] + "/*"], findings.append))
assert ({good}, {bad}) == (records, len(findings)), (records, len(findings))
"""

        assert memory_of(script, tmp_path) < 100 << 20
