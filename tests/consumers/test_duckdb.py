"""
duckdb reads the lines by the view that the package ships.
"""

import json
import os
import re
import subprocess
import sys

import pytest
import shipping_page
from hypothesis import given, settings, strategies as st
from strategies import EVENTS

import elastic_events as ee
from elastic_events.schema import KEYS, line_schema


TYPES = {int: "BIGINT", str: "VARCHAR", bool: "BOOLEAN", dict: "JSON"}
WORKER_TYPES = {"integer": "BIGINT", "string": "VARCHAR"}
TIME = "%Y-%m-%dT%H:%M:%S.%gZ"


@pytest.fixture(name="view", scope="session")
def _view():
    return printed_view()


@pytest.fixture(name="database")
def _database(duckdb, view, recorded):
    with duckdb.connect() as database:
        use(database, recorded.file)
        database.execute(view)
        yield database


def printed_view():
    done = subprocess.run(
        [sys.executable, "-m", "elastic_events", "schema", "--duckdb"],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    return done.stdout.decode()


def use(database, *files):
    names = ", ".join(f"'{file}'" for file in files)
    database.execute(f"SET VARIABLE elastic_events_files = [{names}]")


def read(database):
    """
    Return what the view says, row for row, in the keys of lines.
    """
    rows = database.sql(
        "SELECT * EXCLUDE (line, file)"
        f" REPLACE (strftime(time, '{TIME}') AS time), line FROM events"
    )
    return [
        said_by(dict(zip(rows.columns, row, strict=True)))
        for row in rows.fetchall()
    ]


def said_by(row):
    whole = json.loads(row.pop("line"))
    owned = without_nulls(row)
    if "metadata" in owned:
        owned["metadata"] = json.loads(owned["metadata"])
    bound = {key: whole[key] for key in whole if key not in KEYS}
    return {**owned, **bound}


def without_nulls(row):
    return {
        key: without_nulls(value) if isinstance(value, dict) else value
        for key, value in row.items()
        if value is not None
    }


class TestView:
    def test_columns(self, database):
        """Every owned key has a column of its type, in the order of a line."""
        view = database.sql("FROM events")
        columns = {
            name: str(kind)
            for name, kind in zip(view.columns, view.types, strict=True)
        }
        expected = {key: TYPES[about.type] for key, about in KEYS.items()}
        expected["time"] = "TIMESTAMP"
        expected["worker"] = columns["worker"]

        assert {**expected, "line": "JSON", "file": "VARCHAR"} == columns
        assert [*KEYS, "line", "file"] == [*columns]

    def test_worker(self, view):
        """The struct of a worker has what the schema says of it."""
        worker = line_schema()["properties"]["worker"]["properties"]
        error = worker.pop("error")["properties"]
        (shipped,) = re.findall(r"'\$\.worker', '(.*?)'\)", view, re.DOTALL)

        assert {
            **{key: WORKER_TYPES[of["type"]] for key, of in worker.items()},
            "error": {
                key: WORKER_TYPES[of["type"]] for key, of in error.items()
            },
        } == json.loads(shipped)

    def test_equal(self, database, recorded, exact):
        """Every line comes out equal, in the columns and as a whole."""
        wholes = database.sql("SELECT line FROM events").fetchall()

        assert exact(recorded.said) == exact(read(database))
        assert exact(recorded.said) == exact(
            [json.loads(whole) for (whole,) in wholes]
        )

    def test_dots(self, database):
        """A key of the metadata with a dot is found by what the page says."""
        dotted = shipping_page.text("duckdb", r"quotes: `(.*?)`")

        assert [('{"c.d":1}',)] == database.sql(
            f"SELECT {dotted} AS found FROM events WHERE found IS NOT NULL"
        ).fetchall()

    def test_damage(self, database, recorded, exact):
        """
        What is torn, or no line of ours, is left out, and stops nothing; what
        came twice is there twice.
        """
        raw = recorded.file.read_bytes()
        first = raw.partition(b"\n")[0]
        damage = [b"junk", b"", b"[1]", b'"x"', first[:70] + first, first]
        with recorded.file.open("ab") as file:
            file.write(b"\n".join([*damage, first[:-9]]))

        assert exact([*recorded.said, recorded.said[0]]) == exact(
            read(database)
        )

    def test_files(self, database, tmp_path, validate):
        """Several files, patterns and compressed files are read together."""
        for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
            ee.get_logger(f"file:{tmp_path}/{name}", name="n").info(name)
        subprocess.run(["gzip", tmp_path / "b.jsonl"], check=True)
        use(database, tmp_path / "[bc].jsonl*", tmp_path / "a.jsonl")

        assert [
            ("a.jsonl", f"{tmp_path}/a.jsonl"),
            ("b.jsonl", f"{tmp_path}/b.jsonl.gz"),
            ("c.jsonl", f"{tmp_path}/c.jsonl"),
        ] == database.sql(
            "SELECT message, file FROM events ORDER BY message"
        ).fetchall()

    def test_default(self, duckdb, view, tmp_path):
        """Without the variable, the files of the current folder are read."""
        ee.get_logger(f"file:{tmp_path}/a.jsonl", name="n").info("hello")
        done = subprocess.run(
            [
                *(sys.executable, "-c"),
                "import duckdb, sys; duckdb.execute(sys.stdin.read());"
                "print(duckdb.sql('SELECT message FROM events').fetchall())",
            ],
            input=view,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
            cwd=tmp_path,
        )

        assert "[('hello',)]\n" == done.stdout

    @settings(max_examples=20)
    @given(events=st.lists(EVENTS, min_size=1, max_size=20))
    def test_any(self, database, tmp_path, reset, events, exact):
        """Whatever the metadata, a line comes out as it went in."""
        reset()
        file = tmp_path / "any.jsonl"
        file.unlink(missing_ok=True)
        for event in events:
            ee.record(event, f"file:{file}")
        use(database, file)
        raw = file.read_bytes().split(b"\n")[:-1]

        assert exact([*map(json.loads, raw)]) == exact(read(database))


class TestPage:
    def test_losses(self):
        """Nothing is lost, and the page lists nothing."""
        assert [] == shipping_page.losses("duckdb")

    def test_program(self, duckdb, run, jobs, tmp_path):
        """The program of the page shows how many lines there are of what."""
        program = shipping_page.block("duckdb", "python")
        folder = os.path.dirname(sys.executable)
        shown = run(
            *(sys.executable, "-c", program.replace("/logs/*.jsonl", jobs)),
            env={"PATH": f"{folder}:{os.environ['PATH']}"},
        )

        assert b"error" in shown
        assert b"info" in shown

    def test_queries(self, database, jobs, duckdb):
        """The queries of the page find something in a job that failed."""
        use(database, jobs)
        queries = duckdb.extract_statements(
            shipping_page.block("duckdb", "sql")
        )

        assert 4 == len(queries)
        for query in queries:
            assert database.execute(query).fetchall(), query.query

    def test_twice(self, database, recorded, duckdb):
        """The last query of the page gives each line once."""
        *_, query = duckdb.extract_statements(
            shipping_page.block("duckdb", "sql")
        )
        use(database, recorded.file, recorded.file)

        assert len(recorded.said) == len(database.execute(query).fetchall())
