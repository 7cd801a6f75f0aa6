"""What the server says about itself, and what it brings in from the reference server."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from engram_server import DETERMINISTIC, RefusedError, Server, record, texts

LEGACY = """
CREATE TABLE memories (
    id TEXT PRIMARY KEY, memory_type TEXT NOT NULL, context TEXT NOT NULL, action TEXT NOT NULL,
    result TEXT NOT NULL, score REAL DEFAULT 0, embedding_context BLOB, embedding_action BLOB,
    embedding_result BLOB, indexed BOOLEAN DEFAULT 0, tags TEXT, project TEXT, parent_id TEXT,
    source_ids TEXT, insight_type TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    used_count INTEGER DEFAULT 0, last_used_at TEXT, superseded_by TEXT
)
"""


def test_the_status_counts(server):
    empty = server.ask("memory_status")
    assert (empty["memory_count"], empty["indexed_count"], empty["index_size"]) == (0, 0, 0)
    assert (empty["pending_judgments"], empty["waiting"], empty["facts"]) == (0, 0, 0)
    assert empty["training"] is None
    for number in range(3):
        server.ask("memory_store", **texts(number))
    full = server.given("memory_status", "ignored")
    assert (full["memory_count"], full["indexed_count"], full["index_size"]) == (3, 3, 3)
    assert full["episodes"] == 3


def hints(server: Server) -> str:
    return "\n".join(server.ask("memory_status")["hints"])


def test_hints_say_what_is_worth_doing(start, tmp_path):
    server = start(DETERMINISTIC, ENGRAM_MODELS_PATH=str(tmp_path))
    assert "llm.provider" in hints(server)
    assert "memory_train_generate" not in hints(server)
    memories = [record(f"m{number}", number) for number in range(20)]
    server.ask("memory_import", version=1, memories=memories)
    assert "holds no models" in hints(server)
    model = tmp_path / "ranking_model.onnx"
    model.write_bytes(b"")
    os.utime(model, (0, 0))
    assert "older than the store" in hints(server)
    os.utime(model, (2**33, 2**33))
    assert "memory_train_generate" not in hints(server)
    assert "memory_judge" not in hints(server)
    server.ask("memory_search", query="c1", limit=11)
    assert "memory_judge" in hints(server)


def test_a_missing_key_is_worth_a_hint(start):
    openai = f'{DETERMINISTIC}[llm]\nprovider = "openai"\n'
    assert "no API key" in hints(start(openai))
    assert "llm" not in hints(start(openai, ENGRAM_OPENAI_API_KEY="SECRET"))
    assert "llm" not in hints(start(f'{DETERMINISTIC}[llm]\nprovider = "ollama"\nmodel = "m"\n'))


def test_the_configuration_is_shown_without_keys(start):
    server = start(
        f'{DETERMINISTIC}[llm]\nprovider = "openai"\nmodel = "m"\n[search]\nrrf_k = 50\n',
        ENGRAM_OPENAI_API_KEY="SECRET",
        ENGRAM_VOYAGE_API_KEY="SECRET",
    )
    data = server.ask("memory_config")
    assert data == server.ask("memory_config", action="get")
    assert data["database"] == {"path": None}
    assert data["embedding"]["provider"] == "deterministic"
    assert data["embedding"]["has_api_key"] is True
    assert data["llm"] == {"provider": "openai", "model": "m", "has_api_key": True}
    assert data["server"]["socket_path"] is None
    assert data["server"]["reindex_interval_secs"] == 3600
    assert data["hnsw"] == {
        "max_connections": 16,
        "ef_construction": 200,
        "ef_search": 40,
        "dimension": 1024,
    }
    assert data["consolidation"]["stale_days"] == 90
    assert data["search"]["rrf_k"] == 50
    assert data["effective"]["store_path"] == str(server.store)
    assert data["effective"]["socket_path"] == str(server.socket)
    assert "SECRET" not in json.dumps(data)
    assert '"api_key"' not in json.dumps(data)
    server.ask("memory_store", **texts(1))
    embedding = server.ask("memory_config")["embedding"]
    assert (embedding["model"], embedding["dimension"]) == ("deterministic", 1024)


def test_without_keys_there_are_none(shared):
    data = shared.ask("memory_config")
    assert (data["embedding"]["has_api_key"], data["llm"]["has_api_key"]) == (False, False)


def test_the_configuration_is_read_only(shared):
    with pytest.raises(RefusedError) as refusal:
        shared.ask("memory_config", action="set")
    assert refusal.value.message == "[6008] config is read-only"
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: invalid config action"):
        shared.ask("memory_config", action="SECRET")


def test_what_waits_is_embedded_on_request(server):
    nothing = server.ask("memory_reembed")
    assert (nothing["total"], nothing["succeeded"], nothing["failed"]) == (0, 0, 0)
    server.ask("memory_store", **texts(1))
    for params in ({}, {"force": True}, ["any"]):
        assert server.given("memory_reembed", params) == {
            "total": 1,
            "succeeded": 1,
            "failed": 0,
            "model": "deterministic",
        }


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


def test_a_damaged_memory_leaves_the_store_as_it_was(legacy):
    server = legacy(record("good", 1), record("bad", 2, score="much"))
    with pytest.raises(RefusedError, match=r"^\[6019\] migration failed: .*2"):
        server.ask("memory_migrate_apply", all=True)
    assert server.memories() == {}


def test_another_database_is_no_source(server):
    file = server.home / ".engram/engram.db"
    file.write_bytes(b"no database")
    with pytest.raises(RefusedError, match=r"^\[6019\] migration failed: "):
        server.ask("memory_migrate_preview")


def started(place: Path, settings: str = DETERMINISTIC, **variables: str) -> Server:
    return Server(place, settings, variables)


def test_a_database_of_the_home_is_pointed_out_once(tmp_path):
    server = started(tmp_path)
    legacy = server.home / ".engram/engram.db"
    legacy.write_bytes(b"stub")
    assert server.refusal().startswith("[6017] legacy global database detected at ")
    assert not server.store.exists()
    with started(tmp_path, ENGRAM_DB_PATH=str(server.store)):
        pass
    with started(tmp_path) as running:
        assert running.ask("memory_status")["memory_count"] == 0


def test_a_store_of_this_engine_in_the_home_is_nobody_elses(tmp_path):
    here = started(tmp_path)
    with started(tmp_path, ENGRAM_PROJECT_DIR=str(here.home), ENGRAM_SOCKET_PATH=str(here.socket)):
        pass
    assert (here.home / ".engram/engram.db").exists()
    with started(tmp_path) as running:
        assert running.ask("memory_status")["memory_count"] == 0


@pytest.mark.parametrize(
    ("settings", "variables", "expected"),
    [
        ("[search]\nrrf_k = 0\n", {}, "[6022] invalid configuration: search.rrf_k"),
        ("[search\n", {}, "[6002] config parse error: "),
        ('[embedding]\nprovider = "voyage"\n', {}, "[6003] invalid provider: "),
        ('[embedding]\nmodel = "no-such-model"\n', {}, "[6003] invalid provider: "),
        (
            f"{DETERMINISTIC}dimension = 384\n",
            {},
            "[6022] invalid configuration: embedding.dimension",
        ),
        (DETERMINISTIC, {"ENGRAM_DB_PATH": "/dev/null/x.db"}, "[6012] init failed: "),
        (DETERMINISTIC, {"ENGRAM_KEY_FILE": "/nowhere"}, "[6022] invalid configuration: "),
        (DETERMINISTIC, {"ENGRAM_SOCKET_PATH": f"/tmp/{'s' * 100}"}, "[6012] init failed: "),
    ],
)
def test_why_a_server_does_not_start(tmp_path, settings, variables, expected):
    assert started(tmp_path, settings, **variables).refusal().startswith(expected)


def test_a_file_that_is_no_store_is_left_alone(tmp_path):
    server = started(tmp_path)
    server.store.write_bytes(b"something else" * 1000)
    assert server.refusal().startswith("[6012] init failed: ")
    assert server.store.read_bytes() == b"something else" * 1000


def test_the_model_of_a_store_does_not_change_unseen(tmp_path):
    with started(tmp_path) as server:
        server.ask("memory_store", **texts(1))
    assert started(tmp_path, "").refusal().startswith("[6020] embedding model mismatch: ")
    packaged = '[embedding]\nmodel = "all-MiniLM-L6-v2-int8"\n'
    assert started(tmp_path, packaged).refusal().startswith("[6020] embedding model mismatch: ")


def test_an_encrypted_store(tmp_path):
    secret = tmp_path / "key"
    secret.write_text("a passphrase\n")
    with started(tmp_path, ENGRAM_KEY_FILE=str(secret)) as server:
        server.ask("memory_store", **texts(1))
        assert server.ask("memory_config")["effective"]["encrypted"] is True
    assert texts(1)["action"].encode() not in server.store.read_bytes()
    assert started(tmp_path).refusal().startswith("[6019] migration failed: ")
    with started(tmp_path, ENGRAM_KEY_FILE=str(secret)) as server:
        assert len(server.memories()) == 1


def test_one_agent_sees_its_own_memories(tmp_path):
    agent = f'{DETERMINISTIC}[server]\nagent = "{{}}"\n'
    with started(tmp_path, agent.format("ana")) as server:
        server.ask("memory_store", **texts(1))
    with started(tmp_path, agent.format("ben")) as server:
        assert server.memories() == {}
    with started(tmp_path) as server:
        assert len(server.memories()) == 1
