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
    | st.integers(-(10**19), 10**19)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        [
            '"',
            "\\",
            '\\"',
            'a",',
            "a\\",
            '\\\\"',
            "\n",
            '{"a":"b"}',
            '","x":"',
            "%b",
            "<1717171000000>",
            "\u2028",
            "",
        ]
    )
    | st.integers(1_717_171_000_000, 1_717_171_000_012)
    | st.none()
    | st.booleans()
    | METADATA
    | st.lists(st.integers(0, 9), max_size=2)
    | st.lists(st.integers(-(10**19), 10**19), max_size=4)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4)
    | st.lists(st.booleans() | st.none() | st.integers(0, 9), max_size=2)
    | st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2)
)
KEYS = st.sampled_from(
    ["a", "b", "%b", '"', '","', "<1717171000011>", "1717171000012", ""]
)
METADATAS = st.dictionaries(KEYS, VALUES, max_size=3)
TIMESTAMPS = st.sampled_from(
    [-5, 0, 5, LINE["timestamp"], 18_446_744_073_709, 253_402_300_799_999]
)


# Lines of several kinds, as they come in a job.
LINES = st.sampled_from(["info", "error"]).flatmap(
    lambda level: st.fixed_dictionaries(
        {
            "level": st.just(level),
            "pid": st.sampled_from([1, 1, 2]),
            "metadata": METADATAS,
        },
        optional={
            "worker": st.sampled_from(
                [{"exit_code": 0}, {"error": {"type": "E", "message": "m"}}]
            ),
            "error_trace": st.sampled_from(["", "a.b.E: c", "E"]),
            "bound": VALUES,
        },
    )
)


def to_otel(line):
    return encode(otel_form.to_otel(decode(line)))


def encoded(made, line):
    """
    Return the form of *line* by templates, which is to be that without any.
    """
    native = encode(line)
    form = made.encode(native, line)

    assert to_otel(native) == form
    return form


def count(made, lines):
    """
    Return how many forms are made of so many *lines* without a template.
    """
    calls = []
    to = made._to
    made._to = lambda line: calls.append(line) or to(line)
    for line in lines:
        encoded(made, line)
    made._to = to
    return len(calls)


def kept(made):
    """
    Return all templates that are kept.
    """
    return [
        template
        for shapes in (made._shapes, made._older)
        for shape in shapes.values()
        for template in shape.templates
    ]


