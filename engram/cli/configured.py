"""The store that the settings name, for the commands that are given no other."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.cli.files import open_or_make
from engram.cli.settings import loaded
from engram.errors import ModelMismatch, ModelMissing
from engram.paths import expanded

if TYPE_CHECKING:
    from engram import Engram
    from engram.config import Settings
    from engram.ledger import Ledger

__all__ = ["configured_ledger", "configured_store", "open_configured", "store_path"]


def store_path(db_path: str) -> Path:
    """Return the path of the store that `db_path` names, which may be made there.

    Raises:
        click.UsageError: It is blank, or in the home of nobody.
    """
    if not db_path.strip():
        message = "db_path must not be blank"
        raise click.UsageError(message)
    path = expanded(db_path)
    if db_path.startswith("~") and path == Path(db_path).absolute():
        message = "db_path must not be in the home of somebody who is not there"
        raise click.UsageError(message)
    return path


def configured_store(context: click.Context) -> tuple[Path, Settings]:
    """Return the path of the configured store, and the settings.

    Raises:
        click.UsageError: The settings are invalid, or name a storage that is not supported, or a
            path as `store_path` refuses.
    """
    settings = loaded(context).settings
    if settings.backend != "sqlite":
        message = "storage_backend must be sqlite: no other is supported"
        raise click.UsageError(message, context)
    return store_path(settings.db_path), settings


def open_configured(context: click.Context, *, key: str | None = None) -> Engram:
    """Open the configured store; a missing one is made, private, with its folders.

    A store without vectors gets those of the configured model, if that is on this machine.

    Raises:
        click.UsageError: As for `configured_store`.
        CannotOpen, EngramError: As for `open_or_make`.
    """
    path, settings = configured_store(context)
    before = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # An existing store keeps its own model.
        with suppress(ModelMissing, ModelMismatch):
            return open_or_make(str(path), model=settings.embedding_model, key=key)
        return open_or_make(str(path), key=key)
    finally:
        os.umask(before)


def configured_ledger(context: click.Context, *, key: str | None = None) -> Ledger:
    """Return the ledger of the configured store, which is never made.

    Raises:
        click.UsageError: As for `configured_store`.
    """
    from engram.ledger import Ledger  # noqa: PLC0415 - as `engram.cli.files` imports the engine

    return Ledger(configured_store(context)[0], key=key)
