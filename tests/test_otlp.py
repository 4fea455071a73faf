"""
The destination ``otlp:``, before a server that remembers all, and a collector
that people run.
"""

import contextlib
import gzip
import itertools
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import sysconfig
import threading
import time
import tracemalloc
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import structlog
from hypothesis import given, settings
from required import import_required, missing
from strategies import ANY_METADATA, EVENTS, RDZV_EVENTS
from waiting import interrupted_after, run_recording, sums, wait_until

import elastic_events as ee
from elastic_events.destinations import resolve
from elastic_events.encoding import decode
from elastic_events.otel_form import to_otel
from elastic_events.testing import capture_events


pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

import certifi
import requests
from google.protobuf import json_format
from opentelemetry import _logs, context, trace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from elastic_events.otlp.batches import Batches
from elastic_events.otlp.records import noted
from elastic_events.otlp.settings import Batching


EVENT = ee.Event("n", ee.EventSource.WORKER)
ACCEPTED = (200, ExportLogsServiceResponse().SerializeToString())


class Collector:
    """
    A server that takes what OTLP sends, and answers as it is told.
    """

    def __init__(self, port=0, tls=None):
        self.requests = []
        self.headers = []
        self.sizes = []
        self.answer = ACCEPTED
        self.answers = []
        self.connections = []
        self.opened = threading.Event()
        self.opened.set()
        self.entered = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self):
                # Who was killed, or has waited enough, is gone.
                with contextlib.suppress(OSError):
                    super().handle()

            def do_POST(self):
                collector.handle(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        if tls:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True
            )
            self.url = self.url.replace("http:", "https:")
        self.to = f"otlp:{self.url}"
        self.name = f"otlp:{self.url}/v1/logs"
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        ).start()

    def handle(self, request):
        self.connections.append(request.connection)
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.entered.set()
        assert self.opened.wait(timeout=60)
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        status, said, *headers = (
            self.answers.pop(0) if self.answers else self.answer
        )
        if status == 200:
            self.headers.append((request.path, dict(request.headers)))
            self.sizes.append(len(body))
            self.requests.append(ExportLogsServiceRequest.FromString(body))
        request.send_response(status)
        request.send_header("Content-Type", "application/x-protobuf")
        request.send_header("Content-Length", str(len(said)))
        for name, value in headers:
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(said)

    def close(self):
        self.opened.set()
        self._server.shutdown()
        self._server.server_close()
        for each in self.connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @property
    def logs(self):
        """
        Each record, and the attributes of its resource.
        """
        return [
            (record, plain(logs.resource.attributes))
            for request in self.requests
            for logs in request.resource_logs
            for scope in logs.scope_logs
            for record in scope.log_records
        ]

    @property
    def records(self):
        return [record for record, _ in self.logs]

    @property
    def numbers(self):
        return [
            plain(record.attributes)["torchelastic.seq"]
            for record in self.records
        ]

    @property
    def health(self):
        return ee.health()[self.name]


def batches(collector):
    """
    Return the records of each request.
    """
    return [
        [
            record
            for logs in request.resource_logs
            for scope in logs.scope_logs
            for record in scope.log_records
        ]
        for request in collector.requests
    ]


def plain(attributes):
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value") or "kind")
        for each in attributes
        if each.value.WhichOneof("value")
    }


@pytest.fixture(name="collector")
def _collector(monkeypatch):
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "20")
    collector = Collector()
    yield collector
    assert ee.flush(60)
    collector.close()


