"""`engram import` and `engram import-store`: bring in what another store held."""

from __future__ import annotations

from pathlib import Path

import click

from engram.cli.configured import configured_store, open_configured
from engram.cli.failures import MissingFileError
from engram.cli.files import open_or_make
from engram.cli.keys import key_file_option, key_option
from engram.cli.options import json_option, model_option, path_argument
from engram.cli.output import line, print_counts, print_document
from engram.cli.progress import progress_bar

_PATH_AND_SRC = 2
_merge_option = click.option("--merge", is_flag=True, help="Skip what the store has already.")


@click.command("import")
@click.argument("files", metavar="[PATH] SRC", nargs=-1, required=True)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(("auto", "lines", "json", "memories")),
    default="auto",
    show_default=True,
    help="As for export, or memories of another program; auto looks at the file.",
)
@_merge_option
@model_option
@key_option
@json_option
@click.pass_context
def import_file(
    context: click.Context,
    files: tuple[str, ...],
    *,
    file_format: str,
    merge: bool,
    model: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Bring the file SRC into the store PATH or the configured one, made when missing.

    SRC is what "engram export" wrote, or a file of memories of another program: a JSON document
    with "memories", or JSON Lines with a memory on each line. Their vectors are taken if --model,
    or the configured embedding model, made them and is the store's. All of it or nothing.
    Everything keeps the agent it had.
    """
    if len(files) > _PATH_AND_SRC:
        message = "give one PATH and one SRC, or SRC alone"
        raise click.UsageError(message, context)
    *path, src = files
    if not path and model is not None:
        message = "--model goes with PATH: the settings name the model of the configured store"
        raise click.UsageError(message, context)
    # Before the store is made: a file that is not there, or is none of these, makes none.
    form = _form_of(src, file_format)
    if path:
        where, opened, vectors_of = path[0], open_or_make(path[0], model=model, key=key), model
    else:
        store, settings = configured_store(context)
        where, opened = str(store), open_configured(context, key=key)
        vectors_of = settings.embedding_model
    with opened as memory, progress_bar("Importing") as show:
        if form == "json":
            counts = memory.import_json(src, merge=merge)
        elif form == "lines":
            counts = memory.import_lines(src, merge=merge, progress=show)
        else:
            counts = memory.import_memories(src, merge=merge, vectors_of=vectors_of, progress=show)
    _report(where, src, counts, as_json=as_json)


def _form_of(src: str, file_format: str) -> str:
    with Path(src).open("rb") as file:
        if file_format != "auto":
            return file_format
        from engram.transfer.forms import form_of  # noqa: PLC0415 - it imports NumPy

        return form_of(file)


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
