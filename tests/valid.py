"""
What every line must be.
"""

import json

import jsonschema
import orjson

from elastic_events.schema import KEYS, line_schema


_VALIDATOR = jsonschema.Draft202012Validator(line_schema())


def validated(raw):
    """
    Return what the line *raw* says, if it is as every line must be.
    """
    assert raw.endswith(b"\n")
    assert 1 == raw.count(b"\n")

    said = json.loads(raw, parse_constant=_refuse_constant)
    assert said == orjson.loads(raw)
    _VALIDATOR.validate(said)
    keys = list(said)
    owned = [key for key in KEYS if key in said]
    assert owned == keys[: len(owned)]
    assert keys == list(dict(json.loads(raw, object_pairs_hook=_unique)))
    return said


def _refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")


def _unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"duplicate keys in {keys}"
    return pairs
