"""
Whatever exception is logged: one line, its type named, of bounded size.
"""

import asyncio
import logging
import sys

import pytest

import elastic_events as ee


class BadText(Exception):
    def __str__(self):
        raise ZeroDivisionError


class BadBase(BaseException):
    pass


class WorseText(Exception):
    def __str__(self):
        raise BadBase


def by_logging(error):
    logger = logging.getLogger("exceptions")
    logger.handlers = [ee.get_logging_handler("sink")]
    logger.propagate = False
    logger.error("m", exc_info=error)


def by_structlog(error):
    ee.get_logger("sink").error("m", exc_info=error)


@pytest.fixture(name="trace", params=[by_logging, by_structlog])
def _trace(request, sink):
    """
    Log an exception, by either door, and give back its trace.
    """

    def trace(error):
        request.param(error)
        return sink.one["error_trace"]

    return trace


def raised(error, cause=None):
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def endless():
    endless()


class TestCauses:
    def test_own_cause(self, trace):
        """An exception that causes itself ends with itself."""
        error = ValueError("self")

        assert trace(raised(error, error)).endswith("ValueError: self")

    def test_circle(self, trace):
        """A circle of causes is followed once."""
        errors = [ValueError("a"), KeyError("b"), TypeError("c")]
        for error, cause in zip(errors, errors[1:] + errors[:1], strict=True):
            error.__cause__ = cause
        text = trace(errors[0])

        assert text.startswith("TypeError: c\n")
        assert text.endswith("ValueError: a")
        assert 1 == text.count("KeyError")

    def test_long_chain(self, trace):
        """Of a chain without end the first and the last error are there."""
        error = ValueError("root")
        for number in range(30_000):
            after = RuntimeError(f"after {number}")
            after.__context__ = error
            error = after
        text = trace(error)

        assert text.startswith("ValueError: root\n")
        assert text.endswith("RuntimeError: after 29999")
        assert len(text) < 1 << 20

    def test_recursion(self, trace):
        """A recursion without end is a traceback of a few lines."""
        try:
            endless()
        except RecursionError as error:
            text = trace(error)

        assert "RecursionError: maximum recursion depth exceeded" in text
        assert len(text) < 10_000

    def test_given_while_another_is_handled(self, sink, trace):
        """The exception that is given is reported, not the one handled."""
        try:
            raise ValueError("handled")
        except ValueError:
            text = trace(KeyError("given"))

        assert "KeyError: 'given'" == text


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="no ExceptionGroup before 3.11"
)
class TestGroups:
    def test_nested(self, trace):
        """All members of a group are there, with their nesting."""
        inner = ExceptionGroup("h", [TypeError("b")])  # noqa: F821
        text = trace(ExceptionGroup("g", [ValueError("a"), inner]))  # noqa: F821

        assert [
            "ExceptionGroup: g (2 sub-exceptions)",
            "ValueError: a",
            "ExceptionGroup: h (1 sub-exception)",
            "TypeError: b",
        ] == [line.strip("| ") for line in text.splitlines() if ": " in line]

    def test_task_group(self, trace):
        """What a group of tasks raises says which tasks failed, and how."""

        async def fail(text):
            raise ValueError(text)

        async def main():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail("a"))
                tasks.create_task(fail("b"))

        try:
            asyncio.run(main())
        except BaseException as error:
            text = trace(error)

        assert "ValueError: a" in text
        assert "ValueError: b" in text

    def test_many(self, trace):
        """A group without end is cut, and says how many are left out."""
        members = [ValueError(str(number)) for number in range(10_000)]
        text = trace(ExceptionGroup("g", members))  # noqa: F821

        assert "g (10000 sub-exceptions)" in text
        assert "and 9985 more exceptions" in text


class TestHostile:
    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (ConnectionError(ValueError("inner")), "ConnectionError: inner"),
            (ValueError("a\udcff"), "ValueError: a\\udcff"),
            (ValueError(b"\xff"), "ValueError: b'\\xff'"),
            (ValueError("a\nb\u2028c"), "ValueError: a\nb\u2028c"),
            (ValueError(), "ValueError"),
        ],
    )
    def test_text(self, trace, error, text):
        """Whatever an exception was given, type and text are there."""
        assert text == trace(error)

    @pytest.mark.parametrize("kind", [BadText, WorseText])
    def test_no_text(self, trace, kind):
        """An exception whose text raises is known by its type."""
        assert trace(kind()).endswith(
            f"{kind.__name__}: <exception str() failed>"
        )

    def test_huge_text(self, sink, trace):
        """A text without end is cut, and the line says so."""
        text = trace(ValueError("x" * 50_000_000))

        assert text.startswith("ValueError: xxx")
        assert len(text) < 1 << 20
        assert sink.one["truncated"]

    def test_locals(self, trace):
        """Local variables are not in a trace."""

        def fail():
            password = "hidden"
            raise ValueError(len(password))

        try:
            fail()
        except ValueError as error:
            text = trace(error)

        assert "hidden" not in text.replace('password = "hidden"', "")
        assert text.endswith("ValueError: 6")

    @pytest.mark.skipif(
        sys.version_info < (3, 11), reason="no notes before 3.11"
    )
    @pytest.mark.parametrize(
        ("notes", "text"),
        [
            (["a note", "another"], "ValueError: v\na note\nanother"),
            ([BadText()], "ValueError: v\n<note str() failed>"),
            (5, "ValueError: v\n5"),
        ],
    )
    def test_notes(self, trace, notes, text):
        """Notes are there, be they text or not."""
        error = ValueError("v")
        error.__notes__ = notes

        assert text == trace(error)


class TestArguments:
    @pytest.mark.parametrize("kind", [BadText, WorseText])
    @pytest.mark.parametrize("method", ["info", "exception"])
    @pytest.mark.parametrize("door", ["logging", "structlog"])
    def test_message(self, sink, kind, method, door):
        """An argument whose text raises costs its own text only."""
        logger = logging.getLogger("arguments")
        logger.handlers = [ee.get_logging_handler("sink")]
        logger.setLevel(1)
        logger.propagate = False
        log = logger if door == "logging" else ee.get_logger("sink")
        getattr(log, method)("m %s", kind())
        getattr(log, method)(kind())
        raised_by = {BadText: "ZeroDivisionError", WorseText: "BadBase"}[kind]
        mark = f"<unprintable {kind.__name__}: {raised_by}>"
        args = [f"{kind.__name__}: {mark}"]

        assert [
            ("m %s", {"args": args, "formatting_error": raised_by}),
            (mark, None),
        ] == [(each["message"], each.get("metadata")) for each in sink.said]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts(sink, error):
    """What is to end the program goes on, whatever the door."""

    class Interrupting:
        def __str__(self):
            raise error

    logger = logging.getLogger("interrupts")
    logger.handlers = [ee.get_logging_handler("sink")]
    logger.propagate = False
    event = ee.Event("n", ee.EventSource.AGENT, metadata={"a": Interrupting()})
    for record in (
        lambda: ee.record(event, "sink"),
        lambda: ee.get_logger("sink").info("m", a=Interrupting()),
        lambda: ee.get_logger("sink").info("m %s", Interrupting()),
        lambda: logger.error("m %s", Interrupting()),
        lambda: logger.error(Interrupting()),
    ):
        with pytest.raises(error):
            record()

    ee.record(ee.Event("after", ee.EventSource.AGENT), "sink")

    assert "after" == sink.one["message"]
