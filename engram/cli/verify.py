"""`engram verify`: check that a store is sound."""

from __future__ import annotations

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import json_option, path_argument
from engram.cli.output import counted, line, print_document
from engram.errors import CorruptStore


@click.command()
@path_argument
@key_option
@json_option
def verify(path: str, *, key: str | None, as_json: bool) -> None:
    """Read all of the store PATH and compare its parts with each other.

    That is its rows, full-text index, vectors, graph and change log. Exits with 1 when something
    is wrong.
    """
    with open_existing(path, key=key) as memory:
        problems = memory.check()
    if as_json:
        print_document({"path": path, "ok": not problems, "problems": problems})
    elif problems:
        for problem in problems:
            line(f"  {problem}")
    else:
        line(f"{path} is sound")
    if problems:
        message = f"{path} has {counted(len(problems), 'problem')}"
        raise CorruptStore(message, "restore a backup")
