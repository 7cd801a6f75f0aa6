"""Facts, and the reflection runs that extracted them, as an import brings them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.provenance import UNKNOWN_PROVENANCE
from engram.storage import uids
from engram.storage.fact_records import statement
from engram.storage.records import Record, TakenError
from engram.storage.segment import search_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engram.storage.agents import Agents
    from engram.storage.connection import Connection


class FactRecords:
    """Writes facts, runs and predicates for a `RecordWriter`, in the caller's transaction.

    Args:
        connection: The store's connection.
        agents: The store's agents.
        insert: Inserts the columns of a record, and some it does not say itself; returns the key.
        key: Returns the key of what has a public id in a table.
        is_taken: Returns whether a public id is in a table, which is only right in a merge.
        after: By table, the largest key there was before the import.
        merge: Skip what the store holds already instead of refusing it.
    """

    def __init__(
        self,
        connection: Connection,
        agents: Agents,
        insert: Callable[..., int],
        key: Callable[[str, str], int | None],
        is_taken: Callable[[str, str], bool],
        *,
        after: Mapping[str, int],
        merge: bool,
    ) -> None:
        self._connection = connection
        self._agents = agents
        self._insert = insert
        self._key = key
        self._is_taken = is_taken
        self._after = after
        self._merge = merge
        self._windows: list[int | None] = []
        self._runs: dict[str, int] = {}
        self._behind: dict[str | None, bool] = {}

    def add_reflection(self, record: Record) -> bool:
        """Write a run and return whether it was new.

        Raises:
            TakenError: Its id is taken and nothing is to be merged.
        """
        before = self._connection.execute(
            "SELECT min(id) FROM reflection WHERE uid = ? AND id <= ?",
            (uids.to_stored(record["uid"]), self._after["reflection"]),
        ).get
        if before is not None:
            if not self._merge:
                raise TakenError
            self._windows.append(before)
            return False
        last = record.get("last_episode")
        watermark = None if last is None else self._key("episode", last)
        # A watermark covers all that is older: an agent's episodes from before were not read.
        if watermark is not None and (
            watermark <= self._after["episode"] or self._was_here(record.get("agent"))
        ):
            watermark = None
        self._windows.append(self._insert("reflection", record, last_episode=watermark))
        return True

    def _was_here(self, agent: str | None) -> bool:
        if agent not in self._behind:
            self._behind[agent] = bool(
                self._connection.execute(
                    "SELECT EXISTS (SELECT 1 FROM episode WHERE id <= ? AND agent IS ?)",
                    (self._after["episode"], self._agents.add(agent)),
                ).get
            )
        return self._behind[agent]

    def add_fact(self, record: Record) -> bool:
        """Write a fact with its sources and return whether it was new.

        Raises:
            TakenError: Its id is taken and nothing is to be merged.
        """
        if self._is_taken("fact", record["uid"]):
            return False
        text = search_text(statement(record["subject"], record["predicate"], record["object"]))
        key = self._insert("fact", record, reflection=self._run(record), search_text=text)
        for position, source in enumerate(record.get("sources", ())):
            resolved = self._resolved(source, record.get("agent"))
            self._insert("fact_source", resolved, fact=key, position=position)
        return True

    def _run(self, fact: Record) -> int | None:
        """Return the key of the reflection that extracted a fact.

        The fact says its place among the import's reflections, or the public id of a run; of a run
        that is nowhere, the id is all there is to keep.
        """
        if "reflection" in fact:
            return self._windows[fact["reflection"]]
        uid = fact.get("run")
        if uid is None:
            return None
        if uid not in self._runs:
            at = fact["recorded_at"]
            stub = {"uid": uid, "agent": fact.get("agent"), "started_at": at, "finished_at": at}
            self._runs[uid] = self._key("reflection", uid) or self._insert("reflection", stub)
        return self._runs[uid]

    def _resolved(self, source: Record, agent: str | None) -> Record:
        """Say of a source that is only named whether it is an episode, and how far to trust it.

        To the fact's owner another agent's episode is a name like any other.
        """
        if "provenance" in source:
            return source
        provenance = self._connection.execute(
            "SELECT provenance FROM episode WHERE uid = ?1"
            " AND (?2 IS NULL OR agent = (SELECT id FROM agent WHERE name = ?2))",
            (uids.to_stored(source["source"]), agent),
        ).get
        if provenance is None:
            return source | {"provenance": UNKNOWN_PROVENANCE}
        return {"episode": source["source"], "provenance": provenance}

    def add_succession(self, record: Record) -> bool:
        """Say which fact took another's place; facts that were there before stay as they are."""
        self._connection.execute(
            "UPDATE fact SET superseded_by = (SELECT id FROM fact WHERE uid = ?)"
            " WHERE uid = ? AND id > ?",
            (
                uids.to_stored(record["superseded_by"]),
                uids.to_stored(record["fact"]),
                self._after["fact"],
            ),
        )
        return self._connection.changed > 0

    def add_predicate(self, record: Record) -> bool:
        """Say whether a predicate holds many values; return False where that was said before."""
        self._connection.execute(
            "INSERT INTO predicate VALUES (?, ?) ON CONFLICT DO NOTHING",
            (record["name"], record["multi"]),
        )
        return self._connection.changed > 0
