import dataclasses
import datetime as dt
import json
import math
import subprocess
import sys
import threading
from array import array
from asyncio import CancelledError
from collections import OrderedDict, UserDict, UserList, deque, namedtuple
from decimal import Decimal
from pathlib import Path, PurePosixPath
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from strategies import ANY_METADATA, EXACT_METADATA

import elastic_events as ee
from elastic_events.encoding import decode, encode
from elastic_events.values import text_of, type_name


np = pytest.importorskip("numpy")


class Unprintable:
    def __str__(self):
        raise ZeroDivisionError


class BadZone(dt.tzinfo):
    def utcoffset(self, _):
        raise ZeroDivisionError

    tzname = dst = utcoffset


@dataclasses.dataclass
class Point:
    x: int
    _y: int = 2


class Subclassed(dict):
    def items(self):
        raise ZeroDivisionError

    values = keys = __iter__ = __len__ = items


class SubclassedList(list):
    def __iter__(self):
        while True:
            yield 1

    def __len__(self):
        raise ZeroDivisionError


class NamelessType(type):
    @property
    def __name__(cls):
        raise ZeroDivisionError


class Nameless(metaclass=NamelessType):
    def __str__(self):
        raise ZeroDivisionError


class Classless:
    @property
    def __class__(self):
        raise ZeroDivisionError


class Pairless(UserDict):
    def items(self):
        return [1]


class OddDate(dt.date):
    def isoformat(self):
        return 5


class Marked:
    def __str__(self):
        return Text("marked")


Pair = namedtuple("Pair", "first second")  # noqa: PYI024


class Text(str):
    __slots__ = ()


def written(value):
    return json.loads(encode({"value": value}))["value"]


