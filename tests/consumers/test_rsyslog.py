"""
rsyslog follows a file and passes its lines on.
"""

import json
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest
import shipping_page

import elastic_events as ee
from elastic_events.schema import KEYS


LOSSES = {
    "an integer above `2**63 - 1`": ("odd.unsigned", "unsigned", 2**63 - 1),
    "U+0000 in a text": ("odd.nul in a text", "nul", "before"),
    "U+0000 in a key": ("odd.nul in a key", "before", 1),
}
DEEP = "a line more than 32 levels deep, itself being the first"
SOON = 30


@pytest.fixture(name="configuration")
def _configuration(tmp_path, recorded):
    """
    The configuration of the page, for folders of the test.
    """
    (tmp_path / "state").mkdir()
    text = shipping_page.block("rsyslog", "text")
    for path, ours in (
        ("/var/spool/rsyslog", tmp_path / "state"),
        ("/var/log/received", tmp_path / "received"),
        ("/logs", recorded.file.parent),
    ):
        assert path in text
        text = text.replace(path, str(ours))
    return text


@pytest.fixture(name="running")
def _running(program, tmp_path):
    """
    Run rsyslog for a while.
    """
    rsyslogd = program("rsyslogd")

    @contextmanager
    def running(configuration, *, is_killed=False):
        file = tmp_path / "rsyslog.conf"
        file.write_text(configuration)
        pid_file = tmp_path / "rsyslog.pid"
        pid_file.unlink(missing_ok=True)
        process = subprocess.Popen(
            [rsyslogd, "-n", "-f", file, "-i", pid_file],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            if is_killed:
                process.kill()
            process.terminate()
            process.wait(timeout=SOON)

        assert process.returncode == (-signal.SIGKILL if is_killed else 0)

    return running


def received(file, count):
    """
    Return the lines of *file* as soon as there are so many.
    """
    deadline = time.monotonic() + SOON
    raw = b""
    while raw.count(b"\n") < count and time.monotonic() < deadline:
        time.sleep(0.02)
        if file.exists():
            raw = file.read_bytes()
    return [json.loads(each) for each in raw.split(b"\n")[:-1]]


def as_held(said):
    """
    Return what rsyslog can hold of it, by the table of losses.
    """
    held = {**said}
    for line, key, arrives in LOSSES.values():
        if said.get("name") == line:
            assert {key: arrives} != said["metadata"]
            held["metadata"] = {key: arrives}
    if said.get("logger") == "odd.nul":
        held["message"] = "before"
    return held


def parted(recorded):
    """
    Return what arrives as JSON, and the lines that arrive as text.
    """
    parsed, texts = [], []
    raw = recorded.file.read_bytes().splitlines(keepends=True)
    for said, line in zip(recorded.said, raw, strict=True):
        if said.get("name") == "odd.deeper":
            texts.append(line)
        else:
            parsed.append(as_held(said))
    return parsed, b"".join(texts)


class TestLines:
    def test_equal(self, running, configuration, recorded, tmp_path, exact):
        """Every line arrives equal, except for what the page lists."""
        parsed, text = parted(recorded)
        with running(configuration):
            arrived = received(tmp_path / "received.jsonl", len(parsed))

        assert exact(parsed) == exact(arrived)
        assert text == (tmp_path / "received.txt").read_bytes()
        assert 1 == text.count(b"\n")

    def test_damage(self, running, configuration, recorded, tmp_path, exact):
        """What is torn arrives as text, and stops nothing."""
        parsed, text = parted(recorded)
        raw = recorded.file.read_bytes()
        first = raw.partition(b"\n")[0]
        torn = first[:70] + first
        recorded.file.write_bytes(b"junk\n" + torn + b"\n" + raw)
        with running(configuration):
            arrived = received(tmp_path / "received.jsonl", len(parsed))

        assert exact(parsed) == exact(arrived)
        assert (
            b"junk\n" + torn + b"\n" + text
            == (tmp_path / "received.txt").read_bytes()
        )

    def test_sent_on(self, running, configuration, recorded, exact):
        """Over TCP the lines arrive as in a file."""
        parsed, _ = parted(recorded)
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(SOON)
            sending = shipping_page.text("rsyslog", r"\n`(action\(.*?)`")
            port = server.getsockname()[1]
            start = configuration.index('action(type="omfile"')
            end = configuration.index("\n", start)
            with running(
                configuration[:start]
                + sending.replace("5140", str(port))
                + configuration[end:]
            ):
                arrived = sent_to(server, len(parsed))

        assert exact(parsed) == exact(arrived)

    def test_rotation(self, running, configuration, rotate, tmp_path):
        """With ``check=0`` every line arrives, also through rotation."""
        ours = configuration.replace("*.jsonl", "rotated.jsonl")
        destination = f"file:{tmp_path}/logs/rotated.jsonl?check=0"
        log = ee.get_logger(destination, name="n")
        log.info("hello")
        with running(ours):
            for number in range(1, 400):
                if number % 100 == 0:
                    received(tmp_path / "received.jsonl", number)
                    assert "" == rotate()
                log.info("hello")
            arrived = received(tmp_path / "received.jsonl", 400)

        assert [*range(400)] == [said["seq"] for said in arrived]

    def test_killed(self, running, configuration, tmp_path):
        """After rsyslog was killed a few lines arrive twice, and all once."""
        log = ee.get_logger(f"file:{tmp_path}/logs/killed.jsonl", name="n")
        ours = configuration.replace("*.jsonl", "killed.jsonl")
        file = tmp_path / "received.jsonl"
        for _ in range(1050):
            log.info("hello")
        with running(ours, is_killed=True):
            received(file, 1050)
        log.info("last")
        with running(ours):
            deadline = time.monotonic() + SOON
            while not file.read_bytes().count(b'"last"'):
                assert time.monotonic() < deadline
                time.sleep(0.02)
        arrived = received(file, 1051)

        assert {*range(1051)} == {said["seq"] for said in arrived}
        assert len(arrived) <= 1051 + 100


def sent_to(server, count):
    connection, _ = server.accept()
    connection.settimeout(SOON)
    with connection, connection.makefile("rb") as lines:
        return [json.loads(next(lines)) for _ in range(count)]


class TestSettings:
    def test_size(self, running, configuration, recorded, tmp_path, exact):
        """Without ``maxMessageSize`` lines above 8 KiB arrive cut."""
        parsed, _ = parted(recorded)
        short = [
            said
            for said in parsed
            if len(json.dumps(said, ensure_ascii=False)) < 8000
        ]
        with running(configuration.replace('maxMessageSize="1m"', "")):
            arrived = received(tmp_path / "received.jsonl", len(short))

        assert exact(short) == exact(arrived)
        assert len(short) < len(parsed)

    def test_case(self, running, configuration, recorded, tmp_path):
        """Without ``caseSensitive`` one value replaces the other."""
        parsed, _ = parted(recorded)
        setting = 'variables.caseSensitive="on"'
        assert setting in configuration
        with running(configuration.replace(setting, "")):
            arrived = received(tmp_path / "received.jsonl", len(parsed))
        by_name = {said.get("name"): said for said in arrived}
        by_logger = {said.get("logger"): said for said in arrived}

        assert {"A": 2} == by_name["odd.case"]["metadata"]
        assert {"A": 2} == {
            key: value
            for key, value in by_logger["odd.bound"].items()
            if key in {"A", "a"}
        }

    def test_cookie(self, running, configuration, tmp_path):
        """Without ``cookie`` no line arrives as JSON."""
        with running(configuration.replace('cookie=""', "")):
            text = tmp_path / "received.txt"
            deadline = time.monotonic() + SOON
            while not text.exists() and time.monotonic() < deadline:
                time.sleep(0.02)

        assert text.exists()
        assert not (tmp_path / "received.jsonl").exists()

    def test_metadata(self, running, configuration, recorded, tmp_path):
        """Without ``addMetadata`` a line gets metadata of rsyslog's."""
        parsed, _ = parted(recorded)
        with running(configuration.replace('addMetadata="off"', "")):
            arrived = received(tmp_path / "received.jsonl", len(parsed))
        (joined,) = [said for said in arrived if said["kind"] == "rdzv"]

        assert {*joined} <= {*KEYS}
        assert str(recorded.file) == joined["metadata"]["filename"]


class TestPage:
    def test_configuration(self, program, configuration, tmp_path):
        """rsyslog finds nothing wrong with the configuration."""
        file = tmp_path / "rsyslog.conf"
        file.write_text(configuration)
        done = subprocess.run(
            [program("rsyslogd"), "-N1", "-f", file],
            stderr=subprocess.PIPE,
            text=True,
            timeout=SOON,
            check=True,
        )
        *_, verdict = done.stderr.splitlines()

        assert 2 == len(done.stderr.splitlines())
        assert verdict.endswith("End of config validation run. Bye.")

    def test_losses(self):
        """The page lists what is not held."""
        assert [*LOSSES, DEEP] == [
            row[0] for row in shipping_page.losses("rsyslog")
        ]