@pytest.fixture(name="certificate", scope="module")
def _certificate(tmp_path_factory):
    """
    A file with the key and the certificate of a server on this machine.
    """
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here, which makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -nodes -subj /CN=collector -days 2 -newkey rsa:2048"
        " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out crt.pem"
    )
    subprocess.run(
        command.split(),
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    both = folder / "both.pem"
    both.write_text("".join(each.read_text() for each in folder.iterdir()))
    return both


def expected(line):
    """
    Return the record of *line*, as the format ``otel`` has it.
    """
    form = to_otel(decode(line))
    request = json_format.ParseDict(form, ExportLogsServiceRequest())
    (record,) = request.resource_logs[0].scope_logs[0].log_records
    return said(record)


def said(record):
    """
    Return what *record* says, but for when it was observed.
    """
    form = json_format.MessageToDict(record)
    form.pop("observedTimeUnixNano", None)
    return without_nothing(form)


def without_nothing(form):
    """
    Return *form* with one spelling of null, of which there are two.
    """
    if isinstance(form, list):
        return [without_nothing(each) for each in form]
    if isinstance(form, dict):
        return {
            key: without_nothing(each)
            for key, each in form.items()
            if (key, each) != ("value", {})
        }
    return form


class TestRecord:
    def both(self, collector, sink, event):
        """
        Return the record of *event*, and the one that is expected.
        """
        sink.clear()
        collector.requests.clear()
        # Their numbers and times are those of one line.
        ee.record(event, "sink")
        ee.record(event, collector.to)
        assert ee.flush(60)
        (record,) = collector.records
        (line,) = sink
        return said(record), expected(line)

    @given(EVENTS)
    @settings(max_examples=50)
    def test_event(self, collector, sink, frozen, event):
        """A record holds what the format ``otel`` says of the line."""
        record, wanted = self.both(collector, sink, event)

        assert wanted == record

    @given(RDZV_EVENTS)
    @settings(max_examples=50)
    def test_rdzv_event(self, collector, sink, frozen, event):
        """So it is for rendezvous events."""
        record, wanted = self.both(collector, sink, event)

        assert wanted == record

    @given(ANY_METADATA)
    @settings(max_examples=50)
    def test_any_value(self, collector, sink, frozen, metadata):
        """No value is lost on the way that the format has."""
        event = ee.Event("n", ee.EventSource.AGENT, 1, metadata)
        record, wanted = self.both(collector, sink, event)

        assert wanted == record

    def test_parts(self, collector, frozen, here):
        """Name, severity, body, times and resource are in their places."""
        log = ee.get_logger(collector.to, name="trainer").bind(run_id="job-1")
        log.warning("node %s is slow", "n7", seconds=12.5)
        log.record(ee.Event("start", ee.EventSource.AGENT, 1000, {"n": 2}))
        assert ee.flush(60)
        (warning, resource), (event, _) = collector.logs

        assert {
            "service.name": "elastic_events",
            "host.name": here["hostname"],
            "process.pid": here["pid"],
        } == {
            key: resource[key]
            for key in ("service.name", "host.name", "process.pid")
        }
        assert (13, "WARNING", "node n7 is slow", "") == (
            warning.severity_number,
            warning.severity_text,
            warning.body.string_value,
            warning.event_name,
        )
        assert frozen * 1_000_000 == warning.time_unix_nano
        assert frozen * 1_000_000 == warning.observed_time_unix_nano
        assert (9, "INFO", "start", "start") == (
            event.severity_number,
            event.severity_text,
            event.body.string_value,
            event.event_name,
        )
        assert 1000 * 1_000_000 == event.time_unix_nano
        assert frozen * 1_000_000 == event.observed_time_unix_nano
        assert b"" == event.trace_id
        assert b"" == event.span_id

    def test_scope(self, collector):
        """The scope is the package's."""
        ee.record(EVENT, collector.to)
        assert ee.flush(60)
        (request,) = collector.requests
        (scope_logs,) = request.resource_logs[0].scope_logs

        assert "elastic_events" == scope_logs.scope.name

    def test_error(self, collector):
        """A traceback is an exception, as OpenTelemetry names its parts."""
        log = ee.get_logger(collector.to)
        try:
            raise ValueError("bad batch")
        except ValueError:
            log.exception("failed")
        assert ee.flush(60)
        (record,) = collector.records
        said = plain(record.attributes)

        assert 17 == record.severity_number
        assert ("ValueError", "bad batch") == (
            said["exception.type"],
            said["exception.message"],
        )
        assert said["exception.stacktrace"].startswith("Traceback")

    def test_host_of_rendezvous(self, collector):
        """The resource is where the event happened."""
        ee.record_rdzv_event(
            ee.RdzvEvent("n", "r", "m", "node7", 4711, ee.NodeState.RUNNING)
        )
        ee.register_destination("dynamic_rendezvous", collector.to)
        ee.record_rdzv_event(
            ee.RdzvEvent("n", "r", "m", "node7", 4711, ee.NodeState.RUNNING)
        )
        assert ee.flush(60)
        ((_, resource),) = collector.logs

        assert "node7" == resource["host.name"]
        assert 4711 == resource["process.pid"]

    def test_not_a_line(self, collector):
        """What has no such form is sent as its text."""
        outlet = resolve(collector.to).outlet
        outlet.numbers.take()
        outlet.write(b'{"encoding_error":"x"}\n')
        assert ee.flush(60)
        ((record, resource),) = collector.logs

        assert '{"encoding_error":"x"}' == record.body.string_value
        assert "elastic_events" == resource["service.name"]

    def test_bound_values(self, collector):
        """What is bound is the caller's at that moment, as everywhere."""
        with structlog.contextvars.bound_contextvars(team="x"):
            ee.record(EVENT, collector.to)
        assert ee.flush(60)
        (record,) = collector.records
        (context,) = [
            each.value.kvlist_value.values
            for each in record.attributes
            if each.key == "torchelastic.context"
        ]

        assert {"team": "x"} == plain(context)


class TestSpan:
    def test_current(self, collector):
        """A record has the ids of the span in which it was recorded."""
        tracer = TracerProvider().get_tracer("t")
        with tracer.start_as_current_span("step") as span:
            ee.record(EVENT, collector.to)
        ee.record(EVENT, collector.to)
        assert ee.flush(60)
        inside, outside = collector.records
        context = span.get_span_context()

        assert context.trace_id.to_bytes(16, "big") == inside.trace_id
        assert context.span_id.to_bytes(8, "big") == inside.span_id
        assert context.trace_flags == inside.flags
        assert b"" == outside.trace_id

    def test_each_thread_has_its_own(self, collector):
        """The span is that of the thread that records."""
        tracer = TracerProvider().get_tracer("t")
        spans = {}

        def work(number):
            with tracer.start_as_current_span("step") as span:
                spans[number] = span.get_span_context().span_id
                ee.get_logger(collector.to).info(str(number))

        threads = [
            threading.Thread(target=work, args=(each,)) for each in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert ee.flush(60)

        assert spans == {
            int(record.body.string_value): int.from_bytes(record.span_id)
            if sys.version_info >= (3, 11)
            else int.from_bytes(record.span_id, "big")
            for record in collector.records
        }

    def test_none_of_the_sending(self, collector, monkeypatch):
        """Who makes spans of requests is told to make none of ours."""
        told = []

        def request(self, *args, **options):
            key = context._SUPPRESS_INSTRUMENTATION_KEY
            told.append(context.get_value(key))
            return real(self, *args, **options)

        real = requests.Session.request
        monkeypatch.setattr(requests.Session, "request", request)
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert [True] == told

    def test_no_provider(self, collector):
        """No provider is set for the program."""
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert "Proxy" in type(_logs.get_logger_provider()).__name__
        assert "Proxy" in type(trace.get_tracer_provider()).__name__


class TestEnvironment:
    def test_endpoint(self, collector, monkeypatch):
        """Without an address it is the environment's."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{collector.url}/x")
        ee.record(EVENT, "otlp:")
        assert ee.flush(60)

        assert ["/x/v1/logs"] == [path for path, _ in collector.headers]

    def test_endpoint_of_logs(self, collector, monkeypatch):
        """That of logs wins, and is taken as it is."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", f"{collector.url}/y"
        )
        ee.record(EVENT, "otlp:")
        assert ee.flush(60)

        assert ["/y"] == [path for path, _ in collector.headers]

    def test_one_destination(self, collector, monkeypatch):
        """Spellings of one endpoint are one destination."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        for to in ("", collector.url, f"{collector.url}/v1/logs"):
            ee.record(EVENT, f"otlp:{to}")
        assert ee.flush(60)

        assert [0, 1, 2] == collector.numbers
        assert [collector.name] == list(ee.health())

    def test_headers_and_compression(self, collector, monkeypatch):
        """Headers and compression are the environment's."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=secret")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        ee.record(EVENT, collector.to)
        assert ee.flush(60)
        ((_, headers),) = collector.headers
        headers = {key.lower(): value for key, value in headers.items()}

        assert "secret" == headers["x-token"]
        assert "gzip" == headers["content-encoding"]

    def test_resource(self, collector, monkeypatch):
        """The service and further attributes are the environment's."""
        monkeypatch.setenv("OTEL_SERVICE_NAME", "trainer")
        monkeypatch.setenv(
            "OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=p0,host.name=elsewhere"
        )
        ee.record(EVENT, collector.to)
        assert ee.flush(60)
        ((_, resource),) = collector.logs

        assert "trainer" == resource["service.name"]
        assert "p0" == resource["k8s.pod.name"]
        assert os.uname().nodename == resource["host.name"]

    def test_timeout(self, collector, monkeypatch):
        """The time that a batch may take is the environment's."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        collector.opened.clear()
        ee.record(EVENT, f"otlp:{collector.url}")
        assert ee.flush(60)

        assert {"ReadTimeout": 1} == collector.health["dropped"]

    def test_certificate(self, certificate, collector, monkeypatch):
        """A collector is trusted whose certificate the environment names."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        secure = Collector(tls=tls)
        name = "OTEL_EXPORTER_OTLP_CERTIFICATE"
        monkeypatch.setenv(name, str(certificate))
        # What is for other programs does not count.
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())
        ee.record(EVENT, secure.to)
        assert ee.flush(60)
        secure.close()

        assert [0] == secure.numbers

    def test_unknown_certificate(self, certificate, collector):
        """One that nobody vouches for gets nothing."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        secure = Collector(tls=tls)
        ee.record(EVENT, f"{secure.to}?timeout=1")
        assert ee.flush(60)
        secure.close()

        assert {"SSLError": 1} == secure.health["dropped"]
        assert [] == secure.requests

    def test_metrics(self, collector, monkeypatch):
        """Metrics that were not asked for are not looked for."""
        monkeypatch.setenv("OTEL_PYTHON_METER_PROVIDER", "no such provider")
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert 1 == collector.health["written"]

    def test_size_of_batches(self, collector, monkeypatch):
        """A batch is as large as the environment allows."""
        monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "10")
        for _ in range(100):
            ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert 10 <= len(collector.requests)
        assert list(range(100)) == collector.numbers

    def test_full_batch(self, collector, monkeypatch):
        """A batch that is full is sent at once, the rest when it is due."""
        monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "10")
        monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "60000")
        for _ in range(15):
            ee.record(EVENT, collector.to)
        wait_until(lambda: collector.health["written"] == 10)

        assert [10] == [len(each) for each in batches(collector)]
        assert 5 == collector.health["queued"]
        assert ee.flush(60)
        assert [10, 5] == [len(each) for each in batches(collector)]
        assert list(range(15)) == collector.numbers

    def test_delay(self, collector, monkeypatch):
        """What is no full batch is sent after the delay, unasked for."""
        monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "200")
        ee.record(EVENT, collector.to)
        wait_until(lambda: collector.health["written"] == 1)

        assert [0] == collector.numbers

    def test_processor(self, collector):
        """It is the SDK's processor that makes the batches."""
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert "OtelBatchLogRecordProcessor" in {
            each.name for each in threading.enumerate()
        }

    def test_longest_value(self, collector, monkeypatch):
        """The SDK's limit of a value's length is kept."""
        monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
        ee.get_logger(collector.to, name="trainer").info("message")
        assert ee.flush(60)
        (record,) = collector.records

        assert "tra" == plain(record.attributes)["torchelastic.logger"]
        assert "message" == record.body.string_value

    def test_disabled(self, collector, monkeypatch):
        """Where OpenTelemetry is switched off nothing is sent, and counted."""
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        ee.record(EVENT, collector.to)

        assert {
            "recorded": 1,
            "written": 0,
            "dropped": {"Disabled": 1},
            "queued": 0,
        } == collector.health
        assert [] == collector.requests


