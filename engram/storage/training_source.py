"""What the trainer reads: a store of experiences, or a database of the reference server.

Both are read as they are, damage included, and never written: a cell that is not what its column
is for arrives as `BAD`, so that one row costs no other.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import apsw

from engram.errors import InvalidArgument, NotAStore, StoreTooNew
from engram.storage import uids
from engram.storage.encryption import passphrase, unlock
from engram.storage.errors import named_errors
from engram.storage.files import refuse_what_is_no_file, refuse_what_is_not_there
from engram.storage.schema import APPLICATION_ID, migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD: Final = "?"
"""A cell that is not what its column is for; the sound ones hold bytes, numbers or None."""

_BUSY_MS: Final = 10_000
_BATCH: Final = 4096


class MemoryCells(NamedTuple):
    """A memory as its row holds it. Texts are bytes.

    Attributes:
        key: What its vectors are found by.
        created: Text, or microseconds, as `updated` and `last_used`.
        context_vector: Of a database that has vectors in the row, as those of the other parts.
    """

    key: int
    id_kind: str
    uid: bytes | None
    memory_type: Any
    context: Any
    action: Any
    result: Any
    score: Any
    tags: Any
    parent_kind: str
    parent: bytes | None
    created: Any
    updated: Any
    last_used: Any
    used_count: Any
    project: Any
    context_vector: Any
    action_vector: Any
    result_vector: Any


class VectorShape(NamedTuple):
    """How vectors are stored: how many at most, of what dimension and NumPy type."""

    at_most: int
    dim: int
    dtype: str


def _text(column: str) -> str:
    # As bytes: the driver would end the whole reading at one that is not UTF-8.
    return (
        f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB)"
        f" WHEN 'null' THEN NULL ELSE '{BAD}' END"
    )


def _of_type(column: str, *kinds: str) -> str:
    among = ", ".join(f"'{kind}'" for kind in kinds)
    return f"iif(typeof({column}) IN ({among}), {column}, '{BAD}')"


def _typed(column: str) -> str:
    return f"typeof({column}), CAST({column} AS BLOB)"


_REFERENCE_COLUMNS: Final = {
    "memories": "id memory_type context action result score embedding_context embedding_action"
    " embedding_result indexed tags project parent_id source_ids insight_type created_at"
    " updated_at used_count last_used_at superseded_by",
    "q_table": "router_level state action value update_count",
    "feedback_tracking": "memory_id searched_at judged",
}
_LEARNT_FROM: Final = "memory_type IS NOT 'insight' AND superseded_by IS NULL"
_REFERENCE: Final = ", ".join(
    (
        "0",
        _typed("id"),
        *map(_text, ("memory_type", "context", "action", "result")),
        _of_type("score", "real", "integer"),
        _text("tags"),
        _typed("parent_id"),
        *map(_text, ("created_at", "updated_at", "last_used_at")),
        _of_type("used_count", "integer"),
        _text("project"),
        *(
            _of_type(f"embedding_{part}", "blob", "null")
            for part in ("context", "action", "result")
        ),
    )
)

_OWN_TEXT: Final = "CAST(e.content AS BLOB)"
_OWN_TAGS: Final = (
    "(SELECT CAST(json_group_array(t.name) AS BLOB) FROM (SELECT n.name FROM episode_label AS l"
    " JOIN label AS n ON n.id = l.label WHERE l.episode = e.id AND n.kind = 'tag'"
    " ORDER BY l.position) AS t)"
)


def _own_time(name: str, column: str) -> str:
    given = f"CAST(iif(json_valid(x.given_times), x.given_times ->> '{name}', NULL) AS BLOB)"
    return f"coalesce({given}, {_of_type(column, 'integer', 'null')})"


_OWN: Final = ", ".join(
    (
        "x.episode",
        _typed("e.uid"),
        _text("x.memory_type"),
        f"substr({_OWN_TEXT}, 1, x.context_bytes)",
        f"substr({_OWN_TEXT}, x.context_bytes + 2, x.action_bytes)",
        f"substr({_OWN_TEXT}, x.context_bytes + x.action_bytes + 3)",
        _of_type("coalesce(j.score, 0.0)", "real"),
        _OWN_TAGS,
        _typed("x.parent"),
        _own_time("created_at", "e.occurred_at"),
        _own_time("updated_at", "x.updated_at"),
        _own_time("last_used_at", "x.last_used_at"),
        _of_type("x.used_count", "integer"),
        _text("x.project"),
        *(3 * ("NULL",)),
    )
)
# Not by the row of the episode, whose text the reading of vectors has no use for.
_SCOPE: Final = (
    "(:agent IS NULL OR x.episode IN ("
    "SELECT id FROM episode WHERE agent = (SELECT id FROM agent WHERE name = :agent)))"
)
_OWN_FROM: Final = (
    "FROM experience AS x JOIN episode AS e ON e.id = x.episode"
    " LEFT JOIN judgement AS j ON j.episode = x.episode"
    f" WHERE {_SCOPE}"
    " AND x.memory_type IS NOT 'insight' AND NOT e.quarantined AND e.forgotten_at IS NULL"
    " AND e.invalidated_at IS NULL AND coalesce(e.status, 'active') = 'active'"
    " ORDER BY x.episode"
)


class TrainingSource:
    """One snapshot of a database; what hides or is merged, and insights, are left out.

    Args:
        connection: It is reading already.
        agent: The only agent of a store whose memories are read; None: everybody's.
    """

    def __init__(self, connection: apsw.Connection, agent: str | None = None) -> None:
        self._connection = connection
        self._scope = {"agent": agent}
        self._own = connection.execute("PRAGMA application_id").get == APPLICATION_ID
        if self._own:
            self._check_version()
        elif agent is None:
            self._check_columns()
        else:
            message = "a database of the reference server has no agents"
            raise InvalidArgument(message, "name no agent")

    def _check_version(self) -> None:
        version = self._connection.execute("PRAGMA user_version").get
        newest = migrations()[-1].version
        if version > newest:
            message = f"the store has schema version {version}, this engram knows up to {newest}"
            raise StoreTooNew(message, "upgrade engram-embedded")
        if version < newest:
            message = "the store was last opened by an older engram"
            raise NotAStore(message, "open it once with this one, as `engram inspect` does")

    def _check_columns(self) -> None:
        for table, columns in _REFERENCE_COLUMNS.items():
            there = {row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")}
            if not there:
                message = f"the database has no table {table}"
                raise NotAStore(message, "name a store, or a database of the reference server")
            missing = [column for column in columns.split() if column not in there]
            if missing:
                message = f"the table {table} has no column {missing[0]}"
                raise NotAStore(message, "bring the database up to date with its own server")

    def memories(self) -> Iterator[list[MemoryCells]]:
        """Yield the memories in the order they were stored, some at a time."""
        select = (
            f"SELECT {_OWN} {_OWN_FROM}"
            if self._own
            else f"SELECT {_REFERENCE} FROM memories WHERE {_LEARNT_FROM}"  # noqa: S608
        )
        cursor = self._connection.execute(select, self._scope)
        while rows := list(islice(cursor, _BATCH)):
            yield [MemoryCells._make(row) for row in rows]

    def shape(self) -> VectorShape:
        """Return how vectors are stored; the size that most contexts' have is that of all."""
        if self._own:
            return self._own_shape()
        row = self._connection.execute(
            "SELECT length(embedding_context) / 4 FROM memories"  # noqa: S608
            f" WHERE {_LEARNT_FROM} AND typeof(embedding_context) = 'blob'"
            " AND length(embedding_context) % 4 = 0 AND length(embedding_context) > 0"
            " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        ).fetchone()
        count: int = self._connection.execute(
            f"SELECT count(*) FROM memories WHERE {_LEARNT_FROM}"  # noqa: S608
        ).get
        return VectorShape(count, row[0] if row else 0, "<f4")

    def _own_shape(self) -> VectorShape:
        model = self._connection.execute("SELECT dim FROM model WHERE role = 'current'").fetchone()
        count: int = self._connection.execute(
            f"SELECT count(*) FROM experience AS x WHERE {_SCOPE}",  # noqa: S608
            self._scope,
        ).get
        return VectorShape(count, model[0], "<f2") if model else VectorShape(0, 0, "<f2")

    def vectors(self) -> Iterator[list[tuple[int, Any, Any]]]:
        """Yield the vectors of a store: the key of the memory, which part of it, the vector.

        Those of a part with several lie one after the other, the keys ascend. Nothing comes from a
        database that has the vectors in its rows.
        """
        if not self._own:
            return
        cursor = self._connection.execute(
            f"SELECT x.episode, v.field, {_of_type('v.vector', 'blob')} FROM experience AS x"  # noqa: S608
            " CROSS JOIN embedding AS v ON v.episode = x.episode"
            " AND v.model = (SELECT id FROM model WHERE role = 'current')"
            f" WHERE {_SCOPE} ORDER BY x.episode, v.chunk",
            self._scope,
        )
        while rows := list(islice(cursor, _BATCH)):
            yield rows

    def judged(self) -> set[str]:
        """Return the memories that were judged after a search had shown them."""
        cursor = self._connection.execute(
            f"SELECT DISTINCT {_typed('memory_id')} FROM feedback_tracking WHERE judged"  # noqa: S608
        )
        known = (public_id(*row) for row in cursor)
        return {one for one in known if one is not None}

    def q_values(self) -> list[tuple[Any, ...]]:
        """Return what the router learned: level, state and action as bytes, value, updates."""
        texts = ", ".join(map(_text, ("router_level", "state", "action")))
        numbers = f"{_of_type('value', 'real', 'integer')}, {_of_type('update_count', 'integer')}"
        select = f"SELECT {texts}, {numbers} FROM q_table ORDER BY 1, 2, 3"  # noqa: S608
        return self._connection.execute(select).fetchall()


def public_id(kind: str, value: bytes | None) -> str | None:
    """Return the public id of two cells, None where they hold none."""
    try:
        return uids.from_typed(kind, value)
    except ValueError:
        return None


@contextmanager
def reading(path: Path, key: str | None, agent: str | None = None) -> Iterator[TrainingSource]:
    """Open a database to read one snapshot of it, while others may write.

    Nothing is written or left behind, beside an existing file included.

    Args:
        path: The file.
        key: Its passphrase, if it is encrypted.
        agent: The only agent of a store whose memories are read; None: everybody's.

    Raises:
        InvalidArgument: An agent is named, and it is a database of the reference server.
        CannotOpen: Nothing is there, or it may not be read.
        NotAStore: It is neither a store nor a database of the reference server, or the key is
            missing or wrong.
        StoreTooNew: A newer engram made it.
        CorruptStore: SQLite found it damaged.
        Busy: Another connection keeps it locked.
    """
    refuse_what_is_no_file(path)
    refuse_what_is_not_there(path)
    with named_errors():
        connection = _opened(path)
        try:
            connection.set_busy_timeout(_BUSY_MS)
            if key is not None:
                unlock(connection, passphrase(key))
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            yield TrainingSource(connection, agent)
        finally:
            connection.close()


def _opened(path: Path) -> apsw.Connection:
    """Open a file so that closing it leaves what was there.

    Read-only, SQLite makes the files of a write-ahead log where they are missing and cannot remove
    them. Where there are none nobody has the file open, and then one that could write does remove
    them; where there are some, it would empty the log of a process that died.
    """
    store = os.path.realpath(path)
    in_use = any(Path(f"{store}{end}").exists() for end in ("-wal", "-journal"))
    flags, mode = apsw.SQLITE_OPEN_READWRITE, "rw"
    if in_use or not os.access(store, os.W_OK):
        flags, mode = apsw.SQLITE_OPEN_READONLY, "ro"
    # Percent signs for what a URI would take for its own; names may be any bytes.
    name = f"file:{quote(os.fsencode(store))}?mode={mode}"
    return apsw.Connection(name, flags=flags | apsw.SQLITE_OPEN_URI)
