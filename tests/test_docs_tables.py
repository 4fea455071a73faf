"""
What the tables of the documentation say is so, and complete.
"""

import configparser
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest
import yaml
from pages import DOCS, PAGES, README, ROOT, blocks, codes, rows

import elastic_events as ee
from elastic_events import (
    cli,
    destinations,
    options,
    paths,
    pipeline,
    schema,
    schemes,
)
from elastic_events.reading import suspects, verdicts


RECORDED = Path(__file__).parent / "data" / "recorded"


class TestLinePage:
    page = DOCS / "line.md"

    def test_keys(self):
        """The table has every key of the schema, in order, with its type."""
        properties = schema.line_schema()["properties"]
        types = {
            name: each.get("type", "true" if "const" in each else "string")
            for name, each in properties.items()
        }
        said = rows(self.page, "key | type | on")

        assert list(types.items()) == [
            (codes(key)[0], kind) for key, kind, *_ in said
        ]

    def test_every_line(self):
        """What is said to be on every line of a kind is what must be."""
        for key, _, where, _ in rows(self.page, "key | type | on"):
            required = schema.KEYS[codes(key)[0]].required
            said = {
                "every line": ("event", "rdzv", "log"),
                "every event, rdzv": ("event", "rdzv"),
                "every log": ("log",),
                "every event; logs that have fields": ("event",),
            }.get(where, ())

            assert required == said

    def test_values(self):
        """Of a key with few values all are named."""
        properties = schema.line_schema()["properties"]
        for key, _, _, text in rows(self.page, "key | type | on"):
            values = properties[codes(key)[0]].get("enum")
            if values is not None:
                assert values == [
                    each for each in codes(text) if each in values
                ]

    def test_worker(self):
        """So has the table of what is told of a worker."""
        said = rows(self.page, "key | type |")
        worker = schema.line_schema()["properties"]["worker"]["properties"]

        assert [
            [f"`{name}`", each["type"]] for name, each in worker.items()
        ] == [row[:2] for row in said]
        assert [*worker["error"]["properties"]] == codes(said[-1][2])


class TestDestinationsPage:
    page = DOCS / "destinations.md"

    def test_names(self):
        """Every form of a name is there."""
        named = [codes(row[0]) for row in rows(self.page, "name")]

        assert {*destinations.FORMS, "dynamic_rendezvous"} == {
            each for (each,) in filter(None, named)
        }

    def test_options(self):
        """Every option is there, with the destinations that have it."""
        having = {
            "streams": schemes.SCHEMES["console"].options,
            "`file:`": schemes.SCHEMES["file"].options,
            "`queue:`": destinations.QUEUE_OPTIONS,
            "`otlp:`": schemes.SCHEMES["otlp"].options,
            "your own": destinations.REGISTERED_OPTIONS,
        }
        said = {
            codes(name)[0].partition("=")[0]: set(where.split(", "))
            for name, where, *_ in rows(self.page, "option")
        }

        assert {
            option: {each for each in having if option in having[each]}
            for option in options._OPTIONS
        } == said

    def test_defaults(self):
        """The longest lines are those that hold where nothing is said."""
        (default,) = [
            row[2] for row in rows(self.page, "option") if "BYTES" in row[0]
        ]

        assert (
            f"{pipeline.DEFAULT_MAX_LINE}, on streams"
            f" {schemes.STREAM_MAX_LINE}"
        ) == default

    def test_placeholders(self):
        """Every placeholder is there."""
        assert [f"{{{name}}}" for name in paths._PLACEHOLDERS] == [
            codes(row[0])[0] for row in rows(self.page, "placeholder")
        ]

    def test_variables(self):
        """Every environment variable of the package is there."""
        sources = "".join(
            path.read_text() for path in Path(ee.__file__).parent.rglob("*.py")
        )

        assert set(re.findall(r'"(ELASTIC_EVENTS_[A-Z_]+)"', sources)) == {
            codes(row[0])[0] for row in rows(self.page, "variable")
        }


class TestExplainPage:
    page = DOCS / "explain.md"

    def test_keys(self):
        """Every key of the JSON is there, and every value of the few."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "elastic_events", "explain"),
                *("-o", "json", RECORDED / "peer_lost.node0.jsonl"),
            ],
            stdout=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        said = json.loads(done.stdout)
        said_of = rows(self.page, "key")
        named = {
            codes(cell)[0]: set(codes(" ".join(rest)))
            for cell, *rest in said_of
            if "," not in cell
        }

        assert list(said) == [
            each for cell, _ in said_of for each in codes(cell)
        ]
        assert {*said["cause"], *typing.get_args(verdicts.Kind)} <= named[
            "cause"
        ]
        assert {
            *said["victims"][0],
            *typing.get_args(verdicts.Why),
        } == named["victims"]
        assert {*said["attempts"][0]} <= named["attempts"]
        assert {*typing.get_args(verdicts.Outcome)} == named["outcome"] | {
            "restarted"
        }

    def test_evidence(self):
        """There are as many grades of evidence as are told apart."""
        said = rows(self.page, "| evidence")

        assert len(suspects.Tier) == len(said)


class TestPerformance:
    figures: typing.ClassVar = json.loads(
        (ROOT / "benchmarks/results/xeon-cpython-3.11.json").read_text()
    )

    @staticmethod
    def shown(value):
        return f"{value:.2f}" if value < 9.995 else f"{value:.0f}"

    def test_readme(self):
        """README's table has the figures that were measured."""
        names = (
            "the floor: dumps of the finished dict, and write",
            "the straight line",
            "record, file",
            "record, file, four keys bound",
            "structlog, as its performance page advises",
            "eliot",
            "python-json-logger[orjson]",
            "structlog ProcessorFormatter",
            "torch record, FileHandler",
            "loguru serialize",
            "OpenTelemetry console",
            "record, null",
            "torch record, null",
        )
        measured = {
            each["name"]: self.shown(each["value"])
            for each in self.figures["figures"]
            if each["group"].startswith("a worker's event")
        }
        said = rows(README, "a worker's event, times the second row")

        assert set(measured) == set(names)
        assert [measured[name] for name in names] == [row[1] for row in said]

    def test_page(self):
        """The page's table has the figures that were measured."""
        names = (
            "an agent's event, unwrapped",
            "the same, in a straight line",
            "a failed worker's event, with traceback",
            "a hundred keys",
            "a value that JSON does not have / none",
            "logging.FileHandler, plain text",
            "python-json-logger[orjson], same fields",
            "on / record, file",
            "torch's, on / ours, on",
            "off / the straight line",
            "/ import structlog, orjson",
        )
        measured = {
            each["name"]: self.shown(each["value"])
            for each in self.figures["figures"]
        }
        said = rows(DOCS / "performance.md", "| times")

        assert [measured[name] for name in names] == [row[1] for row in said]

    def test_formats(self):
        """The costs of formats are those that were measured."""
        measured = [
            [
                self.shown(each["value"])
                for each in self.figures["figures"]
                if each["group"].endswith(f"/ record, file: {kind}")
            ]
            for kind in (
                "a worker's event",
                "an agent's event",
                "what a job records",
            )
        ]
        said = [
            [cell for cell in row[1:] if cell]
            for row in rows(
                DOCS / "formats.md",
                "| `ecs` | `otel` | `gcp` | `datadog` | `torch`",
            )
        ]
        floors = [each.pop() for each in measured[:2]]

        assert measured == said
        assert " and ".join(floors) in " ".join(
            (DOCS / "formats.md").read_text().split()
        )

    @pytest.mark.parametrize("page", [README, DOCS / "performance.md"])
    def test_machine(self, page):
        """The machine and versions are those with which it was measured."""
        machine = self.figures["machine"]
        text = " ".join(page.read_text().split())

        for name in ("structlog", "orjson", "torch"):
            assert f"{name} {machine[name].partition('+')[0]}" in text
        assert f"CPython {machine['python']}" in text
        assert f"Linux {machine['kernel'].partition('-')[0]}" in text
        assert machine["cpu"].replace("(R)", "") in text
        assert "Not measured: " in text

    def test_programs(self):
        """The programs that are named are there."""
        named = {
            name
            for page in PAGES
            for name in re.findall(r"benchmarks/\w+\.py", page.read_text())
        }

        assert {"benchmarks/run.py"} <= named
        assert [] == [name for name in named if not (ROOT / name).exists()]


class TestAggregatorsPage:
    page = DOCS / "aggregators.md"

    def test_not_run(self):
        """Every section says that it was not run."""
        _, *sections = re.split(
            r"^## ", self.page.read_text(), flags=re.MULTILINE
        )

        assert 12 == len(sections)
        for section in sections:
            assert "\n\nNot run here. " in section

    def test_configurations(self):
        """Every configuration is well formed."""
        for block in blocks(self.page):
            if block.language == "yaml":
                yaml.safe_load(block.text)
            elif block.language == "json":
                json.loads(block.text)
            elif block.language == "bash":
                subprocess.run(
                    ["bash", "-n"], input=block.text, text=True, check=True
                )
            elif block.language == "ini":
                configparser.RawConfigParser().read_string(block.text)
            elif block.language == "text":
                for one, other in ("{}", "[]", "()"):
                    assert block.text.count(one) == block.text.count(other)
                opened = re.findall(r"^ *<(\w+)", block.text, re.MULTILINE)
                closed = re.findall(r"^ *</(\w+)", block.text, re.MULTILINE)
                assert sorted(opened) == sorted(closed)


def test_differences():
    """README's differences from torch are some of all of them."""
    some = {tuple(row) for row in rows(README, "torch")}
    every = {tuple(row[:2]) for row in rows(DOCS / "migrating.md", "torch")}

    assert some <= every
    assert len(some) < len(every)


def test_commands():
    """Every command of the program is in the table of them."""
    said = rows(DOCS / "reading.md", "command")

    assert sorted(cli.COMMANDS) == sorted(codes(row[0])[0] for row in said)


def test_rooms():
    """The rooms that the architecture names are there; of the package all."""
    package = Path(ee.__file__).parent
    named = {
        name
        for cell, _ in rows(DOCS / "architecture.md", "room")
        for name in codes(cell)
    }

    for name in named:
        path = package / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or path.is_dir(), name
    assert {
        path.stem for path in package.glob("*.py") if path.stem != "__main__"
    } <= named