class TestMany:
    def test_threads(self, collector):
        """What many threads record arrives, each line once."""

        def work():
            for _ in range(200):
                ee.record(EVENT, collector.to)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert ee.flush(60)

        assert list(range(1600)) == sorted(collector.numbers)
        assert {
            "recorded": 1600,
            "written": 1600,
            "dropped": {},
            "queued": 0,
        } == collector.health

    def test_large_lines(self, collector):
        """Large lines are sent in several requests."""
        text = "x" * 500_000
        for _ in range(20):
            ee.get_logger(collector.to).info("large", text=text)
        assert ee.flush(60)

        assert list(range(20)) == collector.numbers
        assert max(collector.sizes) < 4 << 20

    def test_largest_line(self, collector):
        """A line is cut where its limit says."""
        to = f"otlp:{collector.url}?max_line=5000"
        ee.get_logger(to).info("large", text="x" * 500_000)
        assert ee.flush(60)
        (record,) = collector.records

        assert plain(record.attributes)["torchelastic.truncated"]
        assert collector.sizes[0] < 6000

    def test_signal_handlers(self, collector):
        """A signal handler records while its thread records."""
        collector.to = f"otlp:{collector.url}?size=100000"
        log = ee.get_logger(collector.to)
        handled = 0

        def handle(*_):
            nonlocal handled
            handled += 1
            log.record(EVENT)

        before = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        try:
            for _ in range(3000):
                log.record(EVENT)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert ee.flush(60)

        assert handled
        assert list(range(3000 + handled)) == sorted(collector.numbers)

    def test_what_is_said_while_sending(self, collector):
        """What is logged about the sending itself is not sent in turn."""
        root = logging.getLogger()
        root.addHandler(ee.EventHandler(collector.to))
        root.setLevel(logging.DEBUG)
        logging.getLogger("mine").info("x")
        assert ee.flush(60)
        # A few turns of the SDK's thread.
        for _ in range(5):
            time.sleep(0.02)
            assert ee.flush(60)
        names = {
            plain(record.attributes)["torchelastic.logger"]
            for record in collector.records
        }

        assert {"mine"} == names


