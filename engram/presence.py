"""Whether the store's file is still the one that was opened."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engram.errors import Closed

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
            Closed: The file was removed or replaced, before or meanwhile.
        """
        self.check()
        yield
        self.check()

    def check(self) -> None:
        """Refuse to go on without the file.

        Raises:
            Closed: It was removed or replaced.
        """
        if self._opened is None or _identity(self._file) != self._opened:
            message = "the store's file was removed or replaced"
            raise Closed(message, "start the server again")


def _identity(file: Path) -> tuple[int, int] | None:
    """Return which file has a path: device and inode; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
