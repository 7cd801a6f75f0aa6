"""Whether the store's file is still the one that was opened."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engram.server.failures import DATABASE_UNAVAILABLE, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Presence"]


class Presence:
    """Watches over a file that is open: what is written to one that was removed is lost.

    Args:
        file: Where it is, having just been opened.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._opened = _identity(file)

    @contextmanager
    def required(self) -> Iterator[None]:
        """Do something only while the file is in its place; nothing is acknowledged if it goes.

        Raises:
            Failure: The file was removed or replaced, before or meanwhile.
        """
        self._check()
        yield
        self._check()

    def _check(self) -> None:
        if self._opened is None or _identity(self._file) != self._opened:
            text = "database unavailable: its file was removed or replaced; start the server again"
            raise Failure(DATABASE_UNAVAILABLE, text)


def _identity(file: Path) -> tuple[int, int] | None:
    """Return which file has a path: device and inode; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
