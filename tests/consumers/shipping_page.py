"""
What the documentation says of consumers, for the tests to run it.
"""

import re
from pathlib import Path


_PAGE = Path(__file__).parents[2] / "docs" / "shipping.md"


def block(section, language, number=0):
    """
    Return a block of the *section*, as it stands.
    """
    found = re.findall(
        rf"```{language}\n(.*?)```", _text_of(section), re.DOTALL
    )
    return found[number]


def text(section, pattern):
    """
    Return what the *pattern*'s group finds in the *section*.
    """
    return re.search(pattern, _text_of(section), re.DOTALL)[1]


def losses(section):
    """
    Return what the *section* says is not held: what, as what, what helps.
    """
    rows = re.findall(
        r"^\| (.*?) \| (.*?) \| ?(.*?) ?\|$", _text_of(section), re.MULTILINE
    )
    return rows[1:]


def _text_of(section):
    found = re.search(
        rf"^## {section}\n(.*?)(?=^## |\Z)",
        _PAGE.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    return found[1]
