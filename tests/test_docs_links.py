"""
Links and pictures of the documentation.
"""

import re
from xml.etree import ElementTree as ET

import pytest
from pages import DOCS, PAGES, ROOT, anchors, prose


MARKDOWN = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not any(
        part.startswith(".") or part in {"build", "dist"}
        for part in path.relative_to(ROOT).parts
    )
]


class TestLinks:
    @pytest.mark.parametrize(
        "page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT))
    )
    def test_they_lead_somewhere(self, page):
        """Every link within the project leads to a file, or its heading."""
        for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page

            assert file.exists(), target
            if anchor:
                assert anchor in anchors(file), target

    def test_index(self):
        """The index leads to every page."""
        led_to = set(
            re.findall(r"\]\(([\w-]+\.md)\)", prose(DOCS / "README.md"))
        )
        there = {page.name for page in DOCS.glob("*.md")} - {"README.md"}

        assert there == led_to

    def test_pictures(self):
        """Every picture is shown or linked to, and can be drawn."""
        pictures = {
            path.name for path in DOCS.iterdir() if path.suffix != ".md"
        }
        text = "".join(prose(page) for page in PAGES)

        assert {each for each in pictures if f"{each})" in text} == pictures
        for picture in DOCS.glob("*.svg"):
            ET.parse(picture)
