"""Whose the memories of an older store are: what version 3 of the schema adds to what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engram.paths import OWNER_KEYS, Resolver, ownership
from engram.storage.projects import Projects

if TYPE_CHECKING:
    from engram.storage.connection import Connection

_BLOCK: Final = 1_000
"""Episodes read at a time."""

_NAMES_OWNER: Final = " OR ".join(f"metadata -> '$.{key}' IS NOT NULL" for key in OWNER_KEYS)
OF_FACTS: Final = (
    "UPDATE fact SET project_path = ("
    " SELECT iif(count(*) = count(e.project_path)"
    " AND min(e.project_path) = max(e.project_path), min(e.project_path), NULL)"
    " FROM fact_source AS s CROSS JOIN episode AS e ON e.id = s.episode WHERE s.fact = fact.id)"
)
"""SQL: a fact belongs to the project that all episodes name from which it came, or to none."""


def decide(connection: Connection) -> None:
    """Decide whose each memory is, and fill the lists of projects; inside the migration.

    Against the file system as it is now: an older engram asked nobody. In constant memory, but for
    the distinct paths.
    """
    resolver = Resolver()
    last = 0
    while rows := _unowned(connection, last):
        last = rows[-1][0]
        owners = [(ownership(json.loads(text), None, resolver), key) for key, text in rows]
        connection.executemany(
            "UPDATE episode SET project_path = ?, project_conflict = ? WHERE id = ?",
            [(owner.project, int(owner.conflict), key) for owner, key in owners],
        )
    connection.execute(OF_FACTS)
    Projects(connection).fill()


def _unowned(connection: Connection, after: int) -> list[tuple[int, str]]:
    """Return the next episodes whose metadata name an owner: their keys and the metadata."""
    rows: Any = connection.execute(
        "SELECT id, metadata FROM episode WHERE id > ? AND metadata IS NOT NULL"  # noqa: S608
        f" AND project_path IS NULL AND ({_NAMES_OWNER}) ORDER BY id LIMIT ?",
        (after, _BLOCK),
    )
    return list(rows)