def refuse(_):
    raise RuntimeError("can't start new thread")


class TestFailure:
    def test_nobody_listens(self, capfd, monkeypatch):
        """A collector that is not there: one complaint, and counted drops."""
        monkeypatch.setenv("NO_PROXY", "*")
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        for _ in range(3):
            ee.record(EVENT, f"otlp:{url}?timeout=0.5")
        assert ee.flush(60)
        err = capfd.readouterr().err

        assert {
            f"otlp:{url}/v1/logs": {
                "recorded": 3,
                "written": 0,
                "dropped": {"ConnectionError": 3},
                "queued": 0,
            }
        } == ee.health()
        assert 1 == err.count("\n")
        assert err.startswith(f"elastic_events: otlp:{url}/v1/logs: an event")
        assert "Connection refused" in err

    @pytest.mark.parametrize(
        "answer",
        [
            (400, b""),
            (401, b"who are you?"),
            (404, b""),
            (429, b"", ("Retry-After", "3600")),
            (500, b""),
            (503, b"", ("Retry-After", "3600")),
            (302, b"", ("Location", "/elsewhere")),
        ],
        ids=lambda answer: f"{answer[0]}-{len(answer)}",
    )
    def test_refused(self, collector, answer, capfd):
        """What is answered otherwise than with a success is a drop."""
        collector.answer = answer
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert {"HTTPError": 1} == collector.health["dropped"]
        assert 0 == collector.health["written"]
        assert f"HTTP {answer[0]}" in capfd.readouterr().err

    def test_tried_again(self, collector):
        """A collector that is busy for a moment gets it all the same."""
        collector.answers = [(503, b"", ("Retry-After", "0")), (503, b"")]
        ee.record(EVENT, f"otlp:{collector.url}?timeout=30")
        assert ee.flush(60)

        assert [0] == collector.numbers
        assert 1 == collector.health["written"]

    def test_too_many_requests(self, collector):
        """So does one that says when to come back, with newer SDKs."""
        pytest.importorskip("opentelemetry.exporter.otlp.common.http")
        collector.answers = [(429, b"", ("Retry-After", "0"))]
        ee.record(EVENT, f"otlp:{collector.url}?timeout=30")
        assert ee.flush(60)

        assert [0] == collector.numbers
        assert {} == collector.health["dropped"]

    def test_rejected_in_part(self, collector, capfd):
        """What the collector says it rejected is a drop, the rest is not."""
        answer = ExportLogsServiceResponse()
        answer.partial_success.rejected_log_records = 2
        answer.partial_success.error_message = "too old"
        collector.answer = (200, answer.SerializeToString())
        for _ in range(5):
            ee.record(EVENT, collector.to)
        assert ee.flush(60)
        health = collector.health

        assert {"Rejected"} == set(health["dropped"])
        assert health["recorded"] == sums(health)
        assert "rejected 2 records: too old" in capfd.readouterr().err

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", "Chunked"),
            (b"SSH-2.0-x\r\n", "Connection"),
            (b"", "Connection"),
        ],
    )
    def test_dies_in_the_middle(self, monkeypatch, answer, reason):
        """What hangs up in the midst of an answer did not take the line."""
        monkeypatch.setenv("NO_PROXY", "*")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            to = f"otlp:http://127.0.0.1:{port}?timeout=1"

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        client, _ = server.accept()
                        with client:
                            client.recv(65536)
                            client.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            ee.record(EVENT, to)
            assert ee.flush(60)
            (health,) = ee.health().values()
            ((said, count),) = health["dropped"].items()
            server.shutdown(socket.SHUT_RDWR)

        assert (True, 1, 0) == (
            said.startswith(reason),
            count,
            health["written"],
        )

    def test_drips(self, monkeypatch):
        """An answer that comes too slowly to end in time is a drop."""
        monkeypatch.setenv("NO_PROXY", "*")
        ended = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve():
                client, _ = server.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(65536)
                    client.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"
                    )
                    while not ended.wait(0.1):
                        client.sendall(b"x")

            thread = threading.Thread(target=serve)
            thread.start()
            port = server.getsockname()[1]
            ee.record(EVENT, f"otlp:http://127.0.0.1:{port}?timeout=0.5")
            is_done = ee.flush(30)
            (health,) = ee.health().values()
            ended.set()
            thread.join()

        assert is_done
        assert {"ReadTimeout": 1} == health["dropped"]

    @pytest.mark.parametrize("status", [200, 302, 400])
    def test_talks_too_much(self, collector, status):
        """Of an answer no more is read than it can have to say."""
        body = gzip.compress(bytes(100 << 20))
        headers = [("Content-Encoding", "gzip"), ("Location", "/elsewhere")]
        collector.answer = (status, body, *headers)
        tracemalloc.start()
        try:
            for _ in range(2):
                ee.record(EVENT, collector.to)
                assert ee.flush(60)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        written = collector.health["written"]

        assert most < 20 << 20
        assert (2 if status == 200 else 0) == written

    def test_one_connection(self, collector):
        """What was answered leaves the connection ready for the next."""
        for status in (200, 400, 200):
            collector.answer = (status, b"x" * 1000)
            ee.record(EVENT, collector.to)
            assert ee.flush(60)

        assert 1 == len({*map(id, collector.connections)})

    def test_nonsense(self, collector):
        """A success is a success, whatever else is said with it."""
        collector.answer = (200, b"\xff\xff nonsense")
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert 1 == collector.health["written"]

    def test_slow(self, collector):
        """Who records does not wait; what finds no room is a drop."""
        to = f"otlp:{collector.url}?size=10&timeout=60"
        collector.opened.clear()
        ee.record(EVENT, to)
        assert collector.entered.wait(60)
        for _ in range(20):
            ee.record(EVENT, to)
            assert collector.health["recorded"] == sums(collector.health)

        assert not ee.flush(0.1)
        assert {
            "recorded": 21,
            "written": 0,
            "dropped": {"QueueFull": 11},
            "queued": 10,
        } == collector.health
        collector.opened.set()
        assert ee.flush(60)
        assert {
            "recorded": 21,
            "written": 10,
            "dropped": {"QueueFull": 11},
            "queued": 0,
        } == collector.health

    def test_coming_back(self, collector):
        """A collector that is back is told what was dropped meanwhile."""
        collector.answer = (400, b"")
        for _ in range(3):
            ee.record(EVENT, collector.to)
            assert ee.flush(60)
        dropped = collector.health["dropped"]
        collector.answer = ACCEPTED
        for _ in range(2):
            ee.record(EVENT, collector.to)
            assert ee.flush(60)
        said = [record.body.string_value for record in collector.records]

        assert {"HTTPError": 3} == dropped
        assert ["n", "dropped 3 events", "n"] == said
        # The report is made when the number of the next line is taken.
        assert [3, 5, 4] == collector.numbers
        assert {
            "recorded": 6,
            "written": 3,
            "dropped": {"HTTPError": 3},
            "queued": 0,
        } == collector.health

    def test_moody(self, collector, monkeypatch, capfd):
        """Whatever the collector does, each line is accounted for once."""
        monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "7")
        to = f"otlp:{collector.url}?size=100"
        log = ee.get_logger(to)
        collector.answers = [(400, b""), ACCEPTED, ACCEPTED] * 1000

        def work():
            for _ in range(500):
                log.record(EVENT)
                time.sleep(0)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            health = ee.health()[collector.name]
            assert health["recorded"] == sums(health)
            assert 0 <= health["written"]
            assert health["queued"] <= 100 + len(threads)
        assert ee.flush(60)
        health = collector.health

        assert 0 == health["queued"]
        assert health["recorded"] == sums(health)
        assert health["written"] == len(collector.numbers)
        assert health["written"] == len({*collector.numbers})
        assert set(health["dropped"]) <= {"HTTPError", "QueueFull"}
        # The SDK would say so if it dropped something itself.
        assert {"elastic_events: "} == {
            line[:16] for line in capfd.readouterr().err.splitlines()
        }

    def test_interrupted(self, collector):
        """Wherever ^C comes, no line waits for ever."""
        outlet = resolve(collector.to).outlet
        for events in itertools.count(1):
            is_done = False
            with contextlib.suppress(KeyboardInterrupt):
                with interrupted_after(events):
                    outlet.write(b"{}\n")
                    is_done = True
            outlet.write(b"{}\n")

            assert ee.flush(60)
            assert 0 == collector.health["queued"]
            if is_done:
                break

        assert events > 10
        assert events <= len(collector.records) <= 2 * events

    def test_no_thread_for_a_moment(self, collector, monkeypatch):
        """A line waits for the first thread that can be had, and no caller."""
        log = ee.get_logger(collector.to)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            for _ in range(3):
                log.record(EVENT)
            health = collector.health

        assert (3, {}) == (health["queued"], health["dropped"])
        assert not collector.entered.is_set()
        assert ee.flush(60)
        assert [0, 1, 2] == collector.numbers

    def test_no_thread_for_the_sdk(self, collector, monkeypatch):
        """Where the SDK gets no thread, lines are sent without it."""
        log = ee.get_logger(collector.to)
        start = threading.Thread.start

        def refuse_to_sdk(thread):
            if thread.name.startswith("OtelBatch"):
                refuse(thread)
            start(thread)

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse_to_sdk)
            for _ in range(3):
                log.record(EVENT)
            assert ee.flush(60)
        log.record(EVENT)
        assert ee.flush(60)

        assert [0, 1, 2, 3] == collector.numbers

    def test_processor_that_fails(self, collector, monkeypatch, capfd):
        """Where the SDK's processor fails, lines are sent without it."""
        on_emit = BatchLogRecordProcessor.on_emit

        def emit_and_fail(self, record):
            on_emit(self, record)
            if b'"seq":2,' in record.log_record.body:
                raise MemoryError

        monkeypatch.setattr(BatchLogRecordProcessor, "on_emit", emit_and_fail)
        for _ in range(5):
            ee.record(EVENT, collector.to)
        assert ee.flush(60)
        ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert list(range(6)) == collector.numbers
        assert capfd.readouterr().err == (
            "elastic_events: OpenTelemetry's batch processor failed:"
            " MemoryError: lines are sent without it\n"
        )

    @pytest.mark.parametrize("lost", [0, 2, 4])
    def test_processor_that_loses(self, collector, monkeypatch, capfd, lost):
        """What the SDK's processor loses is sent without it."""
        monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "2")
        on_emit = BatchLogRecordProcessor.on_emit

        def emit_but_one(self, record):
            if b'"seq":%d,' % lost not in record.log_record.body:
                on_emit(self, record)

        monkeypatch.setattr(BatchLogRecordProcessor, "on_emit", emit_but_one)
        for _ in range(5):
            ee.record(EVENT, collector.to)
        assert ee.flush(60)

        assert list(range(5)) == sorted(collector.numbers)
        assert 5 == collector.health["written"]
        assert "not sent" in capfd.readouterr().err

    def test_put_while_a_batch_is_forgotten(self):
        """A line that comes while a batch was just sent is sent too."""

        class Waiting(deque):
            def popleft(self):
                super().popleft()
                if not sent[1:]:
                    batches.put(noted(b"2\n"))
                    # Long enough for the other thread to look.
                    time.sleep(0.2)

        def send(lines, forget):
            sent.extend(each.body for each in lines)
            forget(len(lines))

        sent = []
        limits = Batching(9, 9, delay=20, timeout=1, is_metered=False)
        batches = Batches(lambda: "n", send, limits)
        batches._waiting = Waiting()
        assert batches.is_running()
        batches.put(noted(b"1\n"))
        wait_until(lambda: not batches.queued())

        assert [b"1\n", b"2\n"] == sent

    def test_never_a_thread(self, collector, monkeypatch):
        """Where none can be had at all, what finds no room is a drop."""
        to = f"otlp:{collector.url}?size=5"
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            for _ in range(8):
                ee.record(EVENT, to)
            assert not ee.flush(0.1)

            assert {
                "recorded": 8,
                "written": 0,
                "dropped": {"QueueFull": 3},
                "queued": 5,
            } == collector.health

    def test_restarted(self, collector):
        """A collector that is started anew is found again."""
        to = f"otlp:{collector.url}?timeout=3"
        ee.record(EVENT, to)
        assert ee.flush(60)
        collector.close()
        ee.record(EVENT, to)
        assert ee.flush(60)
        again = Collector(collector.port)
        ee.record(EVENT, to)
        assert ee.flush(60)
        again.close()

        assert [2] == again.numbers


