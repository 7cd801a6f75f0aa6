"""The files of a store: their sizes, and the page cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["drop_from_page_cache", "file_sizes", "megabytes"]


def _store_files(store: Path) -> list[Path]:
    """Return the store and every file beside it, or in a folder beside it, that has its name."""
    beside = store.parent.glob(f"{store.name}*")
    return sorted(
        file
        for one in beside
        for file in ([one] if one.is_file() else one.rglob("*"))
        if file.is_file()
    )


def file_sizes(store: Path) -> dict[str, int]:
    """Return the bytes of each file of a closed store, by what its name adds to the store's."""
    start = len(str(store))
    return {str(file)[start:]: file.stat().st_size for file in _store_files(store)}


def megabytes(sizes: dict[str, int]) -> float:
    """Return the sum of file sizes in 10^6 bytes."""
    return sum(sizes.values()) / 1e6


def drop_from_page_cache(store: Path) -> bool:
    """Have the next reader of a closed store read it from the disk; return whether that worked."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for file in _store_files(store):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True
