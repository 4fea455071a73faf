"""
README does what it says; `test_docs` looks at what it shares with others.
"""

from pages import README, ROOT, blocks


def test_commands_of_ci():
    """The two commands of the quick start are those that CI runs."""
    start, tests = (
        block.text.strip()
        for block in blocks(README, "sh")
        if "venv/bin/pip" in block.text
    )
    script = (ROOT / ".ci" / "run").read_text()

    assert start.endswith("elastic-events demo")
    assert tests.endswith("python -m pytest")
    for pattern in ("elastic-events demo", "pytest"):
        assert f"readme_command {pattern}" in script.replace("'", "")