@pytest.fixture(name="switching_often")
def _switching_often():
    """
    Threads that take turns all the time.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class TestEncode:
    @given(EXACT_METADATA)
    def test_plain(self, mapping):
        """What JSON can hold is written as it is, in one line."""
        line = encode(mapping)

        assert mapping == json.loads(line)
        assert line.endswith(b"\n")
        assert 1 == line.count(b"\n")

    @given(ANY_METADATA)
    def test_anything(self, mapping):
        """Any mapping gives one line of JSON without a duplicate key."""
        line = encode(mapping)
        pairs = json.loads(line, object_pairs_hook=list)

        assert 1 == line.count(b"\n")
        assert len(mapping) == len({key for key, _ in pairs})

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (2**64 - 1, 2**64 - 1),
            (-(2**63), -(2**63)),
            (2**64, "18446744073709551616"),
            (-(2**63) - 1, "-9223372036854775809"),
            (10**5000, "1" + "0" * 5000),
            (math.nan, "NaN"),
            (math.inf, "Infinity"),
            (-math.inf, "-Infinity"),
            ("x\udcffy", "x\\udcffy"),
            ("\ud83d\udc68", "\\ud83d\\udc68"),
            (b"\xffok", "\\xffok"),
            (Decimal("1.10"), "1.10"),
            (Path("/x/y"), "/x/y"),
            (PurePosixPath("z"), "z"),
            (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            ({1}, [1]),
            ((1, (2,)), [1, [2]]),
            (deque([1, 2]), [1, 2]),
            (OrderedDict(a=1), {"a": 1}),
            (dt.date(2024, 2, 29), "2024-02-29"),
            (dt.datetime(2024, 2, 29, 1), "2024-02-29T01:00:00"),
            (
                dt.datetime(2024, 2, 29, 1, tzinfo=dt.timezone.utc),
                "2024-02-29T01:00:00+00:00",
            ),
            (dt.timedelta(seconds=3), "0:00:03"),
            (Point(1), {"x": 1, "_y": 2}),
            (ValueError("boom"), "ValueError: boom"),
            (ee.NodeState.FAILED, "FAILED"),
            (Text("t"), "t"),
            (np.float32(1.5), 1.5),
            (np.float32("nan"), "NaN"),
            (np.float64(1.5), 1.5),
            (np.int64(3), 3),
            (np.bool_(1), True),
            (np.array(5), 5),
            (np.array([1]), [1]),
            (np.ones((2, 2), order="F"), [[1.0, 1.0], [1.0, 1.0]]),
            (np.array([1], dtype=">i4"), [1]),
            (np.longdouble(1), "1.0"),
            (np.zeros(10_001), "<ndarray of shape (10001,)>"),
            (Unprintable(), "<unprintable Unprintable: ZeroDivisionError>"),
            (
                dt.datetime(2024, 2, 29, tzinfo=BadZone()),
                "<unprintable datetime: ZeroDivisionError>",
            ),
            (np.ma.masked, None),
            (np.datetime64("NaT", "s"), None),
            (np.array([1.0, math.nan]), [1.0, "NaN"]),
            (Pair(1, {2}), [1, [2]]),
            (complex(1, 2), "(1+2j)"),
            (UserDict(a=UserDict(b={1})), {"a": {"b": [1]}}),
            (UserList([{1}]), [[1]]),
            (array("i", [1, 2]), [1, 2]),
            (range(3), [0, 1, 2]),
            ({"a": 1}.values(), [1]),
            (Pairless(a=1), "<unprintable Pairless: TypeError>"),
            (OddDate(2024, 2, 29), "<unprintable OddDate: TypeError>"),
            (Marked(), "marked"),
            ({Marked(): 1}, {"marked": 1}),
            (Subclassed(a={1}), {"a": [1]}),
            (SubclassedList([{1}]), [[1]]),
            (10**10_000, "<int of 33220 bits>"),
            (Nameless(), "<unprintable Nameless: ZeroDivisionError>"),
            (Classless(), "<unprintable Classless: ZeroDivisionError>"),
        ],
        ids=type_name,
    )
    def test_form(self, value, expected):
        """Each value that JSON lacks has its documented form."""
        assert expected == written(value)
        assert [{"in": expected}] == written([{"in": value}])

    @pytest.mark.parametrize(
        ("key", "expected"),
        [
            (1, "1"),
            (1.5, "1.5"),
            (None, "null"),
            (True, "true"),
            (math.nan, "NaN"),
            (Text("t"), "t"),
            (ee.NodeState.FAILED, "FAILED"),
            (np.str_("n"), "n"),
            (b"k", "k"),
            ("a\udcff", "a\\udcff"),
            (2**70, "1180591620717411303424"),
            ((1, 2), "(1, 2)"),
            (
                Unprintable,
                "<class 'test_encoding.Unprintable'>",
            ),
        ],
    )
    def test_key(self, key, expected):
        """Each key is named as json names it, or by its text."""
        assert {expected: 1} == written({key: 1})

    def test_same_key(self):
        """Keys that become equal as text are all kept."""
        assert {"1": "a", "1_": "b", "1__": "c"} == written(
            {1: "a", "1": "b", "1_": "c"}
        )

    @pytest.mark.parametrize(
        ("raw", "expected"),
        [
            (b'{"a":\n1}', {"a": 1}),
            (b'{"a": 1}', {"a": 1}),
            (b'"a\\n"', "a\n"),
            (b"NaN", "NaN"),
            (b'[{"a":1,"a":2}]', [{"a": 2}]),
            (b'1,"level":"x"', "<unprintable Fragment: JSONDecodeError>"),
            (b'{"a":1', "<unprintable Fragment: JSONDecodeError>"),
            (b"", "<unprintable Fragment: JSONDecodeError>"),
            (b"\xff", "<unprintable Fragment: UnicodeDecodeError>"),
        ],
    )
    def test_fragment(self, raw, expected):
        """A Fragment is written as the value it stands for, or marked."""
        fragment = orjson.Fragment(raw)

        assert expected == written(fragment)
        assert [[expected], 1] == written([(fragment,), 1])

    def test_fragments_before(self):
        """A Fragment is seen also where there were some before the import."""
        code = """
