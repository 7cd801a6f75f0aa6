"""Writing the records of what a ledger keeps: checkpoints, observations, changes of lifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.storage import uids
from engram.storage.records import TakenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.storage.connection import Connection
    from engram.storage.records import Record

_IDENTITIES = {
    "session_checkpoint": ("namespace", "project_path", "task"),
    "check_observation": ("id",),
    "lifecycle_change": ("memory", "action", "reason", "at"),
}


class LedgerRecords:
    """Writes such records into a store, in one transaction of the caller's.

    Args:
        connection: The store's connection.
        insert: Inserts a record into a table.
        merge: Skip what the store holds already instead of refusing it.
    """

    def __init__(
        self, connection: Connection, insert: Callable[[str, Record], int], *, merge: bool
    ) -> None:
        self._connection = connection
        self._insert = insert
        self._merge = merge
        self._last = connection.execute("SELECT coalesce(max(id), 0) FROM lifecycle_change").get

    def add_checkpoint(self, record: Record) -> bool:
        """Write a checkpoint and return whether it was new."""
        return self._add("session_checkpoint", record)

    def add_observation(self, record: Record) -> bool:
        """Write a check observation and return whether it was new."""
        return self._add("check_observation", record)

    def add_change(self, record: Record) -> bool:
        """Write what was done to a memory and return whether it was new.

        It is left out where there is no such memory. Changes have no ids: in a merge, one like it
        that was there before the import is the same.
        """
        stored = record | {"memory": uids.to_stored(record["memory"])}
        known = self._connection.execute(
            "SELECT EXISTS (SELECT 1 FROM episode WHERE uid = ?1)"
            " OR EXISTS (SELECT 1 FROM check_observation WHERE id = ?1)",
            (stored["memory"],),
        ).get
        if not known or (
            self._merge and self._holds("lifecycle_change", stored, f" AND id <= {self._last}")
        ):
            return False
        self._insert("lifecycle_change", record)
        return True

    def _add(self, table: str, record: Record) -> bool:
        if self._holds(table, record):
            if not self._merge:
                raise TakenError
            return False
        self._insert(table, record)
        return True

    def _holds(self, table: str, record: Record, more: str = "") -> bool:
        identity = _IDENTITIES[table]
        found: int = self._connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM {table} WHERE"  # noqa: S608
            f" {' AND '.join(f'{name} IS ?' for name in identity)}{more})",
            [record.get(name) for name in identity],
        ).get
        return bool(found)
