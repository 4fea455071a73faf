"""
A timeline of hostile lines: nothing of them acts in the page.
"""

import jobs
import pytest
from browsing import (
    _browser,  # noqa: F401
    _show,  # noqa: F401
    open_all,
    rows,
    told_by_lines,
)
from running import run_here  # noqa: F401


# What acts says so: the fixture `show` hears alerts, the console, requests.
ATTACKS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src=http://127.0.0.1:9/x>",
    "<svg onload=alert(1)>",
    "\"'><iframe srcdoc='<script>alert(1)</script>'>",
    "' onmouseover='alert(1)' x='",
    "javascript:alert(1)",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<base href=http://127.0.0.1:9/>",
    "<style>@import url(http://127.0.0.1:9/);</style>",
    "url(http://127.0.0.1:9/x)",
    "{script} {style} {data} {script-hash} {marker}",
    "${alert(1)} `alert(1)` {{7*7}}",
    "\u2028alert(1)\u2029",
    "\\u003cscript>alert(1)\\u003c/script>",
    "__proto__",
    "constructor",
    "\u202e\u2066 \ufeff\x00\x1b[31m\x7f\x9b",
    "\ud83d\ude00 \ud800 lone",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]
KEYS_OF_NUMBERS = {"timestamp", "pid", "seq"}


def hostile_job(attack):
    """
    Return the lines of a failed job that says *attack* wherever it can.
    """
    job = jobs.Job(2, 2, run_id=attack)
    for agent in job.agents:
        agent.host = f"{agent.host}{attack}"
    job.begin(0)
    job.fail(0, 1)
    agent = job.agents[0]
    agent.say(kind="log", level="error", message=attack, logger=attack)
    agent.event("FAILED", error_trace=f"ValueError: {attack}")
    agent.log(jobs.API, "Received 15 death signal, shutting down")
    lines = job.lines()
    for line in lines:
        line[attack] = {attack: [attack]}
        for key in ("worker", "metadata"):
            if key in line:
                line[key][attack] = attack
        error = line.get("worker", {}).get("error")
        if error:
            error["message"] = error["type"] = attack
    return lines


def touch_everything(shown):
    """
    Do all that may show a text of the data.
    """
    open_all(shown)
    shown.click("#account-box summary")
    for selector in ("[data-marks]", ".span"):
        found = shown.locator(f".row {selector}")
        for number in range(found.count()):
            found.nth(number).hover(force=True)
            found.nth(number).focus()
            found.nth(number).press("Enter")
    shown.fill("#search", "alert")
    shown.fill("#search", "")
    shown.emulate_media(media="print")
    shown.emulate_media(media="screen")


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
def test_field(show, attack):
    """A text in any field, key or file's name does nothing but be read."""
    told = told_by_lines(hostile_job(attack), file=f"{attack}.jsonl")
    shown = show(told.html.encode("utf-8", "backslashreplace").decode())
    touch_everything(shown)

    assert 1 == shown.locator("script:not([type])").count()
    assert 0 == shown.locator("img, iframe, link, base, object, embed").count()
    assert 1 == shown.locator("style").count()
    assert not shown.evaluate(
        "[...document.querySelectorAll('*')].some(each =>"
        " each.getAttributeNames().some(name => name.startsWith('on')))"
    )
    assert rows(shown)


def test_every_key(show):
    """Values of a wrong kind under any key do nothing either."""
    attack = ATTACKS[1]
    lines = hostile_job("job")
    for number, line in enumerate(lines):
        keys = [key for key in line if key not in KEYS_OF_NUMBERS]
        line[keys[number % len(keys)]] = attack
    told = told_by_lines(lines)
    shown = show(told.html)
    touch_everything(shown)

    assert 1 == shown.locator("script:not([type])").count()


def test_file_name(run, show, tmp_path):
    """A file of any name is read, drawn and named."""
    names = ["a<script>alert(1)<", "'\"><img src=x>.jsonl", "%2e\n.jsonl"]
    lines = jobs.as_text(hostile_job("job")).splitlines(keepends=True)
    files = [tmp_path / name.replace("/", "_") for name in names]
    for number, file in enumerate(files):
        file.write_text("".join(lines[number::3]))
    out = tmp_path / "out.html"
    assert 0 == run("timeline", *files, "-O", out)[0]
    shown = show(out.read_text())
    touch_everything(shown)
    shown.keyboard.press("f")
    shown.keyboard.press("Enter")

    assert 1 == shown.locator("script:not([type])").count()
    assert ".jsonl:" in shown.text_content("#details") or "<script>" in (
        shown.text_content("#details")
    )


def test_unseen(show):
    """What could turn or hide text around it is shown as an escape."""
    told = told_by_lines(hostile_job("\u202e"))
    shown = show(told.html)
    shown.keyboard.press("f")
    shown.keyboard.press("Enter")
    text = shown.evaluate("document.body.innerText")

    assert "\\u202e" in text
    assert "\u202e" not in text


def test_policy(show):
    """Even a script that got into the page could not run."""
    html = told_by_lines(hostile_job("job")).html
    shown = show(html.replace("</body>", "<script>alert(1)</script></body>"))
    (refused,) = show.wrong
    show.wrong.clear()

    assert "Content Security Policy" in refused
    assert rows(shown)
