"""
Lines have a limit, and stay valid when they are cut to it.
"""

import array
import functools
import json
import math
import os
from collections import UserList

import pytest
from hypothesis import given, strategies as st
from strategies import JSON_VALUES

import elastic_events as ee
from elastic_events.encoding import encode_within


def event(**metadata):
    return ee.Event("n", ee.EventSource.WORKER, metadata=metadata)


def line_in(file, validate):
    (raw,) = file.read_bytes().splitlines(keepends=True)
    return raw, validate(raw)


class TestLimit:
    def test_file(self, tmp_path, validate):
        """A line of a file is cut to one MiB, the longest string first."""
        file = tmp_path / "log.jsonl"
        ee.record(
            event(long="a" + "x" * 3_000_000 + "z", short="y" * 1000),
            f"file:{file}",
        )
        raw, said = line_in(file, validate)

        assert 1 << 19 < len(raw) <= 1 << 20
        assert said["truncated"] is True
        assert "y" * 1000 == said["metadata"]["short"]
        assert said["metadata"]["long"].startswith("axx")
        assert said["metadata"]["long"].endswith("xxz")
        assert " cut>" in said["metadata"]["long"]

    def test_console(self, capfdbinary, validate):
        """A line of the console is cut to 16 KiB."""
        ee.record(event(long="x" * 100_000), "console")
        raw = capfdbinary.readouterr().err

        assert 1 << 13 < len(raw) <= 1 << 14
        assert validate(raw)["truncated"]

    @pytest.mark.parametrize("limit", [4096, 10_000])
    def test_option(self, tmp_path, validate, limit):
        """max_line= sets the limit."""
        file = tmp_path / "log.jsonl"
        ee.record(event(long="x" * 100_000), f"file:{file}?max_line={limit}")
        raw, _ = line_in(file, validate)

        assert limit // 4 < len(raw) <= limit

    def test_under_it(self, tmp_path, validate):
        """A line under the limit is written whole."""
        file = tmp_path / "log.jsonl"
        ee.record(event(long="x" * 1_000_000), f"file:{file}")
        _, said = line_in(file, validate)

        assert "truncated" not in said
        assert 1_000_000 == len(said["metadata"]["long"])

    @pytest.mark.parametrize(
        "metadata",
        [
            {"list": list(range(1_000_000))},
            {"dict": {str(number): number for number in range(100_000)}},
            {str(number): "x" * 100 for number in range(20_000)},
            {"nested": [["x" * 100] * 100] * 200},
            {"controls": "\x00" * 500_000},
            {"wide": "\U0001f600" * 500_000},
            {"x" * 2_000_000: 1},
            {"bytes": [os.urandom(100_000)] * 100},
            {"ints": [2**30_000] * 10_000},
            {"nan": [1.0] * 2_000_000 + [math.nan]},
            {"sets": [{number} for number in range(100_000)]},
            {"array": array.array("d", [0.1]) * 1_000_000},
            {"users": UserList(range(1_000_000))},
            {"views": dict.fromkeys(range(1_000_000)).values()},
            {"shared": functools.reduce(lambda x, _: [x, x], range(20), [])},
            {"surrogates": ["\ud800" * 100_000] * 200},
        ],
        ids=lambda metadata: next(iter(metadata))[:8],
    )
    def test_whatever_is_long(self, tmp_path, validate, metadata):
        """Lists, mappings, keys and characters that grow are cut too."""
        file = tmp_path / "log.jsonl"
        ee.record(event(**metadata), f"file:{file}?max_line=8192")
        raw, said = line_in(file, validate)

        assert len(raw) <= 8192
        assert said["truncated"]

    def test_long_context(self, tmp_path, validate):
        """What is bound is cut as well."""
        file = tmp_path / "log.jsonl"
        bound = {f"key{number}": "x" * 50 for number in range(1000)}
        ee.get_logger(f"file:{file}?max_line=4096").bind(**bound).info("m")
        raw, said = line_in(file, validate)

        assert len(raw) <= 4096
        assert "m" == said["message"]

    @pytest.mark.parametrize("text", ["\0", "\U0001f600", "x"])
    def test_escaped_context(self, tmp_path, validate, text):
        """Characters that take many bytes are counted as such."""
        file = tmp_path / "log.jsonl"
        bound = {f"key{number}": text * 100 for number in range(30)}
        log = ee.get_logger(f"file:{file}?max_line=4096", name=text * 200)
        log.bind(run_id=text * 200, **bound).error(
            text * 200, value=text * 200, exc_info=ValueError(text * 200)
        )
        raw, said = line_in(file, validate)

        assert len(raw) <= 4096
        assert said["truncated"]

    def test_event_beside_long_context(self, tmp_path, validate):
        """However much is bound, an event's metadata is a mapping."""
        file = tmp_path / "log.jsonl"
        bound = {f"key{number}": number for number in range(3000)}
        log = ee.get_logger(f"file:{file}?max_line=4096").bind(**bound)
        log.record(event(a=1))
        raw, said = line_in(file, validate)

        assert len(raw) <= 4096
        assert isinstance(said["metadata"], dict)

    def test_worker(self, tmp_path, validate):
        """What a line says of a worker keeps its keys."""
        file = tmp_path / "log.jsonl"
        nested = {"local_rank": [1], "exit_code": [1], "entry_point": "e" * 99}
        failed = ee.Event(
            "torchelastic.worker.status.FAILED",
            ee.EventSource.WORKER,
            metadata={
                "metadata": json.dumps(nested),
                "raw_error": json.dumps({"message": "E: " + "m" * 9000}),
                **{f"key{number}": "\0" * 50 for number in range(200)},
            },
        )
        ee.record(failed, f"file:{file}?max_line=4096")
        raw, said = line_in(file, validate)

        assert len(raw) <= 4096
        assert ["local_rank", "exit_code", "entry_point", "error"] == list(
            said["worker"]
        )

    def test_long_names(self, tmp_path, validate):
        """A long name, message and trace leave a valid line."""
        file = tmp_path / "log.jsonl"
        log = ee.get_logger(f"file:{file}?max_line=4096", name="l" * 9000)
        log.bind(run_id="r" * 9000).error(
            "m" * 9000, exc_info=ValueError("e" * 9000)
        )
        raw, said = line_in(file, validate)

        assert len(raw) <= 4096
        assert said["message"].startswith("mmm")


@given(
    st.dictionaries(st.text(max_size=9), JSON_VALUES, max_size=9),
    st.integers(4096, 20_000),
    st.integers(1, 400),
)
def test_any_line(mapping, limit, factor):
    """Whatever is on it, a line is cut to its limit and stays JSON."""
    line = {
        key: [value, str(value) * factor] for key, value in mapping.items()
    }
    encoded = encode_within(line, limit)

    assert len(encoded) <= limit
    assert 1 == encoded.count(b"\n")
    assert isinstance(json.loads(encoded), dict)
