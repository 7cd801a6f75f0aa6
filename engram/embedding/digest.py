"""Checksums of model files, and the one error a wrong one raises."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_sha256", "contains", "sha256_of"]

_BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, expected: str) -> str:
    """Return the sha256 of a file, which is `expected` unless nothing is expected.

    Raises:
        ModelCorrupt: It is another.
    """
    actual = sha256_of(path)
    if expected and actual != expected:
        message = f"{path} has sha256 {actual}, the registry expects {expected}"
        raise ModelCorrupt(message, "delete it, then run: engram models pull")
    return actual


def contains(path: Path, needle: bytes) -> bool:
    """Tell whether a file contains `needle`, reading it in pieces."""
    tail = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            if needle in tail + block:
                return True
            tail = block[-len(needle) :]
    return False
