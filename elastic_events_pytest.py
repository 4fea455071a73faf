"""
The fixture that pytest finds when the package is installed.

It stands outside of the package `elastic_events`, whose import takes a tenth
of a second: a test run that does not use the fixture does not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from elastic_events.testing import CapturedEvents


@pytest.fixture
def captured_events() -> Iterator[CapturedEvents]:
    """
    Capture what the test records: see ``elastic_events.testing``.
    """
    from elastic_events.testing import capture_events  # noqa: PLC0415

    with capture_events() as captured:
        yield captured
