"""
Each form says what the line says, in the words of those who read it.
"""

import json
import logging
from pathlib import Path

import orjson
import pytest
import structlog
from hypothesis import given, strategies as st
from strategies import ANY_METADATA, EVENTS, METADATA, RDZV_EVENTS
from valid import validated

import elastic_events as ee
from elastic_events import formats
from elastic_events.encoding import decode, encode
from elastic_events.formats import FORMATS, Format
from elastic_events.forming import error_of
from elastic_events.schema import KEYS


INVERTIBLE = [each for each in FORMATS.values() if each.back]
NAMES = sorted(FORMATS)
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 3, in step\n    raise ValueError("bad batch")\n'
    "ValueError: bad batch\nmore of it"
)
# What a caller may bind to take the place of something.
FORGED = (
    "@timestamp",
    "log.level",
    "context",
    "ddsource",
    "error",
    "event",
    "evt",
    "level",
    "logging.googleapis.com/labels",
    "message",
    "resourceLogs",
    "service",
    "severity",
    "status",
    "timestamp",
    "torchelastic",
    "torchelastic.seq",
)
BOUND = st.dictionaries(
    st.sampled_from(FORGED) | st.text(max_size=8),
    st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8) | METADATA,
    max_size=4,
)


def lines(values):
    """
    Return a strategy of lines, each as it is read from what was written.
    """
    written = []

    def record(what, bound, kind):
        ee.register_destination("collected", written.append)
        log = ee.get_logger("collected", name="trainer")
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(**bound)
        if kind == "log":
            try:
                raise ValueError(str(bound))
            except ValueError:
                log.error(what.name, **what_fields(what))
        else:
            log.record(what)
        structlog.contextvars.clear_contextvars()
        return validated(written.pop())

    return st.builds(
        record,
        st.builds(
            lambda event, metadata: ee.Event(
                event.name, event.source, event.timestamp, metadata
            ),
            EVENTS,
            values,
        )
        | RDZV_EVENTS,
        BOUND,
        st.sampled_from(["event", "event", "log"]),
    )


def what_fields(what):
    fields = getattr(what, "metadata", {})
    return {"exc_info": True, **{f"f_{key}": fields[key] for key in fields}}


LINES = lines(METADATA)


def one_of_each(sink):
    """
    Return lines that have, among them, all keys.
    """
    log = ee.get_logger("sink", name="trainer").bind(
        run_id="job-1", rank=3, local_rank=1, restart=2, team="vision"
    )
    log.record(
        ee.Event(
            "torchelastic.worker.status.FAILED",
            ee.EventSource.WORKER,
            1_709_210_096_789,
            {
                "state": "FAILED",
                "raw_error": json.dumps(
                    {
                        "message": {
                            "message": "OSError: disk",
                            "extraInfo": {"py_callstack": TRACE},
                        }
                    }
                ),
                "metadata": json.dumps({"exit_code": [1], "local_rank": [1]}),
            },
        )
    )
    log.record(
        ee.RdzvEvent(
            "f.py:join", "job-1", "joined", "h", 1, "RUNNING", "e:1", 3, 0
        )
    )
    log.warning("slow", seconds=12.5, nested={"a": [1, None, True, "é\u2028"]})
    return sink.said


class TestTable:
    def test_names(self):
        """Each format is found by its name, and the table names all."""
        assert ["ecs", "otel", "gcp", "datadog", "torch"] == list(FORMATS)
        assert all(FORMATS[name].name == name for name in FORMATS)
        assert all(formats.find(name) is FORMATS[name] for name in FORMATS)
        assert list(FORMATS) == formats.known()

    def test_unknown(self):
        """A name that is not known is answered with those that are."""
        with pytest.raises(formats.UnknownFormat) as caught:
            formats.find("esc")

        assert (
            "unknown format 'esc': expected one of ecs, otel, gcp, datadog,"
            " torch"
        ) == str(caught.value)

    def test_built_in(self, provide, capfd):
        """What is provided under a name of ours is complained of."""
        provide("", group="formats", ecs="provider:x")

        assert formats.find("ecs") is FORMATS["ecs"]
        assert list(FORMATS) == formats.known()
        assert (
            "elastic_events: 'ecs', provided by 'provider:x' in"
            " elastic_events.formats, is not used: the name is built in, so"
            " give it another\n"
        ) == capfd.readouterr().err


