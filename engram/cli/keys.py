"""The options for passphrases, which come in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.cli.failures import BadFileError
from engram.cli.output import warn
from engram.errors import InvalidArgument
from engram.key_files import others_may_open, passphrase_in

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
    try:
        key = passphrase_in(Path(file))
    except InvalidArgument as error:
        raise BadFileError(error.message) from None
    if others_may_open(Path(file)):
        warn("key_file_permissions", f"others may open {file}", f"run: chmod 600 {file}")
    return key


def key_file_option(name: str, argument: str, text: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds an option whose value is the passphrase in the named file."""
    return click.option(name, argument, metavar="FILE", callback=_read, help=text)


key_option = key_file_option(
    "--key-file", "key", "A file with the passphrase of an encrypted store."
)
