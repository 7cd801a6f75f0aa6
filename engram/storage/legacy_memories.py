"""Databases of the reference server, read to bring their memories into a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import apsw

from engram.errors import EngramError, NotAStore
from engram.storage.errors import named_errors
from engram.storage.schema import APPLICATION_ID

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS: Final = (
    "id",
    "memory_type",
    "context",
    "action",
    "result",
    "score",
    "tags",
    "project",
    "parent_id",
    "source_ids",
    "insight_type",
    "created_at",
    "updated_at",
    "used_count",
    "last_used_at",
)
_ESSENTIAL: Final = {"id", "memory_type", "context", "action", "result"}


def is_own_store(path: Path) -> bool:
    """Return whether a file is a store of this engine that can be read without a key."""
    try:
        with named_errors():
            connection = _opened(path)
            try:
                return bool(connection.execute("PRAGMA application_id").get == APPLICATION_ID)
            finally:
                connection.close()
    except EngramError:
        return False


def read_legacy_memories(path: Path) -> list[dict[str, Any]]:
    """Return the memories of a reference server's database, which stays as it is.

    Those that were merged into others are left out, as by its own export.

    Returns:
        The members that an exported memory has, as stored; one that the database has no column
        for is missing. In the order of insertion.

    Raises:
        NotAStore: It is no such database.
        EngramError: It cannot be read.
    """
    with named_errors():
        connection = _opened(path)
        try:
            there = {row[1] for row in connection.execute("PRAGMA table_info(memories)")}
            if not there >= _ESSENTIAL:
                message = "the file is no database of the reference server"
                raise NotAStore(message)
            wanted = [column for column in _COLUMNS if column in there]
            alive = "WHERE superseded_by IS NULL" if "superseded_by" in there else ""
            rows = connection.execute(
                f"SELECT {', '.join(wanted)} FROM memories {alive} ORDER BY rowid"  # noqa: S608
            )
            return [dict(zip(wanted, row, strict=True)) for row in rows]
        finally:
            connection.close()


def _opened(path: Path) -> apsw.Connection:
    return apsw.Connection(
        f"file:{quote(os.path.realpath(path))}?mode=ro",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )
