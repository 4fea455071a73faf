"""
Forms of lines that are alike are what they would be without templates.
"""

import pytest
from hypothesis import given, strategies as st
from strategies import METADATA

from elastic_events import otel_form, templates
from elastic_events.encoding import decode, encode
from elastic_events.templates import Templates


LINE = {
    "timestamp": 1_709_210_096_789,
    "time": "2024-02-29T12:34:56.789Z",
    "level": "info",
    "kind": "event",
    "name": "n",
    "message": "n",
    "source": "WORKER",
    "hostname": "h",
    "pid": 1,
    "seq": 0,
    "metadata": {"step": 1, "loss": 0.5, "note": "a"},
}
# What one key of alike lines may hold, within what is usual and without.
VALUES = (
    st.integers(-(2**63), 2**64 - 1)
    | st.integers(0, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ['"', "\\", '\\"', '","x":"', "%b", "<1717171000000>", "\u2028", ""]
    )
    | st.integers(1_717_171_000_000, 1_717_171_000_012)
    | st.none()
    | st.booleans()
    | METADATA
    | st.lists(st.integers(0, 9), max_size=2)
)
KEYS = st.sampled_from(
    ["a", "b", "%b", '"', '","', "<1717171000011>", "1717171000012", ""]
)
METADATAS = st.dictionaries(KEYS, VALUES, max_size=3)
TIMESTAMPS = st.sampled_from(
    [-5, 0, 5, LINE["timestamp"], 18_446_744_073_709, 253_402_300_799_999]
)


def to_otel(line):
    return encode(otel_form.to_otel(decode(line)))


@pytest.fixture(name="counted")
def _counted():
    """
    Templates of OTLP, and the lines that its form was made of.
    """
    made = []

    def to(line):
        made.append(line)
        return otel_form.to_otel(line)

    return Templates(to, otel_form.DECISIVE), made


class TestEncode:
    @given(
        metadatas=st.lists(METADATAS, max_size=4),
        timestamp=TIMESTAMPS,
        trace=st.sampled_from(["", "a.b.E: c", "E"]),
    )
    def test_law(self, metadatas, timestamp, trace):
        """Each line has its own form, whatever came before it."""
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        for metadata in [*metadatas, *metadatas, *metadatas]:
            line = LINE | {"timestamp": timestamp, "metadata": metadata}
            if trace:
                line["error_trace"] = trace
            native = encode(line)

            assert to_otel(native) == made.encode(native)

    @given(texts=st.lists(VALUES, min_size=1, max_size=6))
    def test_same_keys(self, texts):
        """So has each of lines with the same keys."""
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        for text in [*texts, *texts, *texts]:
            native = encode(LINE | {"message": str(text), "bound": text})

            assert to_otel(native) == made.encode(native)

    def test_kept(self, counted):
        """The form is not made of the third line of a kind, and of later."""
        made, given_lines = counted
        for step in range(5):
            native = encode(LINE | {"seq": step, "metadata": {"step": step}})
            made.encode(native)

        # The second is made once more, of marks.
        assert 3 == len(given_lines)

    def test_decisive(self, counted):
        """Lines that differ in what decides the form are not alike."""
        made, _ = counted
        for level in ("info", "error", "info", "error", "debug"):
            native = encode(LINE | {"level": level})

            assert to_otel(native) == made.encode(native)

    def test_order_of_the_form(self):
        """Values may stand in another order than in the line, and twice."""
        made = Templates(
            lambda line: {"b": line["b"], "a": [line["a"], line["b"]]}, ()
        )
        for number in range(4):
            native = encode(
                {"timestamp": LINE["timestamp"], "a": number, "b": "x"}
            )

            assert {"b": "x", "a": [number, "x"]} == decode(
                made.encode(native)
            )

    def test_alternating(self, counted):
        """Several kinds of lines in turn have a template each."""
        made, given_lines = counted
        kinds = [{"metadata": {key: 1}} for key in "abcdef"]
        for _ in range(5):
            for each in kinds:
                made.encode(encode(LINE | each))

        assert 3 * len(kinds) == len(given_lines)

    def test_bounded(self, counted):
        """Lines of which no two are alike are not remembered for ever."""
        made, _ = counted
        for number in range(templates._MOST_SEEN + 10):
            made.encode(encode(LINE | {f"key{number}": 1}))

        assert templates._MOST_SEEN == len(made._seen)
        for number in range(30):
            for _ in range(3):
                made.encode(encode(LINE | {"metadata": {f"k{number}": 1}}))
        assert templates._MOST_KEPT >= len(made._templates)

    def test_long(self, counted):
        """Of long lines nothing is kept."""
        made, _ = counted
        native = encode(LINE | {"message": "x" * 20_000})
        for _ in range(3):
            assert to_otel(native) == made.encode(native)
        assert not made._templates

    def test_raises(self):
        """What the form raises is raised."""

        def broken(line):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            Templates(broken, ()).encode(encode(LINE))

    def test_marks(self):
        """A form that cannot be made of other values is made nonetheless."""

        def picky(line):
            return {"a": {"x": 1}[line["a"]]}

        made = Templates(picky, ())
        native = encode({"timestamp": LINE["timestamp"], "a": "x"})
        for _ in range(3):
            assert {"a": 1} == decode(made.encode(native))
