"""Stores of the reference library, read as the documents it exports.

Only ordinary tables are read: the vectors lie in an extension's tables, and are computed anew.
Tables and columns that an old version did not have yet are left out, which reads as null.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from engram.errors import CannotOpen, NotAStore
from engram.storage.encryption import passphrase, unlock
from engram.storage.errors import named_errors

_COLUMNS = {
    "episodes": "id content timestamp actors tags salience emotional_valence summary_of"
    " importance_score agent_id provenance quarantined",
    "facts": "id subject predicate object valid_from valid_to recorded_at superseded_at"
    " superseded_by confidence derived_from extracted_by agent_id shared quarantined",
    "entities": "id name type aliases first_seen last_seen",
    "edges": "src_id dst_id relation weight created_at agent_id",
    "reflections": "id started_at finished_at episodes_processed facts_extracted"
    " contradictions_resolved model_used cost_tokens agent_id",
    "access_log": "memory_id accessed_at query rank agent_id",
}
_ESSENTIAL = {"id", "content", "timestamp"}


def is_old_store(connection: Any) -> bool:
    """Return whether a database, given anything that runs its SQL, is the reference library's."""
    return set(_columns(connection, "episodes")) >= _ESSENTIAL


def _columns(connection: Any, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def read_old_store(path: str, key: str | None) -> dict[str, Any]:
    """Return the document of an old store, which stays as it is.

    Args:
        path: The file.
        key: Its passphrase, if it is encrypted.

    Raises:
        CannotOpen: There is no such file.
        NotAStore: It is no store of the reference library, or the key is missing or wrong.
    """
    if not Path(path).is_file():
        message = "there is no such file"
        raise CannotOpen(message, "check the path")
    with named_errors():
        connection = apsw.Connection(
            f"file:{quote(os.path.realpath(path))}?mode=ro",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        try:
            if key is not None:
                unlock(connection, passphrase(key))
            connection.execute("BEGIN")
            if not is_old_store(connection):
                message = "the file is no store of the reference library"
                raise NotAStore(message, "a store of this library opens without an import")
            tables = {table: _rows(connection, table) for table in _COLUMNS}
        finally:
            connection.close()
    return {"engram_export_version": 1, **tables}


def _rows(connection: apsw.Connection, table: str) -> list[dict[str, Any]]:
    there = _columns(connection, table)
    wanted = [column for column in _COLUMNS[table].split() if column in there]
    if not wanted:
        return []
    rows = connection.execute(f"SELECT {', '.join(wanted)} FROM {table} ORDER BY rowid")  # noqa: S608
    return [dict(zip(wanted, row, strict=True)) for row in rows]
