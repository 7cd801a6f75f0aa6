"""Passphrases: they come in files, never in arguments or variables that other programs can read."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.cli.failures import BadFileError
from engram.cli.output import warn

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., object])

__all__ = ["key_file_option", "key_option"]


def _read(context: click.Context, parameter: click.Parameter, file: str | None) -> str | None:
    """Return the passphrase in a file: what it holds, without the newline at its end.

    Warns on stderr about a file that others than its owner may open.

    Raises:
        OSError: The file cannot be read.
        BadFileError: It holds nothing, or no UTF-8 text.
    """
    if file is None:
        return None
    with Path(file).open("rb") as stream:
        mode = Path(file).stat().st_mode
        content = stream.read()
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn("key_file_permissions", f"others may open {file}", f"run: chmod 600 {file}")
    try:
        key = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        key = ""
    if not key:
        message = f"{file} holds no passphrase in UTF-8"
        raise BadFileError(message)
    return key


def key_file_option(name: str, argument: str, text: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds an option whose value is the passphrase in the named file."""
    return click.option(name, argument, metavar="FILE", callback=_read, help=text)


key_option = key_file_option(
    "--key-file", "key", "A file with the passphrase of an encrypted store."
)
