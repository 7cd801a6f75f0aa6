"""What SQLite leaves of erased text in the slack of its pages, and getting rid of it.

`secure_delete` blanks what is deleted. It does not blank the old place of a row that SQLite moves
when it rebalances a tree: if that row is erased later, its first copy stays in the gap between a
page's pointers and its rows, where nothing reads it and everybody can. Measured, one in some
hundreds of erasures leaves one. Only writing the pages anew takes them away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engram.storage.connection import Connection

REBUILT_BELOW: Final = 256 * 1024 * 1024
"""Bytes of a store up to which it is rebuilt by itself; a larger one waits for `compact`."""

_DUE = "residue_since"


class Residue:
    """Whether a store may hold residue; every method runs in the caller's transaction.

    The mark is in the file, so it outlives a process that is killed between erasing and rebuilding.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def note(self, seq: int) -> None:
        """Mark that the write with a sequence number erased something."""
        self._connection.execute(
            "INSERT INTO store VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (_DUE, seq),
        )

    def due(self) -> int | None:
        """Return the sequence number of the last erasure since the last rebuilding, if any."""
        found: int | None = self._connection.execute(
            "SELECT value FROM store WHERE name = ?", (_DUE,)
        ).get
        return found

    def gone(self, seq: int) -> None:
        """Mark that the file was rebuilt, unless something was erased after `seq`."""
        self._connection.execute("DELETE FROM store WHERE name = ? AND value = ?", (_DUE, seq))

    def size(self) -> int:
        """Return the size of the store in bytes."""
        pages: int = self._connection.execute("PRAGMA page_count").get
        each: int = self._connection.execute("PRAGMA page_size").get
        return pages * each
