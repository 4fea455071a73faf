"""
Streams that real torchrun jobs handed to their event loggers.
"""

import json
import logging
from pathlib import Path

import pytest

import elastic_events as ee
from elastic_events.torchelastic import account_of_event, worker_of_log


STREAMS = sorted((Path(__file__).parent / "data" / "torchrun").glob("*.jsonl"))


@pytest.fixture(name="feed")
def _feed(sink):
    """
    Hand texts over as torch does: as messages of its own logger.
    """

    def feed(texts):
        logger = logging.getLogger("torchelastic-events-feed")
        logger.handlers = [ee.EventHandler("sink")]
        logger.setLevel(logging.INFO)
        for text in texts:
            logger.info(text)
        return sink.said

    return feed


def failures_in(said):
    return [
        each for each in said if each["level"] == "error" and "worker" in each
    ]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
class TestStreams:
    def test_unchanged(self, feed, stream):
        """Every event comes back equal, its metadata unchanged."""
        texts = stream.read_text().splitlines()
        said = feed(texts)

        assert len(texts) == len(said) > 0
        for text, line in zip(texts, said, strict=True):
            given = json.loads(text)
            assert given["name"] == line["name"]
            if "metadata" in given:
                assert "event" == line["kind"]
                assert given["metadata"] == line["metadata"]
                assert given["source"] == line["source"]
            else:
                assert "rdzv" == line["kind"]
                assert given == {
                    key: line.get(key, given[key])
                    for key in given
                    if given[key] in (None, "") or key in line
                }

    def test_typed(self, feed, stream):
        """Workers' events have the place in the job and a typed worker."""
        said = feed(stream.read_text().splitlines())
        workers = [
            each
            for each in said
            if each["kind"] == "event" and each["source"] == "WORKER"
        ]

        for each in workers:
            metadata = each["metadata"]
            nested = json.loads(metadata["metadata"])
            assert {
                "run_id": metadata["run_id"],
                "rank": metadata["global_rank"],
                "local_rank": nested["local_rank"][0],
                "restart": metadata["agent_restarts"],
            }.items() <= each.items()
            expected = {
                key: nested[key][0]
                for key in ("local_rank", "role_rank", "role_world_size")
            }
            expected["group_world_size"] = nested["group_world_size"]
            expected["entry_point"] = nested["entry_point"]
            expected["pid"] = int(metadata["worker_id"])
            if nested["exit_code"][0] is not None:
                expected["exit_code"] = nested["exit_code"][0]
            worker = dict(each["worker"])
            worker.pop("error", None)
            assert expected == worker


def test_crash(feed):
    """The failed worker's error is typed, its victim has none."""
    said = feed(_stream("crash_no_restart"))
    victim, culprit = failures_in(said)

    assert (0, -15, None) == (
        victim["rank"],
        victim["worker"]["exit_code"],
        victim["worker"].get("error"),
    )
    assert "error_trace" not in victim
    assert (1, 1) == (culprit["rank"], culprit["worker"]["exit_code"])
    assert {
        "type": "RuntimeError",
        "message": "boom: simulated failure on rank 1",
        "timestamp": 1_796_003_614_000,
    } == culprit["worker"]["error"]
    assert culprit["error_trace"].endswith("failure on rank 1\n")


def test_agent_failure(feed):
    """An agent's traceback is the line's, and it has no worker."""
    said = feed(_stream("lost_node_during_join.node0"))
    (failed,) = [
        each
        for each in said
        if each["kind"] == "event" and each["level"] == "error"
    ]

    assert "AGENT" == failed["source"]
    assert failed["error_trace"].startswith("Traceback (most recent call")
    assert "worker" not in failed


def test_connection_error(feed):
    """A rendezvous that failed is an error with its traceback."""
    (failed,) = feed(_stream("rdzv_connection_error"))

    assert ("rdzv", "error", "FAILED") == (
        failed["kind"],
        failed["level"],
        failed["node_state"],
    )


def _stream(name):
    (path,) = [each for each in STREAMS if each.stem == name]
    return path.read_text().splitlines()


class TestAccountOfEvent:
    @pytest.mark.parametrize(
        "metadata",
        [
            {},
            {"metadata": "{", "raw_error": "{"},
            {"metadata": "[]", "raw_error": "[]"},
            {"metadata": 5, "raw_error": 5},
            {"metadata": "{}", "raw_error": '{"message": 5}'},
            {"raw_error": '{"message": {"extraInfo": 5}}'},
            {"raw_error": '{"message": {"message": "<NONE>"}}'},
            {"worker_id": "x", "metadata": '{"local_rank": "0"}'},
        ],
    )
    def test_says_nothing(self, metadata):
        """What is not as torch writes it says nothing, and does no harm."""
        assert (False, {}, {}, "") == account_of_event(metadata)

    @pytest.mark.parametrize(
        ("raw_error", "error"),
        [
            ('{"message": "SignalError"}', {"message": "SignalError"}),
            (
                '{"message": "torch.OutOfMemoryError: CUDA: no"}',
                {"type": "torch.OutOfMemoryError", "message": "CUDA: no"},
            ),
            (
                '{"message": {"message": "ValueError: ", "extraInfo":'
                ' {"timestamp": "12.5"}}}',
                {"type": "ValueError", "message": "", "timestamp": 12_500},
            ),
            (
                '{"message": {"message": "A: b\\nc", "extraInfo":'
                ' {"timestamp": "soon"}}}',
                {"type": "A", "message": "b\nc"},
            ),
            (
                '{"message": {"message": "loss NaN: ", "extraInfo": {"x":'
                " NaN}}}",
                {"message": "loss NaN: "},
            ),
        ],
    )
    def test_error(self, raw_error, error):
        """The error is split into type and message, its time in ms."""
        assert (False, {}, {"error": error}, "") == account_of_event(
            {"raw_error": raw_error}
        )


