"""
Check lines against the schema, and tell what is missing or came twice.

Example: elastic-events validate /logs/*.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..reading.escaping import escaped
from ..reading.records import Finding
from ..reading.validating import Flaw, Validator
from ..reading.wording import counted
from . import inputs, output
from .inputs import Input
from .statuses import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options of the command.
    """
    # Every line is looked at, also where a filter could pass over it.
    inputs.add_arguments(parser, is_strict=True)
    output.add_choice(parser, pretty="a row each", json="one object")


def run(options: argparse.Namespace) -> int:
    """
    Check the records that the options want, and tell what is wrong.

    What is missing is not looked for when filters leave records out.

    Returns:
        The exit status: 1 if anything is wrong.
    """
    is_pretty = options.output == "pretty"
    output.escape_what_cannot_be_encoded()
    read = _ValidatedInput(options, shows_as_it_reads=is_pretty)
    read.validator = validator = Validator(
        _print if is_pretty else None, is_whole=read.keeps_all
    )
    for record in read.records():
        validator.see(record)
    validator.finish()
    result = validator.as_dict()
    status = read.finish()
    if is_pretty:
        sys.stdout.write(_summary(result, is_whole=not status) + "\n")
    else:
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    sys.stdout.flush()
    return status or (Status.FINDINGS if result["counts"] else Status.FINE)


class _ValidatedInput(Input):
    """
    Records to validate: what is wrong with a line is a flaw like others.
    """

    validator: Validator

    def report(self, finding: Finding) -> None:
        if finding.is_unreadable:
            super().report(finding)
        else:
            self.validator.report(finding)


def _print(flaw: Flaw) -> None:
    sys.stdout.write(escaped(str(flaw.finding)) + "\n")


def _summary(result: dict[str, Any], *, is_whole: bool) -> str:
    """
    Return what came of it, for people.

    Args:
        result: What was found.

        is_whole: Whether all files could be read.
    """
    lines = counted(result["lines"], "line")
    if result["raw"]:
        lines += f", {result['raw']} of them torch's own, not checked"
    if not result["counts"]:
        if not result["lines"]:
            return f"{lines}: nothing to check"
        return f"{lines}: all is well{'' if is_whole else ' in what was read'}"
    kinds = (f"{count} {kind}" for kind, count in result["counts"].items())
    return f"{lines}: {', '.join(kinds)}"
