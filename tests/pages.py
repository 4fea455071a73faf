"""
The documentation: its pages, the blocks and the tables on them.
"""

import re
from pathlib import Path
from typing import NamedTuple


ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = (README, *sorted(DOCS.glob("*.md")))

_PRINTED = ("json", "text")
_FENCED = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```\n", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """
    A block of code, and the block that follows it at once: what it prints.
    """

    page: str
    line: int
    language: str
    text: str
    output: "Block | None" = None

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks(page, *languages):
    """
    Return the blocks of *page*, of all languages unless some are given.
    """
    text = page.read_text()
    found = []
    following, begin = None, len(text)
    for match in reversed([*_FENCED.finditer(text)]):
        output = None
        if following is not None and not text[match.end() : begin].strip():
            output = following if following.language in _PRINTED else None
        line = text.count("\n", 0, match.start()) + 1
        following = Block(page.name, line, match[1], match[2], output)
        begin = match.start()
        found.append(following)
    return [
        each
        for each in reversed(found)
        if not languages or each.language in languages
    ]


def prose(page):
    """
    Return the text of *page* without its blocks.
    """
    return _FENCE.sub("", page.read_text())


def codes(text):
    """
    Return what stands in backquotes in *text*, each on one line.
    """
    found = re.findall(r"`([^`]+)`", text)
    return [" ".join(each.split()) for each in found]


def rows(page, header):
    """
    Return the rows of all tables of *page* whose header begins like that.
    """
    found = []
    is_wanted = False
    for line in prose(page).splitlines():
        if not line.startswith("|"):
            is_wanted = False
        elif is_wanted and not line.startswith("|---"):
            found.append([cell.strip() for cell in line[1:-1].split("|")])
        elif line.startswith(f"| {header} |"):
            is_wanted = True
    return found


def anchors(page):
    """
    Return the anchors that GitHub gives to the headings of *page*.
    """
    found = []
    for title in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        kept = re.sub(r"[^\w\- ]", "", title.strip().lower())
        anchor = kept.replace(" ", "-")
        before = found.count(anchor)
        found.append(f"{anchor}-{before}" if before else anchor)
    return found
