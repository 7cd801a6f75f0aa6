"""Writing the records of items."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engram.storage import uids
from engram.storage.items import NOBODY
from engram.storage.records import TakenError, UnfitError
from engram.storage.triplets import pieces_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.storage.connection import Connection
    from engram.storage.records import Record


class ItemRecords:
    """Writes such records into a store, in one transaction of the caller's.

    Args:
        connection: The store's connection.
        insert: Inserts a record, with columns it does not say itself, into a table.
        after: The largest key of an episode before the import.
        merge: Whether what is there already is skipped.
    """

    def __init__(
        self,
        connection: Connection,
        insert: Callable[..., int],
        *,
        after: int,
        merge: bool,
    ) -> None:
        self._connection = connection
        self._insert = insert
        self._after = after
        self._merge = merge

    def add(self, record: Record) -> bool:
        """Say of an episode of the import that it is an item; return whether that is new.

        In a merge, what was there before is what it was, and a name that is taken stays taken; of
        an item without a text nothing is left then.
        """
        row = self._connection.execute(
            "SELECT id, content, coalesce(agent, ?) FROM episode WHERE uid = ? AND id > ?",
            (NOBODY, uids.to_stored(record["episode"]), self._after),
        ).fetchone()
        if row is None:
            return False
        episode, content, owner = row
        parts = json.loads(record["parts"]) if "parts" in record else None
        said = "" if parts is None else "\n".join(text for _, text in pieces_of(content, parts))
        if said != content:
            raise UnfitError
        if self._connection.execute(
            "SELECT EXISTS (SELECT 1 FROM item WHERE owner = ? AND namespace = ? AND key = ?)",
            (owner, record["namespace"], record["key"]),
        ).get:
            if not self._merge:
                raise TakenError
            if parts is None:
                self._connection.execute("DELETE FROM episode WHERE id = ?", (episode,))
            return False
        self._insert("item", record, owner=owner)
        return True
