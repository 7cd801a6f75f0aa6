"""`export`, `import` and `import-store`: one implementation, the library's, behind each."""

from __future__ import annotations

import json
import sqlite3

import pytest

from engram import Engram

OLD_SCHEMA = """
CREATE TABLE episodes (id TEXT PRIMARY KEY, content TEXT NOT NULL, timestamp TEXT NOT NULL,
    actors TEXT NOT NULL DEFAULT '[]', tags TEXT NOT NULL DEFAULT '[]', salience REAL DEFAULT 0.5,
    emotional_valence REAL DEFAULT 0.0, summary_of TEXT DEFAULT '[]', importance_score REAL,
    agent_id TEXT, provenance TEXT, quarantined INTEGER);
CREATE TABLE facts (id TEXT PRIMARY KEY, subject TEXT, predicate TEXT, object TEXT,
    valid_from TEXT, valid_to TEXT, recorded_at TEXT, superseded_at TEXT, superseded_by TEXT,
    confidence REAL, derived_from TEXT, extracted_by TEXT, agent_id TEXT, shared INTEGER,
    quarantined INTEGER);
CREATE TABLE entities (id TEXT PRIMARY KEY, name TEXT, type TEXT, aliases TEXT, first_seen TEXT,
    last_seen TEXT);
CREATE TABLE edges (src_id TEXT, dst_id TEXT, relation TEXT, weight REAL, created_at TEXT,
    agent_id TEXT);
CREATE TABLE reflections (id TEXT PRIMARY KEY, started_at TEXT, finished_at TEXT,
    episodes_processed INTEGER, facts_extracted INTEGER, contradictions_resolved INTEGER,
    model_used TEXT, cost_tokens INTEGER, agent_id TEXT);
CREATE TABLE access_log (episode_id TEXT, accessed_at TEXT, query TEXT);
"""


@pytest.fixture
def full(run, store):
    assert run("assert", store, "Ben", "keeps", "bees", "--agent-id", "ben").code == 0
    return store


@pytest.mark.parametrize("file_format", ["lines", "json"])
def test_what_is_exported_comes_back(run, full, tmp_path, file_format):
    file, copy = tmp_path / "export", tmp_path / "copy.engram"
    done = run("export", full, file, "--format", file_format)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == f"Exported {full} to {file}"
    assert run("import", copy, file).lines[0] == f"Imported {file} into {copy}"
    for name, words, found in (("facts", [], "facts"), ("recall", ["bees"], "results")):
        before, after = (run(name, path, *words, "--json").document for path in (full, copy))
        assert before[found]
        assert before[found] == after[found]
    assert run("verify", copy).code == 0
    refused = run("import", copy, file)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: ")
    counts = run("import", copy, file, "--merge", "--json").document["counts"]
    assert set(counts.values()) == {0}


def test_counts(run, full, tmp_path):
    file = tmp_path / "export"
    document = run("export", full, file, "--format", "json", "--json").document
    assert document == {
        "path": str(full),
        "dest": str(file),
        "format": "json",
        "agent_id": None,
        "counts": {"episodes": 3, "facts": 1, "entities": 0, "edges": 0},
    }
    assert json.loads(file.read_bytes())["engram_export_version"] == 1
    lines = run("export", full, file).lines
    assert lines[1].split() == ["episode:", "3"]
    document = run("import", tmp_path / "copy.engram", file, "--json").document
    assert document["counts"]["fact"] == 1


def test_an_agents_export_is_its_view(run, full, tmp_path):
    file = tmp_path / "export"
    arguments = ("export", full, file, "--format", "json", "--agent-id", "ana", "--json")
    assert run(*arguments).document["counts"]["episodes"] == 2


@pytest.mark.parametrize("content", ["", "{}", "[]", "no json", '{"format":"engram-lines"}'])
def test_what_is_no_export_is_an_error(run, store, tmp_path, content):
    file = tmp_path / "bad"
    file.write_text(content)
    done = run("import", store, file)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert run("inspect", store, "--json").document["episodes"] == 3


def test_a_missing_export_makes_no_store(run, path, tmp_path):
    done = run("import", path, tmp_path / "missing")
    assert (done.code, done.err) == (
        1,
        f"error: {tmp_path / 'missing'}: No such file or directory\n",
    )
    done = run("import-store", path, tmp_path / "missing")
    assert (done.code, done.err) == (1, f"error: file not found: {tmp_path / 'missing'}\n")
    assert not path.exists()


def test_a_store_of_the_reference_library_is_brought_in(run, path, tmp_path):
    old = tmp_path / "old.db"
    with sqlite3.connect(old) as database:
        database.executescript(OLD_SCHEMA)
        database.execute(
            "INSERT INTO episodes (id, content, timestamp, agent_id, provenance, quarantined)"
            " VALUES ('00000000-0000-4000-8000-000000000001', 'Ben keeps bees',"
            " '2026-01-01T00:00:00+00:00', 'ben', 'user', 0)"
        )
    database.close()
    document = run("import-store", path, old, "--json").document
    assert document == {
        "path": str(path),
        "src": str(old),
        "counts": {"episodes": 1, "facts": 0, "entities": 0, "edges": 0},
    }
    with Engram(path, agent_id="ben") as memory:
        assert [e.content for e in memory.episodes().episodes] == ["Ben keeps bees"]
    assert run("import-store", path, old).err.startswith("error: ")
    assert run("import-store", path, old, "--merge").code == 0
    assert run("import-store", path, path).err.startswith("error: ")
