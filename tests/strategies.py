"""
Events and values for property tests.
"""

import string

import orjson
from hypothesis import strategies as st

import elastic_events as ee


class Raising:
    """
    What raises an error when it is made text.
    """

    def __init__(self, error):
        self.error = error

    def __str__(self):
        raise self.error


KEYS = st.text(max_size=8)
FLAT_VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
)
JSON_VALUES = st.recursive(
    FLAT_VALUES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)
METADATA = st.dictionaries(KEYS, JSON_VALUES, max_size=6)
# What JSON holds without a change, and json and orjson agree on.
EXACT_METADATA = st.dictionaries(
    st.text(string.printable, max_size=8),
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.printable, max_size=20),
    max_size=6,
)
TIMESTAMPS = st.integers(0, 253_402_300_799_999)
EVENTS = st.builds(
    ee.Event,
    name=st.text(string.printable, max_size=20),
    source=st.sampled_from(ee.EventSource),
    timestamp=TIMESTAMPS,
    metadata=EXACT_METADATA,
)
RDZV_EVENTS = st.builds(
    ee.RdzvEvent,
    name=st.text(string.printable, max_size=20),
    run_id=st.text(string.printable, min_size=1, max_size=20),
    message=st.text(string.printable, max_size=20),
    hostname=st.text(string.ascii_letters, min_size=1, max_size=8),
    pid=st.integers(1, 2**22),
    node_state=st.sampled_from(ee.NodeState),
    master_endpoint=st.text(string.printable, max_size=8),
    rank=st.none() | st.integers(0, 10_000),
    local_id=st.none() | st.integers(0, 100),
    error_trace=st.text(string.printable, max_size=20),
)
# Values that JSON does not have.
ODD_VALUES = (
    st.binary(max_size=8)
    | st.decimals()
    | st.datetimes()
    | st.timedeltas()
    | st.complex_numbers()
    | st.uuids()
    | st.frozensets(st.integers(), max_size=3)
    | st.text(st.characters(categories=["Cs"]), min_size=1, max_size=3)
    | st.builds(object)
    | st.binary(max_size=8).map(orjson.Fragment)
    | st.builds(Raising, st.sampled_from([ZeroDivisionError, GeneratorExit]))
)
ANY_KEYS = KEYS | st.integers() | st.booleans() | st.none() | st.floats()
ANY_VALUES = st.recursive(
    FLAT_VALUES | ODD_VALUES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(ANY_KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)
ANY_METADATA = st.dictionaries(ANY_KEYS, ANY_VALUES, max_size=5)
