"""The files a store leaves, as bytes."""

from __future__ import annotations

from pathlib import Path


def every_byte(path: Path) -> bytes:
    """All files of a store, one after another: the database, its journal, anything beside it."""
    beside = [*path.parent.iterdir(), *Path(f"{path}-index").rglob("*")]
    return b"".join(file.read_bytes() for file in sorted(beside) if file.is_file())
