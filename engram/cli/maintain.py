"""`engram maintain`: bring the index of a store up to date."""

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
def maintain(path: str, *, key: str | None, as_json: bool) -> None:
    """Bring the index of the store PATH up to date, as after a large import."""
    with open_existing(path, key=key) as memory:
        memory.maintain()
        beside = memory.counts().index_bytes
    if as_json:
        print_document({"path": path, "size_bytes": size_of(path), "index_bytes": beside})
    else:
        line(f"Maintained {path}: {size_text(size_of(path))}, index {size_text(beside)}")
