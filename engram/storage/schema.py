"""The schema's version and the way to it: numbered SQL files, applied forward only."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engram.errors import NotAStore, StoreTooNew
from engram.storage import fact_texts, ownership
from engram.storage.old_store import is_old_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.storage.connection import Connection

APPLICATION_ID = 0x456E6772
"""Marks the file as an engram store in SQLite's header ("Engr")."""

_BEYOND_SQL: dict[int, Callable[[Connection], None]] = {3: ownership.decide, 5: fact_texts.fill}
"""What follows a step's SQL, in its transaction."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The checksum recorded in every store the step was applied to."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Return every step, oldest first."""
    # Not importlib.resources: it brings modules that take longer than all of this.
    folder = Path(__file__).with_name("migrations")
    return tuple(
        Migration(int(named[1]), named[2], file.read_text(encoding="utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if (named := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name))
    )


def bring_up_to_date(connection: Connection, now: int) -> None:
    """Create the schema in an empty file, or apply the steps an older store lacks.

    All steps run in one transaction, so an interrupted upgrade leaves the old store. From then on
    every write of the connection begins with a look at the version: another process may bring the
    store up to one that this engram does not know.

    Raises:
        NotAStore: The file is a database of something else.
        StoreTooNew: A newer engram made it.
    """
    with connection.reading():
        found = _version(connection)
    if found < migrations()[-1].version:
        _upgrade(connection, now)
    connection.before_writing = refuse_newer


def _upgrade(connection: Connection, now: int) -> None:
    with connection.writing():
        done = _version(connection)
        for step in migrations()[done:]:
            connection.execute(step.sql)
            if step.version in _BEYOND_SQL:
                _BEYOND_SQL[step.version](connection)
            connection.execute(
                "INSERT INTO migration VALUES (?, ?, ?, ?)",
                (step.version, step.name, step.sha256, now),
            )
            connection.execute(f"PRAGMA user_version = {step.version}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _version(connection: Connection) -> int:
    """Return the schema version, 0 for an empty file."""
    application = connection.execute("PRAGMA application_id").get
    if application == APPLICATION_ID:
        return refuse_newer(connection)
    version: int = connection.execute("PRAGMA user_version").get
    if application or version or connection.execute("SELECT count(*) FROM sqlite_schema").get:
        if is_old_store(connection):
            message = "the file is a store of the library that engram replaces"
            raise NotAStore(message, "bring it into a new store with `engram import-store`")
        message = "the file is a database of another program"
        raise NotAStore(message, "choose another path")
    return 0


def refuse_newer(connection: Connection) -> int:
    """Return the version of a store's schema.

    Raises:
        StoreTooNew: A newer engram made it.
    """
    version: int = connection.execute("PRAGMA user_version").get
    newest = migrations()[-1].version
    if version > newest:
        message = f"the store has schema version {version}, this engram knows up to {newest}"
        raise StoreTooNew(message, "upgrade engram-embedded")
    return version