class TestLaws:
    @pytest.mark.parametrize("form", INVERTIBLE, ids=lambda each: each.name)
    @given(line=LINES)
    def test_there_and_back(self, form, line):
        """What comes back from a form is the line, its keys in order."""
        expected = line
        if form.name == "otel":
            expected = without_wide_integers(line)
        there = json.loads(encode(form.to(line)))
        back = form.back(there)

        assert expected == back
        assert list(expected) == list(back)

    @pytest.mark.parametrize("name", NAMES)
    @given(line=LINES)
    def test_reads_only(self, name, line):
        """No format changes the line that it is given."""
        before = json.dumps(line)
        FORMATS[name].to(line)

        assert before == json.dumps(line)

    @pytest.mark.parametrize("name", NAMES)
    @given(metadata=ANY_METADATA, event=EVENTS)
    def test_hostile(self, name, metadata, event):
        """Whatever is recorded is the form of what the native line says."""
        native, formatted = [], []
        for written, outlet in (
            (native, ee.outlets.Outlet(lambda: "n", Sink(native))),
            (
                formatted,
                ee.outlets.Outlet(
                    lambda: "f", Sink(formatted), form=FORMATS[name]
                ),
            ),
        ):
            destination = ee.entrances.Destination(outlet)
            line = ee.drafts.draft(
                ee.Event(event.name, event.source, 1_709_210_096_789, metadata)
            )
            for step in destination.chain:
                line = step(None, "info", line)
            written.append(line)
        (native,), (formatted,) = native, formatted

        wanted = encode(FORMATS[name].to(decode(native)))
        assert by_key(decode(wanted)) == by_key(decode(formatted))
        assert 1 == formatted.count(b"\n")


class Sink:
    def __init__(self, written):
        self.write = written.append

    def after_fork(self):
        pass


def by_key(form):
    """
    Return a form, its attributes of OTLP in a fixed order.
    """
    if "resourceLogs" not in form:
        return form
    (logs,) = form["resourceLogs"]
    ((record,),) = (scope["logRecords"] for scope in logs["scopeLogs"])
    attributes = {each["key"]: each["value"] for each in record["attributes"]}
    assert len(attributes) == len(record["attributes"])
    return {**logs["resource"], **record, "attributes": attributes}


def without_wide_integers(value):
    """
    Return *value* with the integers that OTLP lacks as their digits.
    """
    if isinstance(value, dict):
        return {k: without_wide_integers(item) for k, item in value.items()}
    if isinstance(value, list):
        return [without_wide_integers(item) for item in value]
    if type(value) is int and value >= 2**63:
        return str(value)
    return value


DATA = Path(__file__).parent / "data" / "recorded"


class TestRecorded:
    @pytest.mark.parametrize("form", INVERTIBLE, ids=lambda each: each.name)
    @pytest.mark.parametrize(
        "file", sorted(DATA.glob("*.jsonl")), ids=lambda each: each.stem
    )
    def test_there_and_back(self, file, form):
        """Each line of real jobs comes back byte for byte."""
        lines = file.read_bytes().splitlines(keepends=True)
        there = [encode(form.to(decode(line))) for line in lines]

        assert lines == [encode(form.back(decode(each))) for each in there]


class TestLosses:
    """
    What a form cannot hold, as the documentation lists it.
    """

    def test_otel_integers(self, sink):
        """OTLP has no integers of 2**63 and more: they become their digits."""
        ee.get_logger("sink").info("m", most=2**63 - 1, more=2**63)
        (line,) = sink.said
        back = FORMATS["otel"].back(FORMATS["otel"].to(line))

        assert {"most": 2**63 - 1, "more": str(2**63)} == back["metadata"]

    def test_otel_depth(self, sink):
        """What is more than 20 levels deep becomes JSON text."""
        deep = {"x": 1}
        for _ in range(25):
            deep = {"d": deep}
        ee.get_logger("sink").info("m", **deep)
        (line,) = sink.said
        back = FORMATS["otel"].back(FORMATS["otel"].to(line))["metadata"]
        inner = {"d": {"x": 1}}
        for _ in range(19):
            back = back["d"]
        for _ in range(4):
            inner = {"d": inner}

        assert inner == json.loads(back["d"])

    @pytest.mark.parametrize(
        "timestamp", [-1, 18_446_744_073_709, 253_402_300_799_999]
    )
    def test_otel_times(self, sink, timestamp):
        """A time that OTLP lacks stands in an attribute, and comes back."""
        ee.record(ee.Event("n", ee.EventSource.AGENT, timestamp), "sink")
        (line,) = sink.said
        form = FORMATS["otel"].to(line)
        record = form["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]

        assert "timeUnixNano" not in record
        assert line == FORMATS["otel"].back(form)

    def test_torch(self, sink):
        """torch's form has torch's keys alone, so there is no way back."""
        assert FORMATS["torch"].back is None
        assert {"event", "rdzv"} == set(FORMATS["torch"].kinds)
        event, rdzv, _ = one_of_each(sink)
        assert ["name", "source", "timestamp", "metadata"] == list(
            FORMATS["torch"].to(event)
        )
        assert list(vars(ee.RdzvEvent("", "", "", "", 0, "INIT"))) == [
            "name",
            "run_id",
            "message",
            "hostname",
            "pid",
            "node_state",
            "master_endpoint",
            "rank",
            "local_id",
            "error_trace",
        ]
        assert set(FORMATS["torch"].to(rdzv)) == set(
            vars(ee.RdzvEvent("", "", "", "", 0, "INIT"))
        )


class TestForged:
    @pytest.mark.parametrize("form", INVERTIBLE, ids=lambda each: each.name)
    def test_bound(self, sink, form):
        """What is bound under a form's own names changes none of them."""
        log = ee.get_logger("sink")
        log.warning("m")
        log.bind(**dict.fromkeys(FORGED, "forged")).warning("m")
        plain, forged = (form.to(line) for line in sink.said)
        forged_context = {
            **dict.fromkeys(set(FORGED) - KEYS.keys(), "forged"),
            "level_": "forged",
            "message_": "forged",
            "timestamp_": "forged",
        }

        assert forged_context == context_of(forged)
        for each in plain, forged:
            forget(each)
        assert plain == forged


def context_of(form):
    if "resourceLogs" in form:
        value = by_key(form)["attributes"]["torchelastic.context"]
        pairs = value["kvlistValue"]["values"]
        return {each["key"]: each["value"]["stringValue"] for each in pairs}
    return form.get("torchelastic", form)["context"]


def forget(form):
    """
    Remove from *form* what was bound, and what differs between two lines.
    """
    if "resourceLogs" in form:
        record = form["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
        record["attributes"] = [
            each
            for each in record["attributes"]
            if each["key"] not in {"torchelastic.context", "torchelastic.seq"}
        ]
        record["timeUnixNano"] = record["observedTimeUnixNano"] = ""
        return
    form.get("torchelastic", form).pop("context", None)
    for part, key in (
        ("", "@timestamp"),
        ("", "time"),
        ("", "timestamp"),
        ("", "seq"),
        ("event", "sequence"),
        ("torchelastic", "seq"),
    ):
        (form.get(part, {}) if part else form).pop(key, None)


class TestEcs:
    def test_whole(self, frozen, sink, here):
        """A log with an error has these fields of the schema alone."""
        log = ee.get_logger("sink", name="trainer").bind(team="vision", rank=3)
        try:
            raise ValueError("bad batch")
        except ValueError:
            log.exception("broken", step=1)
        (line,) = sink.said

        assert {
            "@timestamp": "2024-02-29T12:34:56.789Z",
            "log.level": "error",
            "message": "broken",
            "ecs.version": "1.6.0",
            "service": {"name": "elastic_events"},
            "event": {
                "kind": "event",
                "provider": "torchelastic",
                "dataset": "elastic_events",
                "sequence": 0,
            },
            "labels": {"source": "AGENT"},
            "host": {"name": here["hostname"]},
            "process": {"pid": here["pid"]},
            "log": {"logger": "trainer"},
            "error": {
                "stack_trace": line["error_trace"],
                "type": "ValueError",
                "message": "bad batch",
            },
            "torchelastic": {
                "kind": "log",
                "rank": 3,
                "metadata": {"step": 1},
                "context": {"team": "vision"},
            },
        } == FORMATS["ecs"].to(line)

    def test_official(self, sink):
        """The fields that ecs-logging writes too have its values and order."""
        ecs_logging = pytest.importorskip("ecs_logging")
        caught = []
        handler = logging.Handler()
        handler.emit = caught.append
        logger = logging.Logger("trainer")
        logger.addHandler(handler)
        logger.addHandler(ee.EventHandler("sink"))
        try:
            raise ValueError("bad batch")
        except ValueError:
            logger.exception("node %s is slow", "n7")
        theirs = json.loads(ecs_logging.StdlibFormatter().format(caught[0]))
        ours = FORMATS["ecs"].to(sink.one)

        first = ["@timestamp", "log.level", "message", "ecs.version"]
        assert first == list(theirs)[:4] == list(ours)[:4]
        # Theirs has the frames alone; ours all that Python prints.
        assert theirs["error"].pop("stack_trace") in ours["error"].pop(
            "stack_trace"
        )
        for key in ("log.level", "message", "ecs.version", "error"):
            assert theirs[key] == ours[key]
        assert theirs["@timestamp"] == ours["@timestamp"]
        assert theirs["log"]["logger"] == ours["log"]["logger"]
        assert theirs["process"]["pid"] == ours["process"]["pid"]


class TestOtel:
    @given(line=LINES)
    def test_official(self, line):
        """The official messages read a request, and say the same."""
        pytest.importorskip("opentelemetry.proto")
        form = FORMATS["otel"].to(line)
        again = through_protobuf(form)

        assert FORMATS["otel"].back(form) == FORMATS["otel"].back(again)

    def test_record(self, frozen, sink, here):
        """A record has time, severity, name, body, and typed attributes."""
        proto = pytest.importorskip("opentelemetry.proto.logs.v1.logs_pb2")
        from google.protobuf import json_format

        event, _, _ = one_of_each(sink)
        message = json_format.ParseDict(
            FORMATS["otel"].to(event), proto.LogsData()
        )
        (logs,) = message.resource_logs
        (scope,) = logs.scope_logs
        (record,) = scope.log_records
        resource = {
            each.key: getattr(each.value, each.value.WhichOneof("value"))
            for each in logs.resource.attributes
        }
        said = {
            each.key: getattr(each.value, each.value.WhichOneof("value"))
            for each in record.attributes
        }

        assert {
            "service.name": "elastic_events",
            "host.name": here["hostname"],
            "process.pid": here["pid"],
        } == resource
        assert frozen * 1_000_000 == record.time_unix_nano
        assert frozen * 1_000_000 == record.observed_time_unix_nano
        assert proto.SEVERITY_NUMBER_ERROR == record.severity_number
        assert "ERROR" == record.severity_text
        assert "torchelastic.worker.status.FAILED" == record.event_name
        assert "torchelastic.worker.status.FAILED" == record.body.string_value
        assert 3 == said["torchelastic.rank"]
        assert "OSError" == said["exception.type"]
        assert "disk" == said["exception.message"]
        assert TRACE == said["exception.stacktrace"]

    @pytest.mark.parametrize(
        ("level", "name"),
        [
            ("debug", "SEVERITY_NUMBER_DEBUG"),
            ("info", "SEVERITY_NUMBER_INFO"),
            ("warning", "SEVERITY_NUMBER_WARN"),
            ("error", "SEVERITY_NUMBER_ERROR"),
            ("critical", "SEVERITY_NUMBER_FATAL"),
        ],
    )
    def test_severity(self, sink, level, name):
        """Each level is the first number of its range."""
        proto = pytest.importorskip("opentelemetry.proto.logs.v1.logs_pb2")
        getattr(ee.get_logger("sink"), level)("m")
        record = by_key(FORMATS["otel"].to(sink.one))

        assert proto.SeverityNumber.Value(name) == record["severityNumber"]
        assert level.upper() == record["severityText"]

    @pytest.mark.parametrize(
        "form",
        [
            {},
            {"resourceLogs": []},
            {"resourceLogs": 5},
            {"resourceLogs": [{"resource": {}}]},
            {"resourceLogs": [{}, {}]},
        ],
    )
    def test_no_record(self, form):
        """What is no single record is refused with a ValueError."""
        with pytest.raises(ValueError):
            FORMATS["otel"].back(form)


def through_protobuf(form):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2

    request = logs_service_pb2.ExportLogsServiceRequest()
    json_format.ParseDict(form, request)
    again = logs_service_pb2.ExportLogsServiceRequest.FromString(
        request.SerializeToString()
    )
    return json_format.MessageToDict(again, use_integers_for_enums=True)


# Special fields in structured payloads, and LogSeverity:
# https://cloud.google.com/logging/docs/structured-logging#special-payload-fields
# https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity
GCP_SPECIAL = {
    "severity": str,
    "message": str,
    "time": str,
    "logging.googleapis.com/labels": dict,
}
# Others of that list, which a payload of ours must not have by chance.
GCP_UNUSED = {
    "httpRequest",
    "timestamp",
    "timestampSeconds",
    "timestampNanos",
    "logging.googleapis.com/insertId",
    "logging.googleapis.com/operation",
    "logging.googleapis.com/sourceLocation",
    "logging.googleapis.com/spanId",
    "logging.googleapis.com/trace",
    "logging.googleapis.com/trace_sampled",
}
GCP_SEVERITIES = {
    "DEFAULT",
    "DEBUG",
    "INFO",
    "NOTICE",
    "WARNING",
    "ERROR",
    "CRITICAL",
    "ALERT",
    "EMERGENCY",
}


class TestGcp:
    def test_special_fields(self, sink):
        """The fields that the agent takes out are as it wants them."""
        for line in one_of_each(sink):
            form = FORMATS["gcp"].to(line)

            for key, kind in GCP_SPECIAL.items():
                assert isinstance(form[key], kind)
            assert GCP_UNUSED.isdisjoint(form)
            labels = form["logging.googleapis.com/labels"]
            assert all(isinstance(each, str) for each in labels.values())
            assert form["severity"] in GCP_SEVERITIES

    def test_whole(self, frozen, sink, here):
        """An event is this, and its error is where it is looked for."""
        event, _, _ = one_of_each(sink)

        assert {
            "severity": "ERROR",
            "time": "2024-02-29T12:34:56.789Z",
            "message": "torchelastic.worker.status.FAILED",
            "logging.googleapis.com/labels": {
                "source": "WORKER",
                "hostname": here["hostname"],
                "run_id": "job-1",
            },
            "kind": "event",
            "name": "torchelastic.worker.status.FAILED",
            "pid": here["pid"],
            "seq": 0,
            "rank": 3,
            "local_rank": 1,
            "restart": 2,
            "stack_trace": TRACE,
            "worker": event["worker"],
            "metadata": event["metadata"],
            "context": {"team": "vision"},
        } == FORMATS["gcp"].to(event)


# Reserved attributes, and the standard ones of source code and events:
# https://docs.datadoghq.com/logs/log_configuration/attributes_naming_convention/
DATADOG_RESERVED = {"status", "service", "message"}
DATADOG_STANDARD = {
    ("logger", "name"): str,
    ("error", "stack"): str,
    ("error", "message"): str,
    ("error", "kind"): str,
    ("evt", "name"): str,
}
# Preprocessing of JSON logs: what date, host and status are taken from unless
# it is configured otherwise:
# https://docs.datadoghq.com/logs/log_configuration/pipelines/
DATADOG_DATES = {
    "@timestamp",
    "timestamp",
    "_timestamp",
    "Timestamp",
    "eventTime",
    "date",
    "published_date",
    "syslog.timestamp",
}
DATADOG_HOSTS = {"host", "hostname", "syslog.hostname"}


class TestDatadog:
    def test_attributes(self, sink):
        """What is reserved or standard is there, once, and of its type."""
        seen = set()
        for line in one_of_each(sink):
            form = FORMATS["datadog"].to(line)

            assert form.keys() >= DATADOG_RESERVED
            assert {"timestamp"} == form.keys() & DATADOG_DATES
            assert {"hostname"} == form.keys() & DATADOG_HOSTS
            assert type(form["timestamp"]) is int
            for (part, name), kind in DATADOG_STANDARD.items():
                if name in form.get(part, {}):
                    assert isinstance(form[part][name], kind)
                    seen.add((part, name))
        assert DATADOG_STANDARD.keys() == seen

    def test_whole(self, sink, here):
        """A rendezvous event is this."""
        _, rdzv, _ = one_of_each(sink)

        assert {
            "timestamp": rdzv["timestamp"],
            "status": "info",
            "message": "joined",
            "service": "elastic_events",
            "ddsource": "python",
            "hostname": "h",
            "pid": 1,
            "evt": {"name": "f.py:join"},
            "torchelastic": {
                "kind": "rdzv",
                "source": "AGENT",
                "seq": 1,
                "run_id": "job-1",
                "rank": 3,
                "local_rank": 1,
                "restart": 2,
                "node_state": "RUNNING",
                "local_id": 0,
                "master_endpoint": "e:1",
                "context": {"team": "vision"},
            },
        } == FORMATS["datadog"].to(rdzv)


class TestTorch:
    @pytest.mark.torch
    @given(event=EVENTS)
    def test_event(self, event):
        """torch's own deserialize gives back the event."""
        from torch.distributed.elastic import events

        (line,) = recorded(event)
        text = json.dumps(FORMATS["torch"].to(line))
        again = events.Event.deserialize(text)
        event.timestamp = line["timestamp"]

        assert event.serialize() == again.serialize()

    @pytest.mark.torch
    @given(event=RDZV_EVENTS)
    def test_rdzv_event(self, event):
        """torch's own deserialize gives back the rendezvous event."""
        from torch.distributed.elastic import events

        (line,) = recorded(event)
        text = json.dumps(FORMATS["torch"].to(line))

        assert (
            event.serialize() == events.RdzvEvent.deserialize(text).serialize()
        )


def recorded(event):
    written = []
    ee.register_destination("recorded", written.append)
    ee.record(event, "recorded")
    return [json.loads(each) for each in written]


class TestErrors:
    @pytest.mark.parametrize(
        ("trace", "expected"),
        [
            (TRACE, {"type": "ValueError", "message": "bad batch"}),
            ("a.b.E", {"type": "a.b.E"}),
            ("no error: here\n", {}),
            ("", {}),
            ("  indented", {}),
        ],
    )
    def test_type_and_message(self, trace, expected):
        """Type and the message's first line are taken from a traceback."""
        line = {"error_trace": trace}

        assert expected == error_of(line)


@pytest.fixture(name="in_file")
def _in_file(tmp_path):
    """
    A function that gives a file's destination in a format, and its lines.
    """

    def in_file(query):
        file = tmp_path / f"{query.replace('&', '_')}.jsonl"

        def read():
            written = file.read_bytes().splitlines()
            # After a write that failed there is an empty line.
            return [json.loads(each) for each in written if each]

        return f"file:{file}?{query}", read

    return in_file


class TestDestination:
    @pytest.mark.parametrize("form", INVERTIBLE, ids=lambda each: each.name)
    def test_file(self, in_file, form):
        """Each line of the file is the form of a line, by every door."""
        destination, read = in_file(f"format={form.name}")
        event = ee.Event("n", ee.EventSource.WORKER, metadata={"step": 1})
        ee.record(event, destination)
        ee.get_logger(destination, name="l").info(
            "m", odd={1, 2}, nan=float("nan")
        )
        logger = logging.Logger("plain")
        logger.addHandler(ee.EventHandler(destination))
        logger.warning("w")
        said = [validated(encode(form.back(each))) for each in read()]

        assert ["n", "m", "w"] == [each["message"] for each in said]
        assert [0, 1, 2] == [each["seq"] for each in said]
        assert {"odd": [1, 2], "nan": "NaN"} == said[1]["metadata"]

    @pytest.mark.parametrize("form", INVERTIBLE, ids=lambda each: each.name)
    def test_alike(self, in_file, form):
        """Lines say what our own do, also when many are alike."""
        formatted, read = in_file(f"format={form.name}")
        native, read_native = in_file("max_line=100000")
        for step in range(6):
            event = ee.Event("n", ee.EventSource.WORKER, 1_709_210_096_789)
            event.metadata = {
                "step": step,
                "loss": step / 4,
                "note": f'"{step}',
            }
            if step == 4:
                event.metadata["loss"] = float("nan")
            for destination in (formatted, native):
                ee.record(event, destination)

        assert read_native() == [form.back(each) for each in read()]

    def test_streams(self, capfd):
        """Both streams can be given a format."""
        ee.get_logger("console?format=ecs").info("to people")
        ee.get_logger("stdout?format=gcp").info("to the agent")
        out, err = capfd.readouterr()

        assert "to the agent" == json.loads(out)["message"]
        assert "1.6.0" == json.loads(err)["ecs.version"]

    def test_queue(self, in_file):
        """A queue hands the format inward."""
        destination, read = in_file("format=ecs")
        ee.get_logger(f"queue:{destination}").info("m")
        assert ee.flush()

        assert ["m"] == [each["message"] for each in read()]

    def test_wrong(self, in_file):
        """A format that is not known is an error at once that lists them."""
        destination, _ = in_file("format=esc")
        with pytest.raises(ee.UnknownDestination) as caught:
            ee.get_logger(destination)

        assert str(caught.value).endswith(
            "unknown format 'esc': expected one of ecs, otel, gcp, datadog,"
            " torch"
        )

    def test_empty(self, in_file):
        """A format without a name is no option."""
        destination, _ = in_file("format=")
        with pytest.raises(ee.UnknownDestination, match="format=NAME"):
            ee.get_logger(destination)

    def test_two_formats(self, tmp_path):
        """One path cannot be had in two formats."""
        ee.get_logger(f"file:{tmp_path}/e.jsonl?format=ecs")
        with pytest.raises(ee.UnknownDestination, match="is in use"):
            ee.get_logger(f"file:{tmp_path}/e.jsonl?format=gcp")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        "metadata",
        [
            {"a": "x" * 50_000, "b": "\u2028" * 20_000},
            {f"key{number}": number for number in range(5000)},
            {"a": [[{"b": "\x01" * 300}] * 40] * 40},
        ],
        ids=["strings", "keys", "nested"],
    )
    def test_max_line(self, in_file, name, metadata):
        """What is written, not what it is made of, has the size limit."""
        destination, read = in_file(f"format={name}&max_line=4096")
        event = ee.Event("n", ee.EventSource.WORKER, 5, metadata)
        ee.record(event, destination)
        (form,) = read()
        length = len(orjson.dumps(form)) + 1

        assert 300 < length <= 4096
        assert FORMATS[name].to(decode(encode(line_of(form, name)))) == form
        if FORMATS[name].back:
            assert FORMATS[name].back(form)["truncated"] is True

    def test_fsync(self, in_file, monkeypatch):
        """A line in another format is synced to the disk like ours."""
        synced = []
        monkeypatch.setattr("os.fsync", synced.append)
        monkeypatch.setattr("os.fdatasync", synced.append)
        destination, read = in_file("format=otel&fsync=error")
        log = ee.get_logger(destination)
        log.info("m")
        assert [] == synced
        log.error("m")

        assert 1 == len(synced)
        assert 2 == len(read())

    def test_drops(self, in_file, monkeypatch):
        """What was dropped is said in the same form."""
        destination, read = in_file("format=ecs")
        log = ee.get_logger(destination)
        log.info("first")
        with monkeypatch.context() as broken:
            broken.setattr("os.write", no_space)
            log.info("lost")
        log.info("last")
        (name,) = ee.health()

        assert ["first", "dropped 1 events", "last"] == [
            each["message"] for each in read()
        ]
        assert {
            "recorded": 4,
            "written": 3,
            "dropped": {"ENOSPC": 1},
            "queued": 0,
        } == ee.health()[name]


def no_space(*_):
    raise OSError(28, "No space left on device")


def line_of(form, name):
    if FORMATS[name].back:
        return FORMATS[name].back(form)
    return form


class TestTorchDestination:
    def test_logs(self, in_file):
        """Logs have no such form: they are left out, and not counted."""
        destination, read = in_file("format=torch")
        log = ee.get_logger(destination)
        log.info("left out")
        log.record(ee.Event("n", ee.EventSource.AGENT, 5))
        logging.Logger("plain").addHandler(ee.EventHandler(destination))
        ee.get_logging_handler(destination).info("left out")

        assert [
            {"name": "n", "source": "AGENT", "timestamp": 5, "metadata": {}}
        ] == read()
        assert [{"recorded": 1, "written": 1, "dropped": {}, "queued": 0}] == [
            *ee.health().values()
        ]

    def test_no_event(self, in_file, capfd):
        """What is no event is dropped and counted, for it cannot be said."""
        destination, read = in_file("format=torch")
        ee.record("no event", destination)
        ee.record(ee.Event("n", ee.EventSource.AGENT, 5), destination)

        assert ["n"] == [each["name"] for each in read()]
        assert [
            {
                "recorded": 2,
                "written": 1,
                "dropped": {"NoForm": 1},
                "queued": 0,
            }
        ] == [*ee.health().values()]
        assert (
            "expected an Event or RdzvEvent, got str" in capfd.readouterr().err
        )

    def test_drops(self, in_file, monkeypatch):
        """Drops are counted, and cannot be said in the file."""
        destination, read = in_file("format=torch")
        event = ee.Event("n", ee.EventSource.AGENT, 5)
        with monkeypatch.context() as broken:
            broken.setattr("os.write", no_space)
            ee.record(event, destination)
        ee.record(event, destination)

        assert 1 == len(read())
        assert [
            {
                "recorded": 2,
                "written": 1,
                "dropped": {"ENOSPC": 1},
                "queued": 0,
            }
        ] == [*ee.health().values()]


def broken(line):
    raise ZeroDivisionError


class TestGiven:
    """
    Formats that are not ours.
    """

    @pytest.mark.parametrize(
        "to",
        [broken, lambda _: None, lambda _: [1]],
        ids=["raises", "none", "list"],
    )
    def test_broken(self, tmp_path, monkeypatch, capfd, to):
        """A line that a format makes nothing of is written as it is."""
        monkeypatch.setitem(FORMATS, "odd", Format("odd", to))
        file = tmp_path / "e.jsonl"
        ee.get_logger(f"file:{file}?format=odd").info("m", step=1)
        said = validated(file.read_bytes())

        assert {"step": 1} == said["metadata"]
        assert "format 'odd': " in capfd.readouterr().err

    def test_broken_mover(self, tmp_path, monkeypatch, capfd):
        """So is one that a format refuses which takes values as they are."""
        monkeypatch.setitem(
            FORMATS, "odd", Format("odd", broken, is_mover=True)
        )
        file = tmp_path / "e.jsonl"
        ee.get_logger(f"file:{file}?format=odd").info("m")

        assert "m" == validated(file.read_bytes())["message"]
        assert "ZeroDivisionError" in capfd.readouterr().err

    def test_types(self, tmp_path, monkeypatch):
        """A format is given values of JSON's types, and may change them."""
        given = []

        def to(line):
            given.append(dict(line))
            line.clear()
            return {"odd": {1}, 5: float("inf")}

        monkeypatch.setitem(FORMATS, "odd", Format("odd", to))
        file = tmp_path / "e.jsonl"
        metadata = {"set": {1}, "nan": float("nan")}
        ee.get_logger(f"file:{file}?format=odd").info("m", **metadata)
        (line,) = given

        assert {"odd": [1], "5": "Infinity"} == json.loads(file.read_bytes())
        assert {"set": [1], "nan": "NaN"} == line["metadata"]
        assert {"set": {1}}["set"] == metadata["set"]
