"""`engram init`: a file of settings and the store it names, both new and private."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from engram.cli.configured import store_path
from engram.cli.files import open_or_make
from engram.cli.options import json_option
from engram.cli.output import line, print_document
from engram.cli.settings import home_file
from engram.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engram.config import Loaded

_ANYWHERE: Final = {"embedding_backend": "sentence_transformers"}

PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "local": {},
    "portable": _ANYWHERE,
    "light": {
        **_ANYWHERE,
        "embedding_model": "sentence-transformers/all-MiniLM-L6-v2",
        "cross_encoder_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
    },
}
"""What each preset sets otherwise than the defaults; options go before."""

_SQLITE: Final = "sqlite"
# What SQLite puts beside a file while it writes it.
_COMPANIONS: Final = ("-wal", "-shm", "-journal")


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--preset",
    type=click.Choice(tuple(PRESETS)),
    default="local",
    show_default=True,
    help="The default models, the same without regard to the machine, or small ones.",
)
@click.option(
    "--storage",
    "storage_backend",
    type=click.Choice((_SQLITE, "postgres")),
    default=_SQLITE,
    show_default=True,
    help="Where memories are kept; only sqlite is supported.",
)
@click.option("--db-path", metavar="PATH", help="The store's file.")
@click.option("--embedding-backend", metavar="NAME", help="Who runs the embedding model.")
@click.option("--embedding-model", metavar="NAME", help="The model that makes vectors.")
@click.option("--cross-encoder-model", metavar="NAME", help="The model that reranks.")
@json_option
@click.pass_context
def init(
    context: click.Context, /, *, yes: bool, preset: str, as_json: bool, **given: str | None
) -> None:
    """Write a new file of settings, and make the store it names.

    The file is that of --config. Neither may be there yet; both are private. No model is loaded.
    """
    if not yes:
        _ask(as_json=as_json)
    chosen = {name: text for name, text in given.items() if text is not None}
    named = context.find_root().obj
    file = (home_file() if named is None else Path(named)).absolute()
    try:
        settings = _make(file, {**PRESETS[preset], **chosen})
    except click.UsageError as refusal:
        if not as_json:
            raise
        print_document({"ok": False, "error": refusal.message})
        context.exit(refusal.exit_code)
    if as_json:
        print_document(_document(settings, preset))
        return
    line(f"Settings: {file}")
    line(f"Store:    {_store(settings)}")
    for warning in settings.warnings:
        line(f"warning: {warning}")


def _ask(*, as_json: bool) -> None:
    """Ask whether to go on.

    Raises:
        click.UsageError: Nobody can answer.
        click.Abort: The answer is no.
    """
    if as_json:
        message = "--json needs --yes"
        raise click.UsageError(message)
    if not sys.stdin.isatty():
        message = "--yes is needed where nobody can be asked"
        raise click.UsageError(message)
    click.confirm("Write a new file of settings and make a new store?", abort=True, err=True)


def _make(file: Path, chosen: dict[str, str]) -> Loaded:
    """Write the settings and make their store, or leave nothing behind.

    Raises:
        click.UsageError: One of them is there already, or the settings are invalid.
    """
    if "db_path" in chosen:
        # Other processes run in other folders.
        chosen["db_path"] = str(store_path(chosen["db_path"]))
    _refuse_other_storage(chosen["storage_backend"])
    before = os.umask(0o077)
    try:
        with ExitStack() as undo:
            settings = _make_both(file, chosen, undo)
            undo.pop_all()
    except InvalidSettings as error:
        raise click.UsageError(str(error)) from None
    finally:
        os.umask(before)
    return settings


def _make_both(file: Path, chosen: dict[str, str], undo: ExitStack) -> Loaded:
    from engram.config import load  # noqa: PLC0415 - as in `engram.cli.settings`
    from engram.config.document import write  # noqa: PLC0415 - it imports yaml

    _create(file, "file of settings", undo)
    write(file, chosen)
    settings = load(file, os.environ)
    _refuse_other_storage(settings.settings.backend)
    store = _store(settings)
    _create(store, "store", undo)
    for suffix in _COMPANIONS:
        undo.callback(Path(f"{store}{suffix}").unlink, missing_ok=True)
    open_or_make(str(store)).close()
    return settings


def _create(path: Path, what: str, undo: ExitStack) -> None:
    """Make an empty file, and the folders it needs.

    Raises:
        click.UsageError: Something has its name.
    """
    folders = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(folders):
        folder.mkdir()
        undo.callback(_remove_folder, folder)
    try:
        path.open("xb").close()
    except FileExistsError:
        message = f"the {what} is there already; nothing was changed"
        raise click.UsageError(message) from None
    undo.callback(path.unlink, missing_ok=True)


def _remove_folder(folder: Path) -> None:
    # Others may have put something there meanwhile.
    with suppress(OSError):
        folder.rmdir()


def _refuse_other_storage(backend: str) -> None:
    if backend != _SQLITE:
        message = "this engine keeps memories in SQLite only: storage must be sqlite"
        raise click.UsageError(message)


def _store(settings: Loaded) -> Path:
    return store_path(settings.settings.db_path)


def _document(settings: Loaded, preset: str) -> dict[str, object]:
    """Return what was made, and how to go on, under the keys the JSON output promises."""
    values = settings.settings
    file = str(settings.config_file)
    return {
        "config_file": file,
        "storage": values.backend,
        "db_path": str(_store(settings)),
        "database_initialized": True,
        "preset": preset,
        "models": {
            "embedding_backend": values.embedding_backend,
            "embedding_model": values.embedding_model,
            "embedding_dim": values.embedding_dim,
            "cross_encoder_model": values.cross_encoder_model,
        },
        "environment_overrides": sorted(
            source.removeprefix("env:")
            for source in settings.sources.values()
            if source.startswith("env:")
        ),
        "warnings": list(settings.warnings),
        "agent_setup": {
            "command": [sys.executable, "-m", "engram", "--config", file, "api"],
            # There is no server for that protocol yet.
            "mcp_config": None,
            "environment_variables": {},
        },
        "next_steps": [
            "check the settings: engram --config FILE config check",
            "start the interface for local clients: engram --config FILE api",
        ],
    }
