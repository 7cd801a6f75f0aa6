"""The words of an older store's facts: what version 5 of the schema adds to what is there."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from engram.storage.fact_records import statement
from engram.storage.segment import search_text

if TYPE_CHECKING:
    from engram.storage.connection import Connection

_BLOCK: Final = 1_000
"""Facts written at a time."""


def fill(connection: Connection) -> None:
    """Make facts findable by their words; inside the migration."""
    rows = connection.execute("SELECT id, subject, predicate, object FROM fact ORDER BY id")
    texts = ((search_text(statement(*parts)), key) for key, *parts in rows)
    unlike = ((text, key) for text, key in texts if text is not None)
    while block := list(islice(unlike, _BLOCK)):
        connection.executemany("UPDATE fact SET search_text = ? WHERE id = ?", block)
    connection.execute("INSERT INTO fact_fts (fact_fts) VALUES ('rebuild')")
