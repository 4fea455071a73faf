"""
Where the command ``elastic-events`` begins.

It stands outside of the package `elastic_events`, whose import takes a tenth
of a second: a ^C meanwhile ends the command as it does later.
"""

from __future__ import annotations

from typing import Final


_INTERRUPTED: Final = 130


def main() -> int:
    """
    Run the command with the process's arguments.

    Returns:
        The exit status.
    """
    try:
        from elastic_events import cli  # noqa: PLC0415
    except KeyboardInterrupt:
        return _INTERRUPTED
    return cli.main()
