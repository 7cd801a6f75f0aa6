"""The files a store leaves, as bytes."""

from __future__ import annotations

from pathlib import Path


def every_byte(path: Path) -> bytes:
    """All files of a store, one after another: the database, its journal, anything beside it."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()) if file.is_file())
