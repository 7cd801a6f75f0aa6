"""`engram backup`: copy a store while it is used."""

from __future__ import annotations

import click

from engram.cli.files import open_existing, size_of
from engram.cli.keys import key_option
from engram.cli.options import json_option, path_argument
from engram.cli.output import line, print_document, size_text


@click.command()
@path_argument
@click.argument("dest")
@key_option
@json_option
def backup(path: str, dest: str, *, key: str | None, as_json: bool) -> None:
    """Copy the whole store PATH to the file DEST, which is replaced, while others use it.

    A copy of an encrypted store is encrypted with the same passphrase.
    """
    with open_existing(path, key=key) as memory:
        memory.backup(dest)
    size = size_of(dest)
    if as_json:
        print_document({"path": path, "dest": dest, "size_bytes": size})
    else:
        line(f"Backed up {path} to {dest}  ({size_text(size)})")
