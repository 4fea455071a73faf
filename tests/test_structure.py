"""
Who imports whom, and what importing the package does.
"""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import elastic_events as ee
from elastic_events import processors, schema, testing


PACKAGE = Path(ee.__file__).parent
TESTS = Path(__file__).parent

# Each room, and the rooms that it may import. Arrows point upwards only.
MAY_IMPORT = {
    "living": set(),
    "api": set(),
    "schema": set(),
    "cutting": {"schema"},
    "values": {"cutting"},
    "levels": set(),
    "repairing": {"cutting", "values"},
    "encoding": {"cutting", "levels", "repairing", "schema", "values"},
    "redaction": {"encoding", "schema", "values"},
    "torchelastic": {"encoding", "schema"},
    "process": {"api", "schema"},
    "context": {"schema", "values"},
    "messages": {"values"},
    "drafts": {
        "api",
        "context",
        "process",
        "schema",
        "torchelastic",
        "values",
    },
    "counting": {"living"},
    "channels": set(),
    "stream_sink": {"channels"},
    "complaints": {"stream_sink"},
    "guarding": {"complaints", "context", "levels", "schema", "values"},
    "processors": {
        "context",
        "counting",
        "drafts",
        "encoding",
        "guarding",
        "levels",
        "messages",
        "redaction",
        "schema",
        "values",
    },
    "forming": {"schema"},
    "otel_form": {"encoding", "forming", "schema"},
    "layouts": {"forming", "schema"},
    "providing": {"complaints"},
    "formats": {"forming", "layouts", "otel_form", "providing"},
    "pipeline": {
        "api",
        "context",
        "counting",
        "drafts",
        "encoding",
        "formats",
        "guarding",
        "levels",
        "messages",
        "processors",
        "schema",
        "values",
    },
    "marking": {"encoding"},
    "learning": {"encoding", "marking"},
    "templates": {"encoding", "learning", "marking"},
    "rendering": {"encoding", "schema", "templates"},
    "sinks": set(),
    "file_sink": {"encoding"},
    "options": set(),
    "paths": {"api", "process"},
    "entrances": {"complaints", "counting", "pipeline", "values"},
    "losses": {"counting", "values"},
    "shaping": {
        "complaints",
        "encoding",
        "formats",
        "rendering",
        "schema",
        "values",
    },
    "outlets": {
        "complaints",
        "counting",
        "drafts",
        "formats",
        "living",
        "losses",
        "pipeline",
        "shaping",
        "sinks",
        "values",
    },
    "backlog": {"complaints", "counting", "living"},
    "queued_outlet": {"backlog", "outlets"},
    "otlp.answers": set(),
    "otlp.records": {"encoding", "forming", "otel_form"},
    "otlp.sending": {"otlp.answers", "otlp.records", "values"},
    "otlp.settings": set(),
    "otlp.processor": {"complaints", "otlp.settings", "values"},
    "otlp.batches": {
        "backlog",
        "complaints",
        "otlp.processor",
        "otlp.settings",
        "values",
    },
    "otlp.sink": {
        "backlog",
        "otlp.batches",
        "otlp.records",
        "otlp.sending",
        "otlp.settings",
        "outlets",
    },
    "schemes": {
        "entrances",
        "file_sink",
        "formats",
        "levels",
        "options",
        "otlp.settings",
        "otlp.sink",
        "outlets",
        "paths",
        "pipeline",
        "sinks",
        "stream_sink",
        "values",
    },
    "destinations": {
        "complaints",
        "entrances",
        "guarding",
        "options",
        "outlets",
        "providing",
        "queued_outlet",
        "schemes",
        "sinks",
    },
    "callers": set(),
    "logger": {
        "api",
        "callers",
        "context",
        "destinations",
        "drafts",
        "entrances",
        "guarding",
        "levels",
        "messages",
        "values",
    },
    "handlers": {
        "complaints",
        "destinations",
        "drafts",
        "entrances",
        "guarding",
        "levels",
        "logger",
        "pipeline",
        "values",
    },
    "recording": {"", "api", "destinations", "logger", "process"},
    "failures": {
        "api",
        "destinations",
        "encoding",
        "messages",
        "process",
        "recording",
        "torchelastic",
        "values",
    },
    "torchrun": {"destinations", "handlers", "recording"},
    "captured": set(),
    "testing": {
        "backlog",
        "captured",
        "destinations",
        "encoding",
        "entrances",
        "outlets",
        "sinks",
    },
    "demo": {""},
    "reading.activity": set(),
    "reading.escaping": set(),
    "reading.facts": set(),
    "reading.hosts": set(),
    "reading.moments": set(),
    "reading.painting": set(),
    "reading.prefilter": set(),
    "reading.records": {"schema", "torchelastic"},
    "reading.fact_finding": {"reading.facts", "torchelastic"},
    "reading.filters": {"levels", "reading.moments", "reading.records"},
    "reading.clocks": {
        "reading.fact_finding",
        "reading.facts",
        "reading.filters",
        "reading.records",
    },
    "reading.conditions": {"encoding", "reading.filters", "schema"},
    "reading.rules": {"levels", "reading.filters", "schema"},
    "reading.runs": {"reading.facts"},
    "reading.attempts": {"reading.runs"},
    "reading.processes": {
        "reading.facts",
        "reading.hosts",
        "reading.records",
        "reading.runs",
    },
    "reading.own_words": {
        "reading.facts",
        "reading.hosts",
        "reading.processes",
        "reading.runs",
    },
    "reading.salvage": {"encoding"},
    "reading.damage": {"reading.prefilter", "reading.salvage"},
    "reading.lines": {
        "encoding",
        "reading.damage",
        "reading.prefilter",
        "reading.records",
        "reading.salvage",
    },
    "reading.signals": set(),
    "reading.nodes": {
        "reading.facts",
        "reading.hosts",
        "reading.processes",
        "reading.runs",
        "reading.signals",
    },
    "reading.sources": {"reading.lines", "reading.records"},
    "reading.growing": {"reading.lines", "reading.records", "reading.sources"},
    "reading.merging": {"reading.lines", "reading.records", "reading.sources"},
    "reading.following": {
        "reading.growing",
        "reading.lines",
        "reading.merging",
        "reading.records",
        "reading.sources",
    },
    "reading.stats": {
        "reading.activity",
        "reading.filters",
        "reading.moments",
        "reading.records",
        "schema",
        "torchelastic",
    },
    "reading.story": {
        "reading.attempts",
        "reading.fact_finding",
        "reading.facts",
        "reading.filters",
        "reading.nodes",
        "reading.own_words",
        "reading.processes",
        "reading.records",
        "reading.runs",
    },
    "reading.evidence": {"reading.facts", "reading.signals"},
    "reading.verdicts": {"reading.facts", "reading.runs"},
    "reading.suspects": {
        "reading.evidence",
        "reading.facts",
        "reading.runs",
        "reading.signals",
        "reading.verdicts",
    },
    "reading.losses": {"reading.runs", "reading.verdicts"},
    "reading.certainty": {"reading.runs", "reading.suspects"},
    "reading.victims": {
        "reading.evidence",
        "reading.runs",
        "reading.suspects",
        "reading.verdicts",
    },
    "reading.causes": {
        "reading.certainty",
        "reading.hosts",
        "reading.losses",
        "reading.runs",
        "reading.suspects",
        "reading.verdicts",
        "reading.victims",
    },
    "reading.tables": {"schema"},
    "reading.timeline.pieces": set(),
    "reading.timeline.places": {"reading.records", "reading.runs"},
    "reading.timeline.page": {
        "reading.escaping",
        "reading.timeline.pieces",
        "reading.timeline.places",
    },
    "reading.timeline.scrapbook": {
        "reading.escaping",
        "reading.fact_finding",
        "reading.filters",
        "reading.hosts",
        "reading.records",
    },
    "reading.views": {
        "reading.escaping",
        "reading.painting",
        "reading.records",
        "reading.signals",
        "reading.tables",
    },
    "reading.wording": set(),
    "reading.open_ends": {
        "reading.losses",
        "reading.moments",
        "reading.runs",
        "reading.verdicts",
        "reading.wording",
    },
    "reading.unknowns": {
        "reading.evidence",
        "reading.open_ends",
        "reading.runs",
        "reading.verdicts",
        "reading.wording",
    },
    "reading.accounts": {"reading.unknowns", "reading.verdicts"},
    "reading.summary": {
        "reading.escaping",
        "reading.signals",
        "reading.verdicts",
    },
    "reading.explaining": {
        "reading.escaping",
        "reading.painting",
        "reading.runs",
        "reading.summary",
        "reading.unknowns",
        "reading.verdicts",
        "reading.wording",
    },
    "reading.timeline.words": {
        "reading.escaping",
        "reading.runs",
        "reading.signals",
        "reading.summary",
        "reading.timeline.pieces",
        "reading.verdicts",
        "reading.wording",
    },
    "reading.timeline.canvas": {
        "reading.escaping",
        "reading.timeline.pieces",
        "reading.timeline.words",
        "reading.verdicts",
    },
    "reading.timeline.linking": {
        "reading.summary",
        "reading.timeline.canvas",
        "reading.verdicts",
    },
    "reading.timeline.nodes": {
        "reading.escaping",
        "reading.hosts",
        "reading.runs",
        "reading.signals",
        "reading.summary",
        "reading.timeline.canvas",
        "reading.timeline.pieces",
        "reading.timeline.places",
        "reading.timeline.words",
        "reading.verdicts",
        "reading.wording",
    },
    "reading.timeline.picture": {
        "reading.escaping",
        "reading.explaining",
        "reading.painting",
        "reading.summary",
        "reading.timeline.canvas",
        "reading.timeline.linking",
        "reading.timeline.nodes",
        "reading.timeline.pieces",
        "reading.timeline.places",
        "reading.timeline.scrapbook",
        "reading.timeline.words",
        "reading.verdicts",
        "reading.wording",
    },
    "reading.writers": {"reading.hosts"},
    "reading.sequences": {"reading.writers"},
    "reading.validating": {
        "encoding",
        "reading.moments",
        "reading.records",
        "reading.rules",
        "reading.sequences",
        "reading.wording",
        "reading.writers",
        "schema",
    },
    "commands.statuses": set(),
    "commands.filtering": {
        "commands.statuses",
        "reading.conditions",
        "reading.filters",
        "reading.moments",
    },
    "commands.noticing": {"reading.records", "reading.tables"},
    "commands.progress": {"reading.records"},
    "commands.record": {"", "commands.statuses", "destinations"},
    "commands.schema": {"commands.statuses", "schema"},
    "commands.telling": {"reading.escaping"},
    "commands.inputs": {
        "commands.filtering",
        "commands.noticing",
        "commands.progress",
        "commands.statuses",
        "commands.telling",
        "reading.clocks",
        "reading.filters",
        "reading.following",
        "reading.lines",
        "reading.merging",
        "reading.records",
        "reading.sources",
        "reading.wording",
    },
    "commands.judging": {
        "commands.inputs",
        "commands.statuses",
        "reading.causes",
        "reading.clocks",
        "reading.records",
        "reading.story",
        "reading.verdicts",
    },
    "commands.output": {
        "commands.statuses",
        "commands.telling",
        "reading.painting",
        "reading.records",
        "reading.tables",
        "reading.views",
    },
    "commands.convert": {
        "commands.inputs",
        "commands.output",
        "commands.statuses",
        "encoding",
        "formats",
        "forming",
        "reading.records",
        "reading.rules",
        "reading.sources",
        "schema",
    },
    "commands.explain": {
        "commands.inputs",
        "commands.judging",
        "commands.output",
        "commands.statuses",
        "reading.accounts",
        "reading.explaining",
        "reading.painting",
        "reading.verdicts",
    },
    "commands.show": {"commands.inputs", "commands.output", "reading.records"},
    "commands.demo": {
        "commands.explain",
        "commands.output",
        "commands.show",
        "commands.statuses",
        "commands.telling",
        "demo",
    },
    "commands.stats": {
        "commands.inputs",
        "commands.output",
        "reading.escaping",
        "reading.stats",
        "reading.wording",
    },
    "commands.timeline": {
        "commands.inputs",
        "commands.judging",
        "commands.statuses",
        "commands.telling",
        "reading.timeline.page",
        "reading.timeline.picture",
        "reading.timeline.scrapbook",
        "reading.verdicts",
    },
    "commands.validate": {
        "commands.inputs",
        "commands.output",
        "commands.statuses",
        "reading.escaping",
        "reading.records",
        "reading.validating",
        "reading.wording",
    },
    "cli": {
        "",
        "commands.filtering",
        "commands.output",
        "commands.statuses",
        "commands.telling",
        "reading.escaping",
    },
    "__main__": set(),
}
ONLY_IMPORTER = {
    "opentelemetry": {
        "otlp.answers",
        "otlp.batches",
        "otlp.processor",
        "otlp.records",
        "otlp.sending",
        "otlp.sink",
    },
    "orjson": {"encoding"},
    "torch": {"torchrun"},
    "rich": {"commands.progress", "reading.views"},
}
# Public names that users do not call themselves.
NOT_CALLED = {
    "EventLogger",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "UnknownDestination",
}
CALLED = sorted(set(ee.__all__) - NOT_CALLED)
BOTTOM = {"commands", "otlp", "reading", "reading.timeline", "__init__"}


