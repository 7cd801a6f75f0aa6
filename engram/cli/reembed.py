"""`engram reembed`: move a store to another embedding model."""

from __future__ import annotations

import time

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import json_option, path_argument
from engram.cli.output import counted, line, print_document
from engram.cli.progress import progress_bar


@click.command()
@path_argument
@click.option("--model", metavar="NAME", required=True, help="The model the store shall have.")
@key_option
@json_option
def reembed(path: str, *, model: str, key: str | None, as_json: bool) -> None:
    """Embed every episode of the store PATH anew, with another model.

    Others can search and write the store meanwhile. When it is interrupted, the store is as it was,
    and running it again goes on from there.
    """
    started = time.monotonic()
    with open_existing(path, key=key) as memory, progress_bar("Embedding") as show:
        before = memory.model()
        done = memory.reembed(model, progress=show)
        now = memory.model()
    seconds = time.monotonic() - started
    if as_json:
        names = {"model": now and now.name, "previous_model": before and before.name}
        print_document({"path": path, **names, "episodes": done, "seconds": round(seconds, 3)})
        return
    line(f"Embedded {counted(done, 'episode')} in {seconds:.1f} s")
    if now is not None:
        line(f"  Model: {now.name or now.fingerprint} ({now.dim} dimensions)")
