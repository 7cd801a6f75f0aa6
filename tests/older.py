"""Being an engram of before: with fewer steps of the schema, and without their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engram.storage import NewEpisode, schema
from engram.storage.connection import Connection

_BEFORE_5 = {
    "INSERT INTO fact (uid, agent, subject, predicate, object, valid_from, valid_to,"
    " recorded_at, confidence, reflection, shared, quarantined, search_text)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)": (
        "INSERT INTO fact (uid, agent, subject, predicate, object, valid_from, valid_to,"
        " recorded_at, confidence, reflection, shared, quarantined)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    ),
    "INSERT INTO fact_fts (rowid, body)"
    " SELECT id, body FROM fact_text WHERE id BETWEEN ? AND ?": "SELECT ?, ?",
}
_HEADED = re.compile(r"INSERT INTO episode \(id, uid, agent, content, heading, (.*) VALUES \(\?, ")
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
    """Be an engram that knows the schema up to a version below 6, and writes as that one did."""
    steps = schema.migrations()[:version]
    others = (_BEFORE_5 if version < 5 else {}) | (_BEFORE_4 if version < 4 else {})
    execute, executemany = Connection.execute, Connection.executemany

    def one(self, sql, bindings=()):
        if sql in others and "search_text" in sql:
            bindings = bindings[:-1]
        return execute(self, others.get(sql, sql), bindings)

    def many(self, sql, bindings):
        if "INTO turn" in sql:
            return
        if sql in others and "embedding" in sql:
            bindings = [row[:4] for row in bindings]
        if _HEADED.match(sql):
            # A text that is no ASCII would not be found by its own words: none of these is.
            bindings = [row[:4] + row[5:] for row in bindings]
            sql = _HEADED.sub(r"INSERT INTO episode (id, uid, agent, content, \1 VALUES (", sql)
        executemany(self, others.get(sql, sql), bindings)

    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: steps)
        patch.setattr(NewEpisode, "heading", None)
        patch.setattr(Connection, "execute", one)
        patch.setattr(Connection, "executemany", many)
        yield