NO_THREADS = """
import threading
ee.get_logger(to)
def start(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")
threading.Thread.start = start
"""


class TestCapture:
    def test_nothing_sent(self, collector):
        """What a test captures is not sent, and the numbers go on."""
        log = ee.get_logger(collector.to)
        log.info("1")
        with capture_events() as captured:
            log.info("captured")
            ee.record(EVENT, collector.to)
        log.info("2")
        assert ee.flush(60)

        assert ["captured", "n"] == [line["message"] for line in captured]
        assert [0, 1] == collector.numbers
        assert 2 == collector.health["recorded"]


class TestProcesses:
    def run(self, collector, code, **environment):
        begun = time.monotonic()
        environment = {"OTEL_BLRP_SCHEDULE_DELAY": "60000", **environment}
        done = run_recording(collector.to, code, **environment)
        return done, time.monotonic() - begun

    def test_end(self, collector):
        """The end of the process waits for what is queued."""
        done, _ = self.run(
            collector, "for _ in range(1200): ee.record(event, to)"
        )

        assert "" == done.stderr
        assert list(range(1200)) == sorted(collector.numbers)

    def test_late(self, collector):
        """What is recorded at the very end is sent too."""
        done, _ = self.run(
            collector,
            "import atexit\n"
            "import elastic_events.backlog as own\n"
            "atexit.unregister(own._at_exit)\n"
            "atexit.register(lambda: ee.record(event, to))\n"
            "atexit.register(own._at_exit)\n"
            "ee.record(event, to)\n",
        )

        assert "" == done.stderr
        assert [0, 1] == collector.numbers

    def test_without_threads(self, collector):
        """Where no thread can be started any more, lines are sent at once."""
        code = NO_THREADS + (
            "ee.record(event, to); ee.record(event, to)\nprint(ee.health())\n"
        )
        done, _ = self.run(collector, code)

        assert ("", [0, 1]) == (done.stderr, collector.numbers)
        assert "'written': 2, 'dropped': {}, 'queued': 0}" in done.stdout
        assert ["elastic_events"] * 2 == [
            resource["service.name"] for _, resource in collector.logs
        ]

    def test_without_threads_and_answers(self, collector):
        """Then a collector that does not answer is waited for once."""
        collector.to += "?timeout=0.5"
        collector.opened.clear()
        code = NO_THREADS + (
            "for _ in range(1000): ee.record(event, to)\nprint(ee.health())\n"
        )
        done, seconds = self.run(collector, code)

        assert "{'ReadTimeout': 1, 'TooLate': 999}" in done.stdout
        assert seconds < 30

    def test_imported_too_late(self, collector):
        """Where the SDK cannot be imported any more, the error says so."""
        code = NO_THREADS.replace("ee.get_logger(to)", "") + (
            "try: ee.record(event, to)\n"
            "except ee.UnknownDestination as error: print(error)\n"
        )
        done, _ = self.run(collector, code)

        assert f"destination {collector.to!r}" in done.stdout
        assert "interpreter shutdown" in done.stdout

    def test_end_while_nobody_answers(self, collector):
        """That wait has an end, and what was not sent is said."""
        collector.to += "?timeout=60"
        collector.opened.clear()
        done, seconds = self.run(collector, "ee.record(event, to)")

        assert 5 < seconds < 30
        assert "1 lines were not written" in done.stderr

    def test_end_after_a_complaint(self, collector):
        """What was not sent is said also where something was said before."""
        collector.to += "?timeout=0.2"
        collector.opened.clear()
        done, _ = self.run(
            collector,
            "import threading\n"
            "ee.record(event, to); assert ee.flush(60)\n"
            "from elastic_events.otlp.sending import Sender\n"
            "Sender.send = lambda self, lines: threading.Event().wait()\n"
            "ee.record(event, to)\n",
        )

        first, last = done.stderr.splitlines()
        assert "an event was not written" in first
        assert "1 lines were not written" in last

    def test_fork(self, collector):
        """A forked process sends what is its own, with its own numbers."""
        done, _ = self.run(
            collector,
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            "ee.record(event, to)\n"
            "child = os.fork()\n"
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            "if not child:\n"
            "    assert 1 == list(ee.health().values())[0]['written']\n"
            "    os._exit(0)\n"
            "assert 0 == os.waitpid(child, 0)[1]\n"
            "print(os.getpid(), child)\n",
        )
        parent, child = map(int, done.stdout.split())
        numbers = {parent: [], child: []}
        for record, resource in collector.logs:
            numbers[resource["process.pid"]].append(
                plain(record.attributes)["torchelastic.seq"]
            )

        assert {parent: [0, 1, 2], child: [0]} == numbers

    def test_fork_while_lines_wait(self, collector):
        """What the parent handed over to be sent is the parent's to send."""
        done, _ = self.run(
            collector,
            "import time\n"
            "for _ in range(3): ee.record(event, to)\n"
            "time.sleep(0.5)\n"
            "child = os.fork()\n"
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            # In one piece, for two processes print.
            "os.write(1, b'%a\\n' % list(ee.health().values())[0])\n"
            "if not child: os._exit(0)\n"
            "assert 0 == os.waitpid(child, 0)[1]\n",
        )
        of_each = (
            "{{'recorded': {0}, 'written': {0}, 'dropped': {{}}, 'queued': 0}}"
        )

        assert sorted(map(of_each.format, (1, 4))) == sorted(
            done.stdout.splitlines()
        )
        assert [0, 0, 1, 2, 3] == sorted(collector.numbers)

    def test_line_of_a_fork_hook(self, collector):
        """What a hook records while the SDK begins anew is not forgotten."""
        done, _ = self.run(
            collector,
            "import time\n"
            "def hook():\n"
            "    ee.record(event, to)\n"
            "    time.sleep(0.1)\n"
            "ee.get_logger(to)\n"
            "os.register_at_fork(after_in_child=hook)\n"
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    ee.record(event, to)\n"
            "    assert ee.flush(60)\n"
            "    print(list(ee.health().values())[0], flush=True)\n"
            "    os._exit(0)\n"
            "assert 0 == os.waitpid(child, 0)[1]\n",
        )

        assert (
            "{'recorded': 2, 'written': 2, 'dropped': {}, 'queued': 0}\n"
        ) == done.stdout
        assert [0, 0, 1] == sorted(collector.numbers)

    def test_fork_without_threads(self, collector):
        """A forked process in which the SDK gets no thread sends as well."""
        self.run(
            collector,
            "import threading\n"
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            "start = threading.Thread.start\n"
            "def refuse(self):\n"
            "    if self.name.startswith('Otel'): raise RuntimeError('no')\n"
            "    start(self)\n"
            "threading.Thread.start = refuse\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    ee.record(event, to)\n"
            "    assert ee.flush(60)\n"
            "    os._exit(0)\n"
            "assert 0 == os.waitpid(child, 0)[1]\n",
        )

        assert [0, 0] == collector.numbers

    def test_instances(self, collector):
        """Each process is an instance of its own, as OpenTelemetry has it."""
        self.run(
            collector,
            "for _ in range(3):\n"
            "    ee.record(event, to)\n"
            "    assert ee.flush(60)\n"
            "    if os.fork():\n"
            "        os.wait()\n"
            "        break\n",
        )
        instances = {
            resource.get("service.instance.id")
            for _, resource in collector.logs
        }

        assert 3 == len(collector.logs)
        assert len(instances) == (1 if None in instances else 3)

    def test_idle_child(self, collector):
        """A forked process that records nothing has the SDK's thread only."""
        self.run(
            collector,
            "import threading\n"
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    _, sdk = threading.enumerate()\n"
            "    assert 'OtelBatchLogRecordProcessor' == sdk.name\n"
            "    os._exit(0)\n"
            "assert 0 == os.waitpid(child, 0)[1]\n",
        )

        assert [0] == collector.numbers

    def test_child_of_multiprocessing(self, collector):
        """A child of multiprocessing ends drained."""
        self.run(
            collector,
            "import multiprocessing\n"
            "fork = multiprocessing.get_context('fork')\n"
            "ee.record(event, to)\n"
            "assert ee.flush(60)\n"
            "child = fork.Process(target=ee.record, args=(event, to))\n"
            "child.start(); child.join()\n"
            "assert 0 == child.exitcode\n",
        )

        assert [0, 0] == collector.numbers

    def test_silent_sdk(self, collector):
        """Standard error has our one complaint, and none of the SDK."""
        collector.answer = (503, b"", ("Retry-After", "3600"))
        done, _ = self.run(
            collector,
            "for _ in range(3): ee.record(event, to); ee.flush(60)\n",
        )

        assert 1 == done.stderr.count("\n")
        assert "HTTP 503" in done.stderr

    def test_import(self):
        """Importing the package does not import OpenTelemetry."""
        code = (
            "import sys, elastic_events\n"
            "elastic_events.record(elastic_events.Event('n', 'AGENT'))\n"
            "assert 'opentelemetry' not in sys.modules\n"
            "assert 'requests' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    @pytest.mark.parametrize(
        "missing",
        [
            "opentelemetry",
            "opentelemetry.sdk",
            "opentelemetry.exporter.otlp.proto.http",
        ],
    )
    def test_missing_extra(self, missing):
        """Without the extra the error names what to install."""
        code = (
            "import sys, elastic_events as ee\n"
            f"sys.modules[{missing!r}] = None\n"
            "try: ee.get_logger('otlp:')\n"
            "except ee.UnknownDestination as error: print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )

        assert done.stdout.startswith("destination 'otlp:' needs OpenTel")
        assert done.stdout.endswith(": pip install 'elastic-events[otlp]'\n")


class TestConfiguration:
    @pytest.mark.parametrize(
        ("to", "said"),
        [
            ("otlp:localhost:4318", "expected otlp:http://HOST:4318"),
            ("otlp:grpc://localhost:4317", "expected otlp:http://HOST:4318"),
            ("otlp:http://", "expected otlp:http://HOST:4318"),
            ("otlp://localhost:4318", "expected otlp:http://HOST:4318"),
            ("otlp:http://local host", "expected otlp:http://HOST:4318"),
            ("otlp:http://localhost:4318 ", "expected otlp:http://HOST:4318"),
            ("otlp:http://[::1", "Invalid IPv6 URL"),
            ("otlp:http://localhost:99999", "Port out of range"),
            ("otlp:http://localhost:what", "Port could not be cast"),
            ("otlp:http://u:p@localhost", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("otlp:?timeout=0", "timeout=SECONDS, such as 5"),
            ("otlp:?timeout=", "timeout=SECONDS, such as 5"),
            ("otlp:?size=0", "size=LINES, such as 10000"),
            ("otlp:?format=ecs", "'format=ecs' is no option here"),
            ("otlp:?", "'' is no option here"),
            ("queue:otlp:", "it is a queue already"),
        ],
    )
    def test_malformed(self, collector, to, said):
        """What cannot be is refused at once, with what can."""
        with pytest.raises(ee.UnknownDestination, match=re.escape(said)):
            ee.get_logger(to)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("OTEL_BLRP_MAX_QUEUE_SIZE", "many"),
            ("OTEL_BLRP_MAX_QUEUE_SIZE", "0"),
            ("OTEL_BLRP_SCHEDULE_DELAY", "-1"),
            ("OTEL_BLRP_SCHEDULE_DELAY", "9999999999999"),
            ("OTEL_BLRP_MAX_QUEUE_SIZE", "9" * 5000),
            ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "1.5"),
            ("OTEL_BLRP_EXPORT_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1e-300"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "9999999999"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "nan"),
            ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "0"),
            ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "-1"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip"),
            ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "zip"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/no/such/file.pem"),
            ("OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY", "/no/such/file.pem"),
            ("OTEL_ATTRIBUTE_COUNT_LIMIT", "few"),
            (
                "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
                "no such provider",
            ),
        ],
    )
    def test_environment(self, collector, monkeypatch, name, value):
        """So is what the environment says wrongly."""
        monkeypatch.setenv(name, value)
        with pytest.raises(ee.UnknownDestination, match=re.escape(value)):
            ee.get_logger("otlp:")

    @pytest.mark.parametrize(
        "name",
        ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"],
    )
    def test_grpc(self, collector, monkeypatch, name):
        """An endpoint that speaks gRPC is refused, unless named as HTTP."""
        monkeypatch.setenv(name, "grpc")
        ee.get_logger("otlp:")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4317")
        ee.register_destination("to begin", "otlp:http://h:4317")

        with pytest.raises(ee.UnknownDestination, match="is not spoken here"):
            ee.get_logger("otlp:")

    def test_grpc_for_others(self, collector, monkeypatch):
        """The protocol of logs is what counts."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", collector.url)
        ee.record(EVENT, "otlp:")
        assert ee.flush(60)

        assert ["/"] == [path for path, _ in collector.headers]

    def test_secret_in_url(self, collector):
        """A secret in the URL is not shown, as far as it is ours to show."""
        with pytest.raises(ee.UnknownDestination) as caught:
            ee.get_logger("otlp:http://localhost:4318?size=1&x=secret")

        assert "no option here" in str(caught.value)

    def test_other_options(self, collector):
        """One endpoint cannot be had with two sets of options."""
        ee.get_logger(f"otlp:{collector.url}?size=5")
        with pytest.raises(ee.UnknownDestination, match="other"):
            ee.get_logger(f"otlp:{collector.url}?size=6")

    def test_no_thread_before_the_first_line(self, collector):
        """Nothing is started, and nobody called, before a line is recorded."""
        before = threading.active_count()
        ee.get_logger(collector.to)

        assert before == threading.active_count()
        assert not collector.entered.is_set()

    def test_registered_queue(self, collector):
        """A queue before it is refused under another name too."""
        ee.register_destination("mine", collector.to)
        with pytest.raises(ee.UnknownDestination, match="a queue already"):
            ee.get_logger("queue:mine")


@pytest.fixture(name="rotel")
def _rotel(tmp_path, monkeypatch):
    """
    A running rotel: where it listens, and the file of what it prints.
    """
    package = import_required("rotel", "test")
    monkeypatch.setenv("NO_PROXY", "*")
    agent = Path(package.__file__).with_name("rotel-agent")
    # It is linked against the shared library of its Python.
    libraries = sysconfig.get_config_var("LIBDIR") or ""
    monkeypatch.setenv("LD_LIBRARY_PATH", libraries)
    tried = subprocess.run(
        [agent, "--version"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        missing(f"rotel does not run here: {tried.stderr.strip()}")
    with socket.socket() as http, socket.socket() as grpc:
        ports = []
        for each in (http, grpc):
            each.bind(("127.0.0.1", 0))
            ports.append(each.getsockname()[1])
    printed = tmp_path / "rotel.txt"
    with printed.open("wb") as out:
        process = subprocess.Popen(
            [
                agent,
                "start",
                *("--otlp-http-endpoint", f"127.0.0.1:{ports[0]}"),
                *("--otlp-grpc-endpoint", f"127.0.0.1:{ports[1]}"),
                *("--exporter", "blackhole"),
                *("--debug-log", "logs"),
                *("--debug-log-verbosity", "detailed"),
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    _wait_for_port(ports[0], process)
    yield f"http://127.0.0.1:{ports[0]}", printed
    process.terminate()
    process.wait(timeout=60)


def _wait_for_port(port, process):
    def is_listening():
        assert process.poll() is None
        with socket.socket() as client:
            return not client.connect_ex(("127.0.0.1", port))

    wait_until(is_listening)


class TestRotel:
    def test_decoded(self, rotel, here):
        """A collector that people run has every part of the record."""
        url, printed = rotel
        log = ee.get_logger(f"otlp:{url}", name="trainer")
        tracer = TracerProvider().get_tracer("t")
        metadata = {
            "step": 2**62,
            "loss": 0.25,
            "text": "a\u2028ü",
            "list": [1, "x", None],
            "nested": {"deep": {"ok": True}},
        }
        with tracer.start_as_current_span("step") as span:
            log.record(ee.Event("step", ee.EventSource.WORKER, 1000, metadata))
        log.error("broken", trace="x" * 70_000)
        assert ee.flush(60)
        (health,) = ee.health().values()
        wait_until(lambda: printed.read_text().count("Flags: ") == 2)
        text = printed.read_text()
        context = span.get_span_context()

        assert {"recorded": 2, "written": 2, "dropped": {}, "queued": 0} == (
            health
        )
        for wanted in (
            "service.name: Str(elastic_events)",
            f"host.name: Str({here['hostname']})",
            f"process.pid: Int({here['pid']})",
            "InstrumentationScope elastic_events",
            "EventName: step",
            "Timestamp: 1000000000\n",
            "SeverityNumber: SEVERITY_NUMBER_INFO(9)",
            "SeverityText: ERROR",
            "Body: Str(broken)",
            "torchelastic.source: Str(WORKER)",
            "torchelastic.seq: Int(1)",
            f"step:Int({2**62})",
            "list:Slice(Int(1), Str(x), Empty)",
            "nested:Map(deep:Map(ok:Bool(true)))",
            f"Str({'x' * 70_000})",
            f"{context.trace_id:032x}",
            f"{context.span_id:016x}",
        ):
            assert wanted in text, wanted[:100]