_NESTED = {
    "group_world_size": 2,
    "entry_point": "train.py",
    "local_rank": [3],
    "role_rank": [3],
    "role_world_size": [8],
    "exit_code": [-9],
    "worker_pid": [70],
}
_USUAL = {
    "run_id": "job-7",
    "global_rank": 3,
    "agent_restarts": 1,
    "state": "FAILED",
    "worker_id": "71",
    "metadata": json.dumps(_NESTED),
}
_SCALARS = (
    *(0, 1, -1, -9, 2**63 - 1, 2**63, 2**64, -(2**63)),
    *(True, None, 1.5, "", "1", "FAILED"),
)
_ODD = (*_SCALARS, [], [1, 2], *([value] for value in _SCALARS))


_BOUND = {"rank": 3, "run_id": "another", "restart": "odd", "team": "vision"}


@pytest.mark.parametrize("key", [*_USUAL, *_NESTED])
@pytest.mark.parametrize("odd", [*_ODD, b"{}", " {}"], ids=repr)
def test_at_once(sink, key, odd):
    """What is told of a worker at once is what a closer look tells."""
    metadata = dict(_USUAL)
    if key in _NESTED and odd != b"{}":
        metadata["metadata"] = json.dumps({**_NESTED, key: odd})
    elif key == "metadata" and odd == b"{}":
        metadata["metadata"] = _USUAL["metadata"].encode()
    elif key == "metadata" and odd == " {}":
        metadata["metadata"] = f" {_USUAL['metadata']}"
    else:
        metadata[key] = odd
    log = ee.get_logger("sink")
    for raw_error in None, "":
        event = ee.Event(
            "torchelastic.worker.status.FAILED",
            ee.EventSource.WORKER,
            timestamp=1,
            metadata={**metadata, "raw_error": raw_error},
        )
        log.record(event)
        log.bind(**_BOUND).record(event)
    said = sink.said
    for line in said:
        del line["seq"], line["metadata"]["raw_error"]

    assert repr(said[2:]) == repr(said[:2])


@pytest.mark.usefixtures("as_worker")
def test_place_of_its_own(sink):
    """What an event says of its place goes before where it is recorded."""
    ee.record(
        ee.Event(
            "torchelastic.worker.status.FAILED",
            ee.EventSource.WORKER,
            metadata={**_USUAL, "run_id": "job-8", "raw_error": None},
        ),
        "sink",
    )

    assert {
        "run_id": "job-8",
        "rank": 3,
        "local_rank": 3,
        "restart": 1,
    }.items() <= sink.one.items()


class TestWorkerOfLog:
    @pytest.mark.parametrize(
        ("message", "worker"),
        [
            (
                "failed (exitcode: -9) local_rank: 1 (pid: 3312) of binary: x",
                {"exit_code": -9, "local_rank": 1, "pid": 3312},
            ),
            (
                "failed (exitcode: 1) local_rank: 0 (pid: 7) of fn: main"
                " (start_method: spawn)",
                {"exit_code": 1, "local_rank": 0, "pid": 7},
            ),
            (
                'User process failed with error data: {\n  "message": {\n'
                '    "message": "E: b",\n    "extraInfo": {"timestamp":'
                ' "5"}\n  }\n}',
                {"error": {"type": "E", "message": "b", "timestamp": 5000}},
            ),
            ("User process failed with error data: {", {}),
            ("it failed (exitcode: 1) local_rank: 1 (pid: 3)", {}),
            ("Sending process 3311 closing signal SIGTERM", {}),
        ],
    )
    def test_worker(self, message, worker):
        """The two messages that state a failure are typed, no other is."""
        assert worker == worker_of_log(message)[0]

    def test_only_torchs(self, sink):
        """The same text from another logger is a text."""
        text = "failed (exitcode: -9) local_rank: 1 (pid: 3312) of binary: x"
        ee.get_logger("sink", name="mine").error(text)
        ee.get_logger(
            "sink", name="torch.distributed.elastic.multiprocessing.api"
        ).error(text)

        assert [False, True] == ["worker" in each for each in sink.said]
