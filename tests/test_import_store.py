"""Stores of the reference library, in the schemas of their time, made by hand."""

from __future__ import annotations

import sqlite3

import pytest

from engram.errors import (
    CannotOpen,
    InvalidType,
    NotAStore,
)

OLD_TABLES = """
CREATE TABLE episodes (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, timestamp DATETIME NOT NULL,
    actors JSON DEFAULT '[]', tags JSON DEFAULT '[]', salience REAL DEFAULT 0.5,
    emotional_valence REAL DEFAULT 0.0, summary_of JSON DEFAULT '[]'
    {episode_columns});
CREATE TABLE facts (
    id TEXT PRIMARY KEY, subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL,
    valid_from DATETIME NOT NULL, valid_to DATETIME, recorded_at DATETIME NOT NULL,
    superseded_at DATETIME, superseded_by TEXT REFERENCES facts (id),
    confidence REAL NOT NULL DEFAULT 1.0, derived_from JSON DEFAULT '[]' {fact_columns});
CREATE TABLE entities (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, aliases JSON DEFAULT '[]',
    first_seen DATETIME, last_seen DATETIME);
CREATE TABLE edges (
    src_id TEXT, dst_id TEXT, relation TEXT, weight REAL NOT NULL DEFAULT 1.0,
    created_at DATETIME NOT NULL {agent}, PRIMARY KEY (src_id, dst_id, relation));
CREATE TABLE reflections (
    id TEXT PRIMARY KEY, started_at DATETIME NOT NULL, finished_at DATETIME,
    episodes_processed INTEGER DEFAULT 0, facts_extracted INTEGER DEFAULT 0,
    contradictions_resolved INTEGER DEFAULT 0, model_used TEXT, cost_tokens INTEGER DEFAULT 0
    {agent});
CREATE TABLE access_log (
    memory_id TEXT NOT NULL, accessed_at DATETIME NOT NULL, query TEXT, rank INTEGER {agent});
CREATE VIRTUAL TABLE fts_episodes USING fts5 (
    content, content = 'episodes', content_rowid = 'rowid');
"""
VEC0_SHADOWS = """
CREATE TABLE vec_episodes_info (key TEXT PRIMARY KEY, value ANY);
CREATE TABLE vec_episodes_chunks (chunk_id INTEGER PRIMARY KEY, size INTEGER, validity BLOB,
    rowids BLOB, partition00);
CREATE TABLE vec_episodes_rowids (rowid INTEGER PRIMARY KEY, id, chunk_id, chunk_offset);
CREATE TABLE vec_episodes_vector_chunks00 (rowid PRIMARY KEY, vectors BLOB NOT NULL);
CREATE TABLE vec_episodes_metadatatext00 (rowid PRIMARY KEY, data TEXT);
INSERT INTO vec_episodes_chunks VALUES (1, 128, zeroblob(16), zeroblob(1024), 'ann');
PRAGMA writable_schema = ON;
INSERT INTO sqlite_master VALUES ('table', 'vec_episodes', 'vec_episodes', 0,
    'CREATE VIRTUAL TABLE vec_episodes USING vec0(agent_id text partition key, ts text,'
    || ' embedding float[384], chunk_size=128)');
"""
AT = "2024-05-01T10:00:00+00:00"


def old_store(path, *, age: str, vec0: bool = True, wal: bool = True) -> None:
    """Make a store as it was before provenance ("old"), before agents ("older"), or as it is."""
    agent = "" if age == "older" else ", agent_id TEXT DEFAULT NULL"
    importance = "" if age == "older" else ", importance_score REAL NOT NULL DEFAULT 1.0"
    extracted = "" if age == "older" else ", extracted_by TEXT REFERENCES reflections (id)"
    marks = ", provenance TEXT, quarantined INTEGER" if age == "now" else ""
    shares = ", agent_id TEXT, shared INTEGER, quarantined INTEGER" if age == "now" else ""
    base = sqlite3.connect(path)
    if wal:
        base.execute("PRAGMA journal_mode = WAL")
    base.executescript(
        OLD_TABLES.format(
            episode_columns=importance + agent + marks, fact_columns=extracted + shares, agent=agent
        )
    )
    e = "INSERT INTO episodes (id, content, timestamp, actors, tags, salience, summary_of)"
    base.execute(
        f"{e} VALUES ('e2', 'tea with Zoë', ?, '[\"Zo\\u00eb\"]', '[\"t\"]', 0.7, '[]')", [AT]
    )
    base.execute(
        f"{e} VALUES ('e1', 'long ago', '1999-01-01T00:00:00+00:00', '[]', '[]', NULL, '[\"x\"]')"
    )
    f = "INSERT INTO facts (id, subject, predicate, object, valid_from, recorded_at, derived_from)"
    base.execute(f"{f} VALUES ('f1', 'Zoë', 'likes', 'tea', ?, ?, '[\"e2\", \"gone\"]')", [AT, AT])
    base.execute(f"{f} VALUES ('f2', 'Zoë', 'likes', 'coffee', ?, ?, '[]')", [AT, AT])
    base.execute("UPDATE facts SET superseded_by = 'f2', superseded_at = ?, valid_to = ?"
                 " WHERE id = 'f1'", [AT, AT])  # fmt: skip
    base.execute("INSERT INTO entities VALUES ('n1', 'Zoë', 'person', '[\"Zoe\"]', ?, NULL)", [AT])
    base.execute("INSERT INTO edges (src_id, dst_id, relation, weight, created_at)"
                 " VALUES ('e2', 'n1', 'mentions', 2.5, ?), ('gone', 'n1', 'mentions', 1, ?)",
                 [AT, AT])  # fmt: skip
    base.execute("INSERT INTO reflections (id, started_at, finished_at, model_used, cost_tokens)"
                 " VALUES ('r1', ?, ?, 'a model', 7)", [AT, AT])  # fmt: skip
    base.execute("INSERT INTO access_log (memory_id, accessed_at, query, rank) VALUES"
                 " ('e2', ?, 'who likes tea', 1), ('gone', ?, 'about the forgotten', 1)",
                 [AT, AT])  # fmt: skip
    if age != "older":
        base.execute(
            "UPDATE episodes SET agent_id = 'ann', importance_score = 0.25 WHERE id = 'e2'"
        )
        base.execute("UPDATE facts SET extracted_by = 'r1' WHERE id = 'f1'")
    if age == "now":
        base.execute("UPDATE episodes SET provenance = 'user', quarantined = 0 WHERE id = 'e2'")
        base.execute("UPDATE episodes SET provenance = 'user' WHERE id = 'e1'")
        base.execute(
            "UPDATE facts SET shared = 0, quarantined = 0, agent_id = 'ann' WHERE id = 'f2'"
        )
    if vec0:
        base.execute("PRAGMA user_version = 1")
        base.commit()
        base.executescript(VEC0_SHADOWS)
    base.commit()
    base.close()


