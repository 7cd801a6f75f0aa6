"""What the server brings in from a database of the reference server, and what it takes for one."""

from __future__ import annotations

import math
import sqlite3

import pytest
from engram_server import RefusedError, Server, record

from engram.experience import ExperienceMemory

LEGACY = """
CREATE TABLE memories (
    id TEXT PRIMARY KEY, memory_type TEXT NOT NULL, context TEXT NOT NULL, action TEXT NOT NULL,
    result TEXT NOT NULL, score REAL DEFAULT 0, embedding_context BLOB, embedding_action BLOB,
    embedding_result BLOB, indexed BOOLEAN DEFAULT 0, tags TEXT, project TEXT, parent_id TEXT,
    source_ids TEXT, insight_type TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    used_count INTEGER DEFAULT 0, last_used_at TEXT, superseded_by TEXT
)
"""


@pytest.fixture
def legacy(start):
    """A server whose home has a database of the reference server, and how to fill that."""
    server = start()
    file = server.home / ".engram/engram.db"

    def filled(*memories: dict[str, object]) -> Server:
        with sqlite3.connect(file) as database:
            database.execute(LEGACY)
            for memory in memories:
                columns, marks = ", ".join(memory), ", ".join("?" * len(memory))
                values = tuple(memory.values())
                database.execute(f"INSERT INTO memories ({columns}) VALUES ({marks})", values)
        database.close()
        return server

    return filled


def test_the_memories_of_this_project_are_brought_in(legacy):
    server = legacy(
        record("mine", 1, project="work", tags='["a","b"]', score=0.5, used_count=2),
        record("child", 2, project="work", parent_id="mine"),
        record("merged", 1, project="work", superseded_by="mine"),
        record("other", 3, project="elsewhere"),
        record("nobody's", 4, project=None),
    )
    before = (server.home / ".engram/engram.db").read_bytes()
    counts = {
        "read": 4,
        "matched": 2,
        "migrated": 0,
        "skipped_duplicate": 0,
        "skipped_damaged": 0,
        "skipped_null_project": 1,
        "skipped_other_project": 1,
        "dry_run": True,
        "all": False,
        "project_hint": "work",
    }
    assert server.ask("memory_migrate_preview") == counts
    assert server.ask("memory_migrate_apply", dry_run=True) == counts
    assert server.memories() == {}
    done = server.ask("memory_migrate_apply")
    assert done == counts | {"migrated": 2, "dry_run": False}
    assert set(server.memories()) == {"mine", "child"}
    one = server.memories()["mine"]
    assert (one["tags"], one["score"], one["used_count"]) == ('["a","b"]', 0.5, 2)
    assert one["created_at"] == "2025-01-02T03:04:05Z"
    again = server.ask("memory_migrate_apply")
    assert (again["migrated"], again["skipped_duplicate"]) == (0, 2)
    everything = server.ask("memory_migrate_apply", all=True)
    assert (everything["matched"], everything["migrated"]) == (4, 2)
    assert (everything["skipped_null_project"], everything["skipped_other_project"]) == (0, 0)
    assert (server.home / ".engram/engram.db").read_bytes() == before
    hits = server.ask("memory_search", query="c3", limit=1)["results"]
    assert [hit["id"] for hit in hits] == ["other"]


def test_there_may_be_nothing_to_bring_in(server):
    for method in ("memory_migrate_preview", "memory_migrate_apply"):
        with pytest.raises(RefusedError, match=r"^\[6018\] migration source not found: "):
            server.ask(method)


DAMAGED = [
    {"score": "much"},
    {"used_count": -1},
    {"memory_type": "guess"},
    {"context": "x" * 10_001},
    {"insight_type": "guess"},
    {"id": ""},
]


