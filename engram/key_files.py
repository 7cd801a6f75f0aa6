"""Passphrases: they come in files, never in arguments or variables that other programs can read."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path


def passphrase_in(file: Path) -> str:
    """Return the passphrase in a file: what it holds, without the newline at its end.

    Raises:
        OSError: The file cannot be read.
        InvalidArgument: It holds nothing, or no UTF-8 text.
    """
    try:
        key = file.read_bytes().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        key = ""
    if not key:
        message = f"{file} holds no passphrase in UTF-8"
        raise InvalidArgument(message)
    return key


def others_may_open(file: Path) -> bool:
    """Return whether others than its owner may open a file."""
    mode = file.stat().st_mode
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IRWXG | stat.S_IRWXO))