@pytest.mark.parametrize("vec0", [True, False])
@pytest.mark.parametrize("age", ["now", "old", "older"])
def test_an_old_store_is_brought_in(memory, tmp_path, age, vec0):
    old = tmp_path / "OLD store?#.engram"
    old_store(old, age=age, vec0=vec0)
    before = old.read_bytes()
    assert memory.import_store(old) == {"episodes": 2, "facts": 2, "entities": 1, "edges": 1}
    assert old.read_bytes() == before
    tea, ago = memory.get("e2"), memory.get("e1")
    assert (tea.content, tea.actors, tea.tags, tea.salience) == (
        "tea with Zoë",
        ["Zoë"],
        ["t"],
        0.7,
    )
    assert (ago.salience, ago.summary_of) == (0.5, ["x"])
    assert tea.timestamp.isoformat() == AT
    assert tea.importance_score == (1.0 if age == "older" else 0.25)
    assert tea.agent_id == (None if age == "older" else "ann")
    now = age == "now"
    assert (tea.provenance, tea.quarantined) == (("user", False) if now else ("unknown", True))
    # A row without a mark is untrusted whatever it says.
    assert (ago.provenance, ago.quarantined) == ("unknown", True)
    facts = {f.object: f for f in memory.timeline("Zoe")}
    assert facts["tea"].superseded_by == "f2"
    assert facts["tea"].derived_from == ["e2", "gone"]
    assert facts["tea"].extracted_by == (None if age == "older" else "r1")
    assert (facts["coffee"].shared, facts["coffee"].quarantined) == (
        (False, False) if now else (True, True)
    )
    assert memory.counts().reflections == 1
    assert [r.episode.id for r in memory.recall("tea", 1)] == ["e2"]
    assert memory.check() == []
    with memory._store.reading():
        logged = memory._store._connection.execute("SELECT query FROM recall_log").fetchall()
    # What was asked about a memory that is gone is gone with it.
    assert logged == [("who likes tea",)]
    # A day on, everything the old library would have lost still waits for reflection.
    with memory._store.reading():
        assert sum(one.episodes for one in memory._store.reflections.waiting(None)) == 2


def test_an_old_store_is_not_opened_and_the_way_in_is_named(open_memory, tmp_path):
    old = tmp_path / "OLD.engram"
    old_store(old, age="now")
    with pytest.raises(NotAStore, match="engram import-store"):
        open_memory(path=old)
    with sqlite3.connect(old) as base:
        assert base.execute("SELECT count(*) FROM episodes").fetchone() == (2,)
    base.close()


def test_an_old_store_is_read_while_its_library_has_it_open(memory, tmp_path):
    old = tmp_path / "OLD.engram"
    old_store(old, age="now")
    base = sqlite3.connect(old)
    base.execute("INSERT INTO episodes (id, content, timestamp) VALUES ('e3', 'new', ?)", [AT])
    base.commit()
    assert memory.import_store(old)["episodes"] == 3
    base.close()


def test_what_is_no_old_store(memory, open_memory, tmp_path):
    with pytest.raises(CannotOpen):
        memory.import_store(tmp_path / "missing")
    with open_memory(path=tmp_path / "ours.engram") as ours:
        ours.observe("x")
    with pytest.raises(NotAStore):
        memory.import_store(tmp_path / "ours.engram")
    (tmp_path / "text").write_text("no database" * 100)
    with pytest.raises(NotAStore):
        memory.import_store(tmp_path / "text")
    assert memory.count() == 0


def test_an_encrypted_old_store_needs_its_key(memory, tmp_path):
    import apsw

    old, locked = tmp_path / "OLD.engram", tmp_path / "LOCKED.engram"
    old_store(old, age="now", vec0=False, wal=False)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    base = apsw.Connection(str(old), flags=flags)
    base.execute("VACUUM INTO ?", (f"file:{locked}?cipher=sqlcipher&legacy=4&key=pass",))
    base.close()
    for key in (None, "wrong"):
        with pytest.raises(NotAStore):
            memory.import_store(locked, key=key)
    assert memory.import_store(locked, key="pass")["episodes"] == 2


def test_one_bad_value_of_an_old_store_is_named(memory, tmp_path):
    old = tmp_path / "OLD.engram"
    old_store(old, age="now")
    with sqlite3.connect(old) as base:
        base.execute("UPDATE episodes SET salience = 'abc' WHERE id = 'e1'")
    base.close()
    with pytest.raises(InvalidType, match=r"episodes\[1\]\.salience"):
        memory.import_store(old)
    assert memory.count() == 0
