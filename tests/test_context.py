"""
What is bound where a record is made is on its line, and nowhere else.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars

import elastic_events as ee


EVENT = ee.Event("n", ee.EventSource.AGENT)


def record():
    ee.record(EVENT, "sink")


def test_every_door(sink):
    """Context variables are in the same place, whatever the door."""
    logger = logging.getLogger("context")
    logger.handlers = [ee.get_logging_handler("sink")]
    logger.setLevel(1)
    logger.propagate = False
    bind_contextvars(run_id="A", team="x")
    logger.info("m")
    ee.configure("sink")
    structlog.get_logger().info("m")
    ee.get_logging_handler("sink").info("m")
    record()

    assert [("A", "x")] * 4 == [
        (each["run_id"], each["team"]) for each in sink.said
    ]


def test_tasks(sink):
    """Tasks and to_thread carry the context; a bare executor does not."""

    async def main():
        bind_contextvars(run_id="A")
        record()
        await asyncio.create_task(asyncio.to_thread(record))
        await asyncio.get_running_loop().run_in_executor(None, record)

    asyncio.run(main())

    assert ["A", "A", None] == [each.get("run_id") for each in sink.said]


def test_at_the_call(sink):
    """Behind a queue a line has the context and time of its call."""
    with bound_contextvars(step=1):
        ee.record(EVENT, "queue:sink")

    assert ee.flush(60)
    assert 1 == sink.one["step"]


def test_reused_thread(sink):
    """What a job bound for a while is not on the next job's lines."""

    def first():
        with bound_contextvars(job=1):
            record()
            raise ZeroDivisionError

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.submit(first).result(timeout=60)
        pool.submit(record).result(timeout=60)

    assert [1, None] == [each.get("job") for each in sink.said]


def test_suspended_generator(sink):
    """What a generator bound is bound until it is closed."""

    def generate():
        with bound_contextvars(g=1):
            yield

    generator = generate()
    next(generator)
    record()
    generator.close()
    record()

    assert [1, None] == [each.get("g") for each in sink.said]