@pytest.fixture(name="made")
def _made():
    return Templates(otel_form.to_otel, otel_form.DECISIVE)


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
            encoded(made, line)

    @given(texts=st.lists(VALUES, min_size=1, max_size=6))
    def test_same_keys(self, texts):
        """So has each of lines with the same keys."""
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        for text in [*texts, *texts, *texts]:
            encoded(made, LINE | {"message": str(text), "bound": text})

    @given(
        values=st.lists(
            st.lists(VALUES, min_size=3, max_size=3), min_size=2, max_size=5
        )
    )
    def test_same_metadata(self, values):
        """So has each of lines whose metadata has the same keys."""
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        for each in values * 4:
            metadata = dict(zip("abc", each, strict=True))
            encoded(made, LINE | {"metadata": metadata})

    @given(lines=st.lists(LINES, min_size=2, max_size=5), data=st.data())
    def test_mixed(self, lines, data):
        """So has each of lines of several kinds, in any order."""
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        for line in lines * 2 + data.draw(st.permutations(lines * 3)):
            encoded(made, LINE | line)

    @given(lines=st.lists(LINES, min_size=2, max_size=5))
    def test_evicted(self, lines):
        """So it has where hardly any template is kept."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(templates, "_MOST_SHAPES", 2)
            patch.setattr(templates, "_MOST_TEMPLATES", 1)
            made = Templates(otel_form.to_otel, otel_form.DECISIVE)
            for line in [each for each in lines for _ in range(3)] * 2:
                encoded(made, LINE | line)

    @given(events=st.lists(LINES, min_size=2, max_size=4))
    def test_of_another_event(self, events):
        """What the line was made of is not believed."""
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        for line in events * 4:
            native = encode(LINE | line)

            assert to_otel(native) == made.encode(native, LINE | events[0])

    def test_kept(self, made):
        """The form is not made of the third line of a kind, and of later."""
        lines = [
            LINE | {"seq": step, "metadata": {"step": step, "note": f"{step}"}}
            for step in range(5)
        ]

        # The second is made once more, of marks.
        assert 3 == count(made, lines)

    @pytest.mark.parametrize(
        "values",
        [
            [True, False, True],
            [10**17, -(10**16), 0],
            ['say "a"', '"', "a\nb"],
            ["a\\b", '\\"', ""],
            ["x" * 20_000, "", "y"],
        ],
    )
    def test_alike(self, made, values):
        """Lines are alike that differ in such values."""
        count(made, [LINE | {"metadata": {"a": values[0]}}] * 2)

        assert 0 == count(
            made, [LINE | {"metadata": {"a": v}} for v in values]
        )

    def test_truth_values(self, made):
        """Each truth value is put in its own place."""
        lines = [
            LINE | {"metadata": {"a": a, "true": b, "l": [c, True]}}
            for a in (True, False)
            for b in (True, False)
            for c in (True, False)
        ]
        count(made, lines[:2])

        assert 0 == count(made, lines)

    @pytest.mark.parametrize("number", [7, 0.5])
    def test_lengths(self, made, number):
        """Lists of numbers are alike however long they are."""
        lines = [
            LINE | {"metadata": {"a": [number] * n, "b": {"c": [1] * (9 - n)}}}
            for n in range(1, 9)
        ]
        count(made, lines[:2])

        assert 0 == count(made, lines)

    @pytest.mark.parametrize(
        "to",
        [
            lambda line: {"a": "a" if line["a"] else "b"},
            lambda line: {"b": len(line["b"])},
            lambda line: {"b": line["b"][0]},
            lambda line: {"b": line["b"] if len(line["b"]) > 1 else 1},
            lambda line: {"b": [line["b"], line["b"]]},
            lambda line: {"a": str(line["a"]), "b": line["c"][-1]},
        ],
    )
    def test_no_template(self, to):
        """Forms that differ in more than these values are made of each."""
        made = Templates(to, ())
        for n in range(40):
            line = {
                "timestamp": LINE["timestamp"] + n,
                "a": n % 3 == 0,
                "b": [n] * (n % 4 + 1),
                "c": ["x", "y"],
            }
            native = encode(line)

            assert encode(to(line)) == made.encode(native, line)

    def test_other_types(self, made):
        """Values that may be of several types are alike with their own."""
        lines = [
            LINE | {"metadata": {"a": a, "b": b, "c": c}}
            for a in (None, 0.5)
            for b in (None, 1)
            for c in ([], [1], {"x": 1}, {"x": "y"})
        ]
        count(made, lines * 2)

        assert 0 == count(made, lines * 2)

    def test_other_process(self, made):
        """Lines of other processes are alike, once there were several."""
        lines = [
            LINE | {"pid": pid, "hostname": f"n{pid}"} for pid in range(40)
        ]
        count(made, lines[:20])

        assert 0 == count(made, lines)

    def test_decisive(self, made):
        """Lines that differ in what decides the form are not alike."""
        for level in ("info", "error", "info", "error", "debug") * 3:
            encoded(made, LINE | {"level": level})

        assert 3 == len(kept(made))

    def test_decisive_unhashable(self):
        """What decides the form may be of any type."""
        made = Templates(lambda line: {"a": line["a"]}, ("a",))
        for _ in range(4):
            line = {"timestamp": LINE["timestamp"], "a": [1]}

            assert {"a": [1]} == decode(made.encode(encode(line), line))

    def test_order_of_the_form(self):
        """Values may stand in another order than in the line, and twice."""
        made = Templates(
            lambda line: {"b": line["b"], "a": [line["a"], line["b"]]}, ()
        )
        for number in range(4):
            line = {"timestamp": LINE["timestamp"], "a": number, "b": "x"}

            assert {"b": "x", "a": [number, "x"]} == decode(
                made.encode(encode(line), line)
            )

    def test_alternating(self, made):
        """Several kinds of lines in turn have a template each."""
        lines = [LINE | {"metadata": {f"key{n}": 1}} for n in range(100)]
        count(made, lines * 2)

        assert 0 == count(made, lines * 2)

    def test_bounded(self, made):
        """Lines of which no two are alike are not remembered for ever."""
        for number in range(3 * templates._MOST_SHAPES):
            encoded(made, LINE | {f"key{number}": 1})

        most = 2 * templates._MOST_SHAPES
        assert most >= len(made._shapes) + len(made._older)
        assert not kept(made)

    def test_after_many(self, made):
        """However many kinds there were, further ones have templates."""
        for number in range(2 * templates._MOST_TEMPLATES):
            count(made, [LINE | {f"key{number}": 1}] * 3)
        # As many lines as earn what this one takes.
        made._credit = templates._PRICE
        count(made, [LINE] * 2)

        assert 0 == count(made, [LINE] * 2)
        most = 2 * (templates._MOST_TEMPLATES + templates._MOST_OF_A_SHAPE)
        assert most >= len(kept(made))

    def test_after_many_traces(self, made):
        """Nor do any number of distinct tracebacks take their place."""
        count(made, [LINE] * 2)
        for number in range(300):
            encoded(made, LINE | {"error_trace": f"E{number}: x"})

        assert 0 == count(made, [LINE] * 2)

    def test_share(self, made):
        """Templates are made as long as that is a small part of all."""
        made._credit = 0
        lines = [LINE | {f"key{n}": 1} for n in range(10)] * 2
        made_of = count(made, lines)

        assert len(lines) == made_of
        assert not kept(made)

    def test_share_of_the_frequent(self, made):
        """Lines that come often have one as soon as it was earned."""
        made._credit = 0
        count(made, [LINE] * templates._PRICE)

        assert 0 == count(made, [LINE] * 2)

    def test_what_no_template_matches(self, made):
        """Lines without a template are seldom tried to be given one."""
        lines = [LINE | {"metadata": {"a": 10**19 - n}} for n in range(100)]

        # Of the second, the fourth, the eighth … twice, or three times.
        assert 100 + 6 == count(made, lines)

    def test_many_truth_values(self, made):
        """However many truth values a line has, few forms are made for it."""
        line = LINE | {"metadata": {"mask": [True, False] * 150}}

        assert count(made, [line] * 8) < 80

    def test_deep(self):
        """What a line that was cut held many times over is not walked."""
        held = [1, "a"]
        for _ in range(40):
            held = [held, held]
        made = Templates(otel_form.to_otel, otel_form.DECISIVE)
        native = encode(LINE)

        for _ in range(3):
            assert to_otel(native) == made.encode(
                native, LINE | {"metadata": {"held": held}}
            )

    def test_very_long(self, made):
        """A very long line has its form, too."""
        line = LINE | {"metadata": {"text": '"' * 100_000}}

        assert 3 == count(made, [line] * 3)

    def test_long(self, made):
        """Of lines whose template is long nothing is kept."""
        line = LINE | {"metadata": {f"key{n}": n for n in range(1000)}}
        count(made, [line] * 3)

        assert not kept(made)

    def test_marks(self, made):
        """Keys that look like a mark are keys."""
        line = LINE | {"metadata": {"<1717171000003>": "a", "b": 1}}
        count(made, [line] * 3)

        assert not kept(made)

    def test_raises(self):
        """What the form raises is raised."""

        def broken(line):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            Templates(broken, ()).encode(encode(LINE), LINE)

    def test_refused(self):
        """A form that cannot be made of other values is made nonetheless."""

        def picky(line):
            return {"a": {"x": 1}[line["a"]]}

        made = Templates(picky, ())
        line = {"timestamp": LINE["timestamp"], "a": "x"}
        for _ in range(3):
            assert {"a": 1} == decode(made.encode(encode(line), line))
