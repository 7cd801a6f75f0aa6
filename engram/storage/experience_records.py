"""Writing the records of experiences, and of what consolidation did to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.storage import uids
from engram.storage.records import UnfitError
from engram.storage.triplets import identity, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.storage.connection import Connection
    from engram.storage.records import Record


class ExperienceRecords:
    """Writes such records into a store, in one transaction of the caller's.

    Args:
        connection: The store's connection.
        insert: Inserts a record, with columns it does not say itself, into a table.
        is_taken: Says whether a table has an id; raises unless that is right.
        after: The largest key of an episode before the import.
    """

    def __init__(
        self,
        connection: Connection,
        insert: Callable[..., int],
        is_taken: Callable[[str, str], bool],
        *,
        after: int,
    ) -> None:
        self._connection = connection
        self._insert = insert
        self._is_taken = is_taken
        self._after = after

    def add(self, record: Record) -> bool:
        """Say of an episode of the import that it is an experience; return whether that is new.

        In a merge, what was there before is what it was.
        """
        content: str | None = self._connection.execute(
            "SELECT content FROM episode WHERE uid = ? AND id > ?",
            (uids.to_stored(record["episode"]), self._after),
        ).get
        if content is None:
            return False
        given = record["context_bytes"], record["action_bytes"]
        parts = parts_of(content, *given)
        sizes = len(parts[0].encode()), len(parts[1].encode())
        if "\n".join(parts) != content or sizes != given:
            raise UnfitError
        digest = identity(record["memory_type"], record.get("project"), parts)
        self._insert("experience", record, digest=digest)
        return True

    def add_consolidated(self, table: str, record: Record) -> bool:
        """Write a run of a consolidation, or a step of one; return whether it was new."""
        if self._is_taken(table, record["uid"]):
            return False
        self._insert(table, record)
        return True
