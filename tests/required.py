"""
What a test cannot do without: it skips, or fails where all is to be there.
"""

import importlib
import os

import pytest


def missing(reason):
    """
    Skip the test for this *reason*, or fail it if nothing may be missing.
    """
    if os.environ.get("CONSUMERS_REQUIRED"):
        pytest.fail(reason)
    pytest.skip(reason)


def import_required(name, extra):
    """
    Return the module *name*, which the *extra* installs.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        return missing(
            f"{name} is not installed: pip install 'elastic-events[{extra}]'"
        )
