"""Being an engram of before: with fewer steps of the schema, and without their columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engram.storage import schema
from engram.storage.connection import Connection

_BEFORE_4 = {
    "INSERT INTO label (kind, name, folded) VALUES (?1, ?2, folded(?2))": (
        "INSERT INTO label (kind, name) VALUES (?1, ?2)"
    ),
    "INSERT INTO embedding (episode, chunk, model, vector, field)"
    " VALUES (?, ?, ?, ?, nullif(?, -1))": (
        "INSERT INTO embedding (episode, chunk, model, vector) VALUES (?1, ?2, ?3, ?4)"
    ),
}


@contextmanager
def older(monkeypatch: pytest.MonkeyPatch, version: int) -> Iterator[None]:
    """Be an engram that knows the schema up to a version below 4, and writes as that one did."""
    steps = schema.migrations()[:version]
    execute, executemany = Connection.execute, Connection.executemany

    def one(self, sql, bindings=()):
        return execute(self, _BEFORE_4.get(sql, sql), bindings)

    def many(self, sql, bindings):
        if sql in _BEFORE_4 and "embedding" in sql:
            bindings = [row[:4] for row in bindings]
        executemany(self, _BEFORE_4.get(sql, sql), bindings)

    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: steps)
        patch.setattr(Connection, "execute", one)
        patch.setattr(Connection, "executemany", many)
        yield
