"""The change log: one row per committed write, by which everything derived keeps up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.storage.connection import Connection
    from engram.storage.residue import Residue


class Changes:
    """The change log of a store; every method runs in the caller's transaction.

    An operation says what `first` to `last` are keys of: "observe" and "forget" name episodes,
    "assert", "supersede" (those whose successor changed) and "forget_fact" facts, "link" edges,
    "strengthen" the logged recalls that changed edges of their episodes, "forget_entity" entities,
    "alias" an entity and the one that became part of it, or 0, "reembed" the model that became
    current, "lifecycle" an episode that became or ceased to be available, "relabel" episodes whose
    tags changed, "embed" episodes of which some that had no vectors have them now, "forget_text"
    nothing: texts went that lie beside memories. Readers skip the operations they do not know.
    """

    def __init__(self, connection: Connection, residue: Residue) -> None:
        self._connection = connection
        self._residue = residue

    def add(self, op: str, first: int, last: int, at: int) -> None:
        """Note a write; `at` is the time in microseconds."""
        self._connection.execute(
            "INSERT INTO change (op, first, last, at) VALUES (?, ?, ?, ?)", (op, first, last, at)
        )
        if op.startswith("forget"):
            self._residue.note(self._connection.last_id)

    def last(self) -> int:
        """Return the sequence number of the last write, 0 before the first."""
        return self._connection.execute("SELECT max(seq) FROM change").get or 0

    def after(self, seq: int) -> Iterator[tuple[str, int, int]]:
        """Yield `(op, first, last)` of each write after `seq`, in order."""
        return iter(
            self._connection.execute(
                "SELECT op, first, last FROM change WHERE seq > ? ORDER BY seq", (seq,)
            )
        )
