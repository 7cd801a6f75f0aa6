"""The consistency check: each kind of damage that SQLite itself takes for sound is named."""

from __future__ import annotations

import json

import pytest
from histories import fill_ledger

from engram import Engram, StubLLMAdapter


@pytest.fixture
def full(open_memory, clock) -> Engram:
    """A store with something in every table."""
    fact = {"subject": "Ana", "predicate": "likes", "object": "tea"}
    memory = open_memory("ana", llm=StubLLMAdapter([fact]))
    for text in ("tea at noon", "coffee at one", "nothing at two"):
        memory.observe(text, actors=["Ana"], tags=["t"])
    memory.reflect()
    memory.forget(memory.observe("gone"))
    memory.forget_fact(memory.assert_fact("x", "is", "gone"))
    memory.assert_fact("Ana", "likes", "coffee")
    memory.add_alias("Ana", "Annie")
    memory.recall("tea")
    fill_ledger(memory, clock)
    return memory


def test_a_sound_store_has_no_problems(full):
    assert full.check() == []


DAMAGE = {
    "UPDATE embedding SET vector = x'0000' WHERE id = 1": "dimension",
    "UPDATE embedding SET vector = zeroblob(65) WHERE id = 1": "dimension",
    "UPDATE embedding SET chunk = 1 WHERE id = 1": "between two others",
    "DELETE FROM embedding WHERE id = 1": "no vectors of the store's model",
    "UPDATE embedding SET vector = unhex('007C' || substr(hex(vector), 5)) WHERE id = 1": "finite",
    "INSERT INTO unembedded VALUES (1, 0)": "1 episodes wait to be embedded and have vectors",
    "UPDATE model SET role = NULL": "no embedding model",
    "UPDATE edge SET weight = 9e999": "infinite weight",
    "INSERT INTO entity_alias SELECT 'tea', id FROM entity WHERE name = 'Ana'": "two entities",
    "UPDATE fact SET superseded_by = id": "their own successor",
    "DELETE FROM change WHERE seq = 1": "1 rows of episode are not in the change log",
    "DELETE FROM change WHERE op = 'assert'": "2 rows of fact are not in the change log",
    "UPDATE episode SET content = 'tea at ten' WHERE id = 1": "full-text index",
    "UPDATE episode SET agent = 99": "missing row",
    "DELETE FROM project_memory WHERE kind = 0": "6 rows are missing in the lists of projects",
    "UPDATE project_memory SET project = zeroblob(16) WHERE recorded_at ="
    " (SELECT max(recorded_at) FROM project_memory) AND project ="
    " (SELECT min(project) FROM project_memory)": "1 rows in the lists of projects",
    "UPDATE project_memory SET memory = 99": "6 rows in the lists of projects",
    "UPDATE episode SET forgotten_at = 1 WHERE content = 'ours'": "1 rows in the lists",
    "UPDATE episode SET quarantined = 1 WHERE content = 'ours'": "1 rows in the lists",
    "UPDATE episode SET forgotten_at = NULL": "1 rows are missing in the lists",
    "UPDATE check_observation SET outcome = 'contradicted'": "2 check observations are not what",
    "UPDATE check_observation SET id = id || 'x' WHERE evidence_id = 'first'": "1 check observ",
    "DELETE FROM check_observation": "3 lifecycle changes are of memories that are gone",
    "UPDATE session_checkpoint SET blockers = '[1]' WHERE task = 'a'": "1 checkpoints hold",
    "INSERT INTO dormant_event (id, created_at, outcome, candidate_count, algorithm)"
    " VALUES ('x', 1, 'candidate', 1, 'a')": "1 dormant events chose",
    "INSERT INTO dormant_event (id, created_at, outcome, candidate_count, algorithm, episode,"
    " feedback, feedback_at) VALUES ('x', 1, 'candidate', 1, 'a', 1, 'useful', 2)": "1 dormant"
    " events were judged before",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_is_named(full, statement):
    connection = full._store._connection
    connection.execute("PRAGMA foreign_keys = OFF")
    with full._store.writing():
        connection.execute(statement)
    problems = full.check()
    assert any(DAMAGE[statement] in problem for problem in problems), problems
    assert not any("coffee" in problem for problem in problems)


def test_an_imported_alias_belongs_to_one_entity(memory, tmp_path):
    names = {"a": ["b"], "b": ["a"], "c": ["b"]}
    entities = [
        {"id": f"id-{name}", "name": name, "type": "unknown", "aliases": json.dumps(aliases),
         "first_seen": None, "last_seen": None}
        for name, aliases in names.items()
    ]  # fmt: skip
    document = {"engram_export_version": 1, "exported_at": "2026-01-01T00:00:00+00:00"}
    document |= {"episodes": [], "facts": [], "entities": entities, "edges": []}
    (tmp_path / "export.json").write_text(json.dumps(document))
    memory.import_json(tmp_path / "export.json")
    assert memory.check() == []