import json, orjson
before = [orjson.Fragment(b"1") for _ in range(5)]
from elastic_events.encoding import encode
before.clear()
encode({})
print(json.loads(encode({"a": orjson.Fragment(b'no\\njson')}))["a"])
"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

        assert "<unprintable Fragment: JSONDecodeError>\n" == done.stdout

    @pytest.mark.parametrize(
        "error", [MemoryError, RecursionError, GeneratorExit, CancelledError]
    )
    def test_any_error(self, error):
        """Whatever a value raises when it is looked at, it is marked."""

        class Raising:
            def __str__(self):
                raise error

        mark = f"<unprintable Raising: {error.__name__}>"

        assert {"a": mark, mark: 1} == written({"a": Raising(), Raising(): 1})

    def test_no_text(self):
        """An object whose text is none is marked."""

        class Numeric:
            def __str__(self):
                return 5  # noqa: PLE0307

        assert "<unprintable Numeric: TypeError>" == written(Numeric())

    def test_many_same_keys(self):
        """However many keys become equal, all are kept, and soon."""
        odd = {Unprintable(): number for number in range(20_000)}

        assert set(range(20_000)) == set(written(odd).values())

    def test_null_is_not_nan(self):
        """A None beside a NaN stays null."""
        assert {"a": None, "b": "NaN"} == written({"a": None, "b": math.nan})

    def test_cycle(self):
        """A cycle is marked where it closes, and all above it is kept."""
        cycle = {"a": 1}
        cycle["self"] = cycle

        assert {"a": 1, "self": "<cycle: dict>"} == written(cycle)

    def test_shared(self):
        """A value that stands in two places is written in both."""
        shared = {"a": {1}}

        assert [{"a": [1]}, {"a": [1]}] == written([shared, shared])

    @pytest.mark.parametrize("depth", [254, 1000, 50_000])
    def test_depth(self, depth):
        """Nesting that is too deep is cut, with a mark at the cut."""
        deep = []
        for _ in range(depth):
            deep = [deep]

        assert b'"<too deep: list>"' in encode({"a": 1, "deep": deep})
        assert encode({"a": 1, "deep": deep}).startswith(b'{"a":1,')

    def test_huge_repr(self):
        """A description out of proportion is cut."""

        class Huge:
            def __str__(self):
                return "x" * 50_000_000

        assert "x" * 10_000 + "..." == written(Huge())

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("place", ["value", "key"])
    def test_interrupt(self, error, place):
        """What is to end the program is not swallowed."""

        class Interrupting:
            def __str__(self):
                raise error

        odd = {"value": {"a": Interrupting()}, "key": {Interrupting(): 1}}
        with pytest.raises(error):
            encode(odd[place])

    def test_hopeless_value(self):
        """A mapping that cannot be read is marked, and costs no other."""

        class Hopeless(UserDict):
            def items(self):
                raise ZeroDivisionError

        line = encode({"name": "n", "bad": Hopeless(a={1}), "pid": 7})

        assert {
            "name": "n",
            "bad": "<unprintable Hopeless: ZeroDivisionError>",
            "pid": 7,
        } == json.loads(line)

    def test_hopeless_line(self, monkeypatch):
        """Where the repair itself fails, the plain keys are kept."""
        monkeypatch.setattr(
            "elastic_events.repairing.Repair.of_line", lambda *_: 1 / 0
        )
        line = encode({"name": "n", "pid": 7, "metadata": {"a": {1}}})

        assert {
            "name": "n",
            "pid": 7,
            "metadata": {},
            "encoding_error": "ZeroDivisionError",
        } == json.loads(line)

    @pytest.mark.parametrize("value", [5, {1}], ids=["plain", "repaired"])
    def test_changing(self, value, switching_often):
        """A mapping that another thread changes is written all the same."""
        shared = dict.fromkeys(map(str, range(300)))
        stop = threading.Event()

        def change():
            while not stop.is_set():
                shared.pop("7", None)
                shared["7"] = value

        thread = threading.Thread(target=change)
        thread.start()
        try:
            lines = [encode({"shared": shared}) for _ in range(3000)]
        finally:
            stop.set()
            thread.join(timeout=60)

        assert all(
            len(json.loads(line)["shared"]) in (299, 300) for line in lines
        )


class TestDecode:
    def test_json_only(self):
        """What json writes and orjson refuses is read too."""
        value = decode('{"a": NaN, "b": "\\udcff"}')

        assert math.isnan(value["a"])
        assert "\udcff" == value["b"]

    @pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
    def test_not_json(self, text):
        """Anything else is a ValueError."""
        with pytest.raises(ValueError):
            decode(text)


def test_text_of():
    """Any object has a text."""
    assert "a" == text_of("a")
    assert "5" == text_of(5)
    assert (
        text_of(Unprintable())
        == "<unprintable Unprintable: ZeroDivisionError>"
    )


OLD_FRAGMENT = """
import sys
import orjson
held = orjson.Fragment(b'{\\n "lr": 1\\n}')
import elastic_events as ee
event = ee.Event("start", ee.EventSource.AGENT, metadata={"config": held})
ee.record(event, "stdout")
"""


def test_old_fragment(validate):
    """A Fragment that was there before the package makes one line, too."""
    done = subprocess.run(
        [sys.executable, "-c", OLD_FRAGMENT],
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert {"config": {"lr": 1}} == validate(done.stdout)["metadata"]


def test_any_keys():
    """What is no line is encoded without a wrong value, too."""
    assert b'{"x":"NaN","logger":"l"}\n' == encode(
        {"x": math.nan, "logger": "l"}
    )
