"""`engram import` and `engram import-store`: bring in what another store held."""

from __future__ import annotations

from pathlib import Path

import click

from engram.cli.failures import MissingFileError
from engram.cli.files import open_or_make
from engram.cli.keys import key_file_option, key_option
from engram.cli.options import json_option, model_option, path_argument
from engram.cli.output import line, print_counts, print_document
from engram.cli.progress import progress_bar

_LINES = b'{"format":"engram-lines"'
_merge_option = click.option("--merge", is_flag=True, help="Skip what the store has already.")


@click.command("import")
@path_argument
@click.argument("src")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(("auto", "lines", "json")),
    default="auto",
    show_default=True,
    help="As for export; auto looks at the file.",
)
@_merge_option
@model_option
@key_option
@json_option
def import_file(
    path: str,
    src: str,
    *,
    file_format: str,
    merge: bool,
    model: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Bring what "engram export" wrote to SRC into the store PATH, which is made when missing.

    All of it or nothing. Everything keeps the agent it had.
    """
    # Before the store is made: a file that is not there makes none.
    with Path(src).open("rb") as file:
        begins = file.read(len(_LINES))
    if file_format == "auto":
        file_format = "lines" if begins == _LINES else "json"
    with (
        open_or_make(path, model=model, key=key) as memory,
        progress_bar("Importing") as show,
    ):
        if file_format == "json":
            counts = memory.import_json(src, merge=merge)
        else:
            counts = memory.import_lines(src, merge=merge, progress=show)
    _report(path, src, counts, as_json=as_json)


@click.command("import-store")
@path_argument
@click.argument("old")
@_merge_option
@key_file_option("--old-key-file", "old_key", "A file with the passphrase of OLD.")
@model_option
@key_option
@json_option
def import_store(
    path: str,
    old: str,
    *,
    merge: bool,
    old_key: str | None,
    model: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Bring the reference library's store OLD into the store PATH, which is made when missing.

    All of it or nothing. OLD is only read.
    """
    if not Path(old).exists():
        message = f"file not found: {old}"
        raise MissingFileError(message)
    with open_or_make(path, model=model, key=key) as memory:
        counts = memory.import_store(old, key=old_key, merge=merge)
    _report(path, old, counts, as_json=as_json)


def _report(path: str, src: str, counts: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_document({"path": path, "src": src, "counts": counts})
        return
    line(f"Imported {src} into {path}")
    print_counts(counts)