def rooms():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(path.read_text())


def imports_of(name, tree):
    """
    Yield the modules that a room imports, its own package's after a dot.
    """
    parts = name.split(".")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield re.sub(r"^elastic_events\b\.?", ".", alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if not node.level:
                yield re.sub(r"^elastic_events\b\.?", ".", module)
                continue
            here = ".".join(parts[: -node.level])
            module = f"{here}.{module}".strip(".")
            # from . import …: rooms, or the package's own names.
            for alias in node.names:
                room = f"{module}.{alias.name}".strip(".")
                yield f".{room if _is_room(room) else module}"


def _is_room(name):
    return (PACKAGE / f"{name.replace('.', '/')}.py").exists()


def public_in(module):
    """
    Return the public names that *module* defines itself.
    """
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    ]


@pytest.mark.parametrize(
    ("name", "tree"),
    [
        pytest.param(name, tree, id=name)
        for name, tree in rooms()
        if name not in BOTTOM
    ],
)
def test_imports(name, tree):
    """Each room imports what the table allows, and nothing else of ours."""
    imported = set(imports_of(name, tree))
    ours = {each[1:] for each in imported if each.startswith(".")} - {name}
    others = {each.partition(".")[0] for each in imported} - {""}

    assert set() == ours - MAY_IMPORT[name]
    assert set() == {
        each for each in others if name not in ONLY_IMPORTER.get(each, {name})
    }


