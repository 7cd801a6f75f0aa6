"""The lifecycle of memories: which are to be found, which are hidden, and who said so when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from engram.storage import uids
from engram.storage.experiences import SUPERSEDED
from engram.storage.projects import FACT
from engram.storage.standing import ACTIVE_FACT, INELIGIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.storage.changes import Changes
    from engram.storage.connection import Connection
    from engram.storage.projects import Projects

FORGET: Final = "forget"
INVALIDATE: Final = "invalidate"
RESTORE: Final = "restore"
STATUS: Final = "status: "
"""What stands before a status where it was given to a memory."""
ACTIVE: Final = "active"
"""The status of a memory that nobody gave another; every other one hides it."""

EVIDENCE: Final = "evidence-"
"""What the id of a check observation begins with."""

# What stands between texts keeps two damaged ones from making a sound one.
_EPISODE_TEXTS: Final = (
    "concat_ws(' ', e.content, e.layer, e.memory_type, e.source_type, e.status, e.metadata)"
)
_FACT_TEXTS: Final = "concat_ws(' ', f.subject, f.predicate, f.object)"
_METADATA_HOLDS: Final = (
    "iif(e.metadata IS NULL, TRUE, iif(json_valid(e.metadata), json_type(e.metadata) = 'object',"
    " FALSE))"
)

Table = Literal["episode", "check_observation"]


def status_given(status: str | None) -> str:
    """Return what the history says where a memory was given a status; None is `ACTIVE`."""
    return f"{STATUS}{status or ACTIVE}"


class Found(NamedTuple):
    """Where a memory is: its table and its key there."""

    table: Table
    key: int | str


class Lifecycle:
    """The lifecycle of a store's memories; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection, changes: Changes, projects: Projects) -> None:
        self._connection = connection
        self._changes = changes
        self._projects = projects

    def find(self, memory: str) -> Found | None:
        """Return where a memory is, hidden or not; None when it is nowhere."""
        if memory.startswith(EVIDENCE):
            row = self._connection.execute(
                "SELECT id FROM check_observation WHERE id = ?", (memory,)
            ).get
            if row is not None:
                return Found("check_observation", row)
        key = self._connection.execute(
            "SELECT id FROM episode WHERE uid = ?", (uids.to_stored(memory),)
        ).get
        return None if key is None else Found("episode", key)

    def set(
        self,
        found: Found,
        memory: str,
        at: int,
        *,
        action: str,
        reason: str | None,
        columns: dict[str, object],
    ) -> None:
        """Change what decides whether a memory is to be found.

        One whose status is not "superseded" any more was merged into nothing.

        Args:
            found: Where it is.
            memory: Its public id.
            at: The time, in microseconds.
            action: What is done, for the history.
            reason: Why.
            columns: The new values.
        """
        table, key = found
        if table == "episode":
            self._projects.remove([int(key)])
        given = ", ".join(f"{name} = :{name}" for name in columns)
        self._connection.execute(
            f"UPDATE {table} SET {given} WHERE id = :key",  # noqa: S608
            {**columns, "key": key},
        )
        if table == "episode" and columns.get("status", SUPERSEDED) != SUPERSEDED:
            self._connection.execute(
                "UPDATE experience SET superseded_by = NULL WHERE episode = ?", (key,)
            )
        self._connection.execute(
            "INSERT INTO lifecycle_change (memory, action, reason, at) VALUES (?, ?, ?, ?)",
            (uids.to_stored(memory), action, reason, at),
        )
        if table == "episode":
            self._projects.add(int(key), int(key))
            self._changes.add("lifecycle", int(key), int(key), at)

    def forget_history(self, episodes: Iterable[int]) -> None:
        """Erase what was done to episodes, before their rows go."""
        self._connection.execute(
            "DELETE FROM lifecycle_change WHERE memory IN (SELECT e.uid FROM json_each(?) AS k"
            " CROSS JOIN episode AS e ON e.id = k.value)",
            (json.dumps(list(episodes)),),
        )

    def history(self, memory: str) -> list[tuple[str, str | None, int]]:
        """Return what was done to a memory, oldest first: the action, why, and when."""
        rows = self._connection.execute(
            "SELECT action, reason, at FROM lifecycle_change WHERE memory = ? ORDER BY id",
            (uids.to_stored(memory),),
        )
        return [(action, reason, at) for action, reason, at in rows]

    def source_state(self, memory: str, now: int) -> str | None:
        """Say what keeps a memory from being a source, None when nothing does.

        It is "missing", "forgotten", "unavailable" (its row is damaged) or "inactive", the first
        that holds. Check observations are looked at elsewhere.

        Args:
            memory: Its public id.
            now: The time, in microseconds.
        """
        if memory.startswith(FACT):
            return self._fact_state(memory.removeprefix(FACT), now)
        row = self._connection.execute(
            f"SELECT e.forgotten_at IS NOT NULL, {INELIGIBLE.format('e')},"  # noqa: S608
            f" {_METADATA_HOLDS}, CAST({_EPISODE_TEXTS} AS BLOB) FROM episode AS e WHERE e.uid = ?",
            (uids.to_stored(memory),),
        ).fetchone()
        if row is None:
            return "missing"
        forgotten, inactive, holds, texts = row
        if forgotten:
            return "forgotten"
        if not (holds and _readable(texts)):
            return "unavailable"
        return "inactive" if inactive else None

    def _fact_state(self, fact: str, now: int) -> str | None:
        row = self._connection.execute(
            f"SELECT {ACTIVE_FACT.format('f')}, CAST({_FACT_TEXTS} AS BLOB)"  # noqa: S608
            " FROM fact AS f WHERE f.uid = :uid",
            {"uid": uids.to_stored(fact), "now": now},
        ).fetchone()
        if row is None:
            return "missing"
        active, texts = row
        if not _readable(texts):
            return "unavailable"
        return None if active else "inactive"


def _readable(texts: bytes) -> bool:
    try:
        texts.decode()
    except UnicodeDecodeError:
        return False
    return True
