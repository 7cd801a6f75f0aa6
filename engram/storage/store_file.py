"""The file of a store: where it is, what is derived from it, and making it anew."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engram.errors import Busy, StoreFull
from engram.storage.full_text import FullText
from engram.storage.residue import REBUILT_BELOW, Residue
from engram.storage.text import TextIndex

if TYPE_CHECKING:
    import os
    from contextlib import AbstractContextManager

    from engram.storage.connection import Connection

_SNAPSHOT: Final = "index"


class StoreFile:
    """What concerns the file as a whole; methods run in the caller's transaction or say otherwise.

    Args:
        connection: The store's connection, which this is the owner of from now on.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._residue = Residue(connection)
        self.text = TextIndex(connection)
        self.fact_text = FullText(connection, "fact")

    def reading(self) -> AbstractContextManager[None]:
        """Hold one snapshot: every read inside sees the same commits."""
        return self._connection.reading()

    def writing(self, *, wait: float | None = None) -> AbstractContextManager[None]:
        """Commit everything inside at once, or nothing when an exception leaves.

        Args:
            wait: Seconds to wait for another connection's lock; None is the busy timeout.
        """
        return self._connection.writing(wait=wait)

    def snapshot(self) -> str | None:
        """Return the name of the manifest that belongs to this state of the file, if any."""
        found = self._connection.execute("SELECT value FROM store WHERE name = ?", (_SNAPSHOT,)).get
        return found if isinstance(found, str) else None

    def set_snapshot(self, name: str) -> None:
        """Name the manifest that belongs to this state of the file."""
        self._connection.execute(
            "INSERT INTO store VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (_SNAPSHOT, name),
        )

    @property
    def path(self) -> Path | None:
        """The file; None for a store in memory."""
        return None if self._connection.in_memory else Path(self._connection.path)

    @property
    def index_folder(self) -> Path | None:
        """The folder beside the file for what is derived from it; None for a store in memory."""
        return None if self._connection.in_memory else Path(f"{self._connection.path}-index")

    @property
    def encrypted(self) -> bool:
        """Whether the file is under a key: then nothing derived may be outside it."""
        return self._connection.encrypted

    def erased_up_to(self) -> int | None:
        """Return the change of the last erasure since the file was last made anew, if any."""
        return self._residue.due()

    def replacing(self, dest: str | os.PathLike[str]) -> AbstractContextManager[Path]:
        """Yield the name of a file to write that takes the place of `dest`; see `Connection`."""
        return self._connection.replacing(dest)

    def rekey(self, new_key: str | None) -> None:
        """Put the store under another key, or none; see `Connection`.

        Called outside any transaction.
        """
        self._connection.rekey(new_key)

    def compact(self) -> None:
        """Rebuild the full-text indexes and the file, so that both are as small as they can be.

        Called outside any transaction.
        """
        with self.writing():
            self.text.optimize()
            self.fact_text.optimize()
            due = self._residue.due()
        self._rebuild(due)

    def _rebuild(self, due: int | None) -> bool:
        """Rebuild the file; return whether what was erased up to `due` has left every file."""
        gone = self._connection.vacuum()
        if gone and due is not None:
            with self.writing():
                self._residue.gone(due)
        return gone

    def wipe(self) -> bool:
        """Leave no byte of what was erased in any file; return whether that was possible.

        Not for a store above `REBUILT_BELOW`, which `compact` rebuilds, and not while another
        connection is in the way. Called outside any transaction; nothing to do without an erasure.
        """
        with self.reading():
            due, small = self._residue.due(), self._residue.size() <= REBUILT_BELOW
        if due is None or self._connection.in_memory:
            return True
        with suppress(Busy):
            with suppress(StoreFull):
                if small:
                    return self._rebuild(due)
            self._connection.checkpoint()
        return False