def test_damaged_memories_are_skipped_and_counted(legacy):
    bad = [record(f"bad-{at}", at, project="work") | one for at, one in enumerate(DAMAGED)]
    server = legacy(
        record("good", 1, project="work"),
        record("there", 2, project="work"),
        record("infinite", 3, project="work", score=math.inf),
        record("nameless", 4, project=None),
        *bad,
    )
    file = server.home / ".engram/engram.db"
    with sqlite3.connect(file) as database:
        database.execute("UPDATE memories SET tags = CAST(x'22ff' AS TEXT) WHERE id = 'bad-0'")
        # Nothing of other projects is looked at.
        database.execute(
            "INSERT INTO memories (id, memory_type, context, action, result, project, created_at,"
            " updated_at) SELECT 'foreign', memory_type, bad, action, result, bad, '', ''"
            " FROM memories, (SELECT CAST(x'ff' AS TEXT) AS bad) WHERE id = 'good'"
        )
    database.close()
    server.ask("memory_import", version=1, memories=[record("there", 9)])
    preview = server.ask("memory_migrate_preview")
    assert (preview["read"], preview["matched"]) == (11, 9)
    assert (preview["skipped_damaged"], preview["skipped_duplicate"]) == (6, 1)
    assert (preview["skipped_other_project"], preview["skipped_null_project"]) == (1, 1)
    done = server.ask("memory_migrate_apply")
    assert done == preview | {"migrated": 2, "dry_run": False}
    assert server.memories()["infinite"]["score"] == 0.0
    assert set(server.memories()) == {"good", "there", "infinite"}
    everything = server.ask("memory_migrate_apply", all=True)
    assert (everything["matched"], everything["skipped_damaged"]) == (11, 7)
    assert (everything["migrated"], everything["skipped_duplicate"]) == (1, 3)


def test_a_database_in_utf16_is_read_too(server):
    with sqlite3.connect(server.home / ".engram/engram.db") as database:
        database.execute("PRAGMA encoding = 'UTF-16le'")
        database.execute(LEGACY)
        database.execute(
            "INSERT INTO memories (id, memory_type, context, action, result, project, created_at,"
            " updated_at) VALUES ('é', 'decision', 'où', '', '', 'work', '', '')"
        )
    database.close()
    assert server.ask("memory_migrate_apply")["migrated"] == 1
    assert server.memories()["é"]["context"] == "où"


def test_another_database_is_no_source(server):
    file = server.home / ".engram/engram.db"
    file.write_bytes(b"no database")
    with pytest.raises(RefusedError, match=r"^\[6019\] migration failed: "):
        server.ask("memory_migrate_preview")


def test_a_database_of_the_home_is_pointed_out_once(tmp_path):
    server = Server(tmp_path)
    with sqlite3.connect(server.home / ".engram/engram.db") as database:
        database.execute(LEGACY)
    database.close()
    assert server.refusal().startswith("[6017] legacy global database detected at ")
    assert not server.store.exists()
    with Server(tmp_path, variables={"ENGRAM_DB_PATH": str(server.store)}):
        pass
    with Server(tmp_path) as running:
        assert running.ask("memory_status")["memory_count"] == 0


def test_a_store_of_this_engine_in_the_home_is_nobody_elses(tmp_path):
    here = Server(tmp_path)
    at = {"ENGRAM_PROJECT_DIR": str(here.home), "ENGRAM_SOCKET_PATH": str(here.socket)}
    with Server(tmp_path, variables=at):
        pass
    assert (here.home / ".engram/engram.db").exists()
    with Server(tmp_path) as running:
        assert running.ask("memory_status")["memory_count"] == 0
        with pytest.raises(RefusedError, match=r"^\[6019\] migration failed: "):
            running.ask("memory_migrate_preview")


@pytest.mark.parametrize("kind", ["encrypted", "another", "view", "nothing"])
def test_what_else_is_in_the_home_is_no_database_of_the_reference_server(tmp_path, kind):
    server = Server(tmp_path)
    file = server.home / ".engram/engram.db"
    if kind == "encrypted":
        ExperienceMemory(file, key="a passphrase").close()
    elif kind == "nothing":
        file.write_bytes(b"")
    else:
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE memories (id, text)")
            if kind == "view":
                database.execute("DROP TABLE memories")
                names = "id, 1 AS memory_type, 1 AS context, 1 AS action, 1 AS result"
                database.execute("CREATE TABLE others (id)")
                database.execute(f"CREATE VIEW memories AS SELECT {names} FROM others")
        database.close()
    with server as running:
        assert running.ask("memory_status")["memory_count"] == 0