def test_table():
    """The table names the rooms there are, and no circle."""
    names = {name for name, _ in rooms()} - BOTTOM
    order = list(MAY_IMPORT)

    assert names == set(MAY_IMPORT)
    for name, allowed in MAY_IMPORT.items():
        assert all(
            order.index(each) < order.index(name) for each in allowed - {""}
        )


def test_import_configures_nothing():
    """Importing everything starts, opens, looks up and configures nothing."""
    code = """
import logging, os, socket, sys, threading
def refuse(*_, **__): raise AssertionError
for name in ("gethostname", "getfqdn", "getaddrinfo", "gethostbyname"):
    setattr(socket, name, refuse)
files = set(os.listdir("/proc/self/fd"))
import elastic_events
assert "torch" not in sys.modules
import structlog
assert files == set(os.listdir("/proc/self/fd"))
assert [] == logging.getLogger().handlers
assert logging.WARNING == logging.getLogger().level
assert not structlog.is_configured()
assert 1 == threading.active_count()
assert not [n for n in logging.root.manager.loggerDict if "elastic" in n]
assert {} == elastic_events.health()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
is_new = sys.version_info >= (3, 13)
kind = ("legacy",) if is_new else ()
shared = interpreters.create(*kind)
run = interpreters.exec if is_new else interpreters.run_string
failed = run(shared, sys.argv[1])
sys.exit(failed and failed.formatted)
"""
IN_SUBINTERPRETER = """
import elastic_events as ee
ee.record(ee.Event("n", ee.EventSource.AGENT), "file:events.jsonl")
"""


