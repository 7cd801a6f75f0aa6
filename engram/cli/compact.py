"""`engram compact`: give back the room that erased memories took."""

from __future__ import annotations

import click

from engram.cli.files import open_existing, size_of
from engram.cli.keys import key_option
from engram.cli.options import json_option, path_argument
from engram.cli.output import line, print_document, size_text


@click.command()
@path_argument
@key_option
@json_option
def compact(path: str, *, key: str | None, as_json: bool) -> None:
    """Rebuild the store PATH so that it takes no more room than it needs."""
    with open_existing(path, key=key) as memory:
        before = size_of(path)
        memory.compact()
    after = size_of(path)
    if as_json:
        print_document({"path": path, "size_bytes_before": before, "size_bytes": after})
    else:
        line(f"Compacted {path}: {size_text(before)} before, {size_text(after)} now")
