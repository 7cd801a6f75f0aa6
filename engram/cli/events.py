"""`engram events`: the log of what was remembered and forgotten."""

from __future__ import annotations

import click

from engram.cli.failures import BadFileError
from engram.cli.options import json_option
from engram.cli.output import counted, line, print_document


@click.group()
def events() -> None:
    """Check logs of events."""


@events.command("verify")
@click.argument("file")
@json_option
def verify_command(file: str, *, as_json: bool) -> None:
    """Check the lines of the event log FILE and the chain of hashes that holds them together.

    Exits with 1 when something is wrong.
    """
    from engram.events import verify  # noqa: PLC0415

    problems = verify(file)
    if as_json:
        print_document({"file": file, "ok": not problems, "problems": problems})
    elif problems:
        for problem in problems:
            line(f"  {problem}")
    else:
        line(f"{file} is sound")
    if problems:
        message = f"{file} has {counted(len(problems), 'problem')}"
        raise BadFileError(message)
