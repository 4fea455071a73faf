"""
jq reads the lines.
"""

import json
import os
import re
import subprocess
import sys
from os.path import dirname

import pytest
import shipping_page
from hypothesis import given, settings, strategies as st
from strategies import EVENTS

import elastic_events as ee


LOSSES = [
    (
        "an integer beyond `2**53`",
        "rounded to 17 digits",
        "jq 1.7, where it is only passed on; record it as text",
    )
]
ROUNDED = {
    ("integers", "largest"): 9223372036854776000,
    ("integers", "smallest"): -9223372036854776000,
    ("integers", "exact"): 9007199254740992,
    ("unsigned", "unsigned"): 18446744073709552000,
    ("negative", "negative"): -9223372036854776000,
}


@pytest.fixture(name="jq")
def _jq(program, run):
    def jq(*arguments):
        return run(program("jq"), *arguments).split(b"\n")[:-1]

    return jq


def of_doubles(raw):
    """
    Return what *raw* says, every number a double.
    """
    return json.loads(raw, parse_int=float)


class TestLines:
    def test_equal(self, jq, recorded, exact):
        """Every line comes out equal, its numbers read as doubles."""
        raw = recorded.file.read_bytes().split(b"\n")[:-1]

        assert exact([*map(of_doubles, raw)]) == exact(
            [*map(of_doubles, jq("-c", ".", recorded.file))]
        )

    def test_losses(self, jq, recorded):
        """
        Integers are rounded if a double cannot hold them, and no others; jq
        1.7 keeps them.
        """
        changed = {}
        for before, raw in zip(
            recorded.said, jq("-c", ".", recorded.file), strict=True
        ):
            after = json.loads(raw)
            name = before.get("name", "").removeprefix("odd.")
            for key, value in before.get("metadata", {}).items():
                if value != after["metadata"][key]:
                    changed[name, key] = after["metadata"][key]
            assert {**before, "metadata": 0} == {**after, "metadata": 0}

        assert changed in ({}, ROUNDED)

    def test_torn(self, program, run, recorded):
        """A torn line stops jq, but not behind ``show``, as the page says."""
        with recorded.file.open("ab") as file:
            file.write(b'{"timestamp":17\n')
        ee.get_logger(f"file:{recorded.file}", name="n").info("last")
        command = shipping_page.text("jq", r"`(elastic-events .*?jq) …`")
        alone = subprocess.run(
            [program("jq"), "-c", ".", recorded.file],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        behind = subprocess.run(
            command.replace("/logs/*.jsonl", str(recorded.file)) + " -c .",
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            env={"PATH": f"{dirname(sys.executable)}:{os.environ['PATH']}"},
        )

        assert 0 < alone.returncode
        assert len(recorded.said) == alone.stdout.count(b"\n")
        assert len(recorded.said) + 1 == behind.stdout.count(b"\n")

    @settings(max_examples=20)
    @given(events=st.lists(EVENTS, min_size=1, max_size=20))
    def test_any(self, jq, tmp_path, reset, events, exact):
        """Whatever the metadata, a line comes out as it went in."""
        reset()
        file = tmp_path / "any.jsonl"
        file.unlink(missing_ok=True)
        for event in events:
            ee.record(event, f"file:{file}")
        raw = file.read_bytes().split(b"\n")[:-1]

        assert exact([*map(of_doubles, raw)]) == exact(
            [*map(of_doubles, jq("-c", ".", file))]
        )


class TestPage:
    def test_losses(self):
        """The page lists what is not held."""
        assert LOSSES == shipping_page.losses("jq")

    @pytest.mark.parametrize("number", [0, 1])
    def test_commands(self, program, run, jobs, number):
        """The commands of the page find something in a job that failed."""
        program("jq")
        lines = shipping_page.block("jq", "bash").splitlines()
        found = run(
            "sh", "-c", re.sub(r"/logs/\*\.jsonl", str(jobs), lines[number])
        )

        assert found.count(b"\n")
