"""Databases of the reference server, read to bring their memories into a store."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import apsw

from engram.errors import EngramError, NotAStore
from engram.storage.errors import named_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_TEXTS: Final = (
    "id",
    "memory_type",
    "context",
    "action",
    "result",
    "tags",
    "project",
    "parent_id",
    "source_ids",
    "insight_type",
    "created_at",
    "updated_at",
    "last_used_at",
)
_NUMBERS: Final = ("score", "used_count")
_ESSENTIAL: Final = {"id", "memory_type", "context", "action", "result"}
_PATIENCE: Final = 5000
"""Milliseconds to wait for whoever writes to it."""


class LegacyMemories(NamedTuple):
    """What a database has; those that were merged into others count for nothing.

    Attributes:
        read: How many memories there are.
        without_project: How many of them are of no project.
        rows: Those that were asked for, in the order of insertion: the members that an exported
            memory has, as stored; one that the database has no column for is missing.
        damaged: How many of those that were asked for have texts that are none.
    """

    read: int
    without_project: int
    rows: list[dict[str, Any]]
    damaged: int


def is_legacy_database(path: Path) -> bool:
    """Return whether a file is a database of the reference server: a store of ours is none."""
    try:
        with named_errors(), closing(_opened(path)) as connection:
            return _columns(connection) >= _ESSENTIAL
    except EngramError:
        return False


def read_legacy_memories(path: Path, projects: Collection[str] | None) -> LegacyMemories:
    """Return the memories of a reference server's database, which stays as it is.

    Args:
        path: The database.
        projects: Whose memories are wanted, by any of these names; None: everybody's.

    Raises:
        NotAStore: It is no such database.
        EngramError: It cannot be read.
    """
    with named_errors(), closing(_opened(path)) as connection:
        connection.execute("BEGIN")
        there = _columns(connection)
        if not there >= _ESSENTIAL:
            message = "the file is no database of the reference server"
            raise NotAStore(message)
        alive = "superseded_by IS NULL" if "superseded_by" in there else "TRUE"
        owned = "count(project)" if "project" in there else "0"
        read, of_projects = connection.execute(
            f"SELECT count(*), {owned} FROM memories WHERE {alive}"  # noqa: S608
        ).get
        found = list(_rows(connection, there, alive, projects))
    rows = [row for row in found if row is not None]
    return LegacyMemories(read, read - of_projects, rows, len(found) - len(rows))


def _rows(
    connection: apsw.Connection, there: set[str], alive: str, projects: Collection[str] | None
) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of some projects, None for one that is damaged."""
    encoding: str = connection.execute("PRAGMA encoding").get
    texts = [column for column in _TEXTS if column in there]
    numbers = [column for column in _NUMBERS if column in there]
    # As bytes, so that a damaged text is the matter of its row alone; a text is no number.
    columns = [f"CAST({column} AS BLOB)" for column in texts]
    columns += [f"iif(typeof({column}) IN ('text', 'blob'), x'', {column})" for column in numbers]
    names = [name.encode(encoding, "replace") for name in projects or ()]
    whose = "TRUE" if projects is None else f"CAST(project AS BLOB) IN ({_marks(names)})"
    if projects is not None and "project" not in there:
        return
    rows = connection.execute(
        f"SELECT {', '.join(columns)} FROM memories WHERE {alive} AND {whose} ORDER BY rowid",  # noqa: S608
        names,
    )
    for row in rows:
        try:
            said = [
                None if value is None else value.decode(encoding) for value in row[: len(texts)]
            ]
        except UnicodeDecodeError:
            yield None
        else:
            yield dict(zip((*texts, *numbers), (*said, *row[len(texts) :]), strict=True))


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _columns(connection: apsw.Connection) -> set[str]:
    """Return the columns of the table of memories; none where that is a view, as in our stores."""
    rows = connection.execute(
        "SELECT c.name FROM sqlite_schema AS s JOIN pragma_table_info(s.name) AS c"
        " WHERE s.type = 'table' AND s.name = 'memories'"
    )
    return {name for (name,) in rows}


def _opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(
        f"file:{quote(os.path.realpath(path))}?mode=ro",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )
    connection.set_busy_timeout(_PATIENCE)
    return connection