@pytest.mark.skipif(
    (3, 12) <= sys.version_info[:2] < (3, 13),
    reason="to import structlog, and no more, ends Python 3.12.1 there",
)
def test_subinterpreter(tmp_path, validate):
    """A subinterpreter that shares the lock of the first can record."""
    done = subprocess.run(
        [sys.executable, "-c", SUBINTERPRETER, IN_SUBINTERPRETER],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    assert "n" == validate((tmp_path / "events.jsonl").read_bytes())["name"]


class TestPackage:
    def test_all(self):
        """__all__ is sorted, and names all that is public."""
        rooms_here = {path.stem for path in PACKAGE.glob("*.py")} | {
            "commands",
            "otlp",
            "reading",
        }
        public = {
            name for name in vars(ee) if not name.startswith("_")
        } - rooms_here

        assert sorted(ee.__all__) == ee.__all__
        assert public == set(ee.__all__)

    def test_version(self):
        """The version is the distribution's."""
        from importlib.metadata import version

        assert version("elastic-events") == ee.__version__

    def test_typed(self):
        """The package says that it is typed."""
        assert (PACKAGE / "py.typed").exists()

    @pytest.mark.parametrize("name", CALLED)
    def test_help(self, name):
        """What users call says what each argument is."""
        public = getattr(ee, name)
        told = re.findall(
            r"^ *((?:\w+, )*\w+):(?: |$)",
            inspect.getdoc(public).partition("Args:")[2],
            re.MULTILINE,
        )

        assert set(inspect.signature(public).parameters) <= {
            each for line in told for each in line.split(", ")
        }

    def test_typing(self):
        """How each public name is written is checked by type checkers."""
        checked = "".join(
            file.read_text() for file in (TESTS / "typing").glob("*.py")
        )
        names = [*ee.__all__, *processors.__all__, *public_in(testing)]

        assert set() == set(names) - set(re.findall(r"\w+", checked))

    def test_schema(self):
        """The schema has the owned keys, in the order of a line."""
        properties = schema.line_schema()["properties"]

        assert list(schema.KEYS) == list(properties)
        assert schema.JOB_KEYS.keys() <= properties.keys()


def test_every_test_says_what_must_hold():
    """Every test has a docstring."""
    silent = [
        f"{path.name}:{node.lineno}"
        for path in sorted(TESTS.glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]

    assert [] == silent
