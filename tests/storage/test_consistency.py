"""The consistency check: each kind of damage that SQLite itself takes for sound is named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from histories import fill_ledger
from stand_ins import WordEmbedder

from engram import Engram, StubLLMAdapter
from engram.errors import CorruptStore


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
    memory.recall_memories("tea")
    fill_ledger(memory, clock)
    return memory


def test_a_sound_store_has_no_problems(full):
    assert full.check() == []


ONES = "unhex(replace(hex(zeroblob(32)), '00', '003C'))"
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
    "UPDATE fact SET valid_to = valid_from - 1 WHERE id = 1": "1 facts end before they begin",
    f"UPDATE embedding SET vector = {ONES} WHERE id < 3": "2 vectors of episodes do not have len",
    f"UPDATE fact_embedding SET vector = {ONES} WHERE fact = 1": "1 vectors of facts do not have l",
    "UPDATE fact_embedding SET vector = unhex('007C' || substr(hex(vector), 5))": "2 vectors of f",
    "DELETE FROM fact_fts_data": "full-text index differs from the facts",
    "DELETE FROM episode_fts_data": "full-text index differs from the episodes",
    "UPDATE session_checkpoint SET blockers = 'x'": "holds what it cannot",
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
    connection.execute("PRAGMA ignore_check_constraints = ON")
    with full._store.writing():
        connection.execute(statement)
    problems = full.check()
    assert any(DAMAGE[statement] in problem for problem in problems), problems
    assert not any("coffee" in problem for problem in problems)


@pytest.mark.parametrize("model", [{}, {"fingerprint": "m", "name": "m"}])
def test_an_embedder_without_weights_may_have_nothing_to_say(open_memory, model):
    """As the deterministic one of an empty text."""
    memory = open_memory(embedder=Silent(model))
    memory.observe("tea")
    memory.assert_fact("Ann", "likes", "tea")
    memory.recall_memories("tea")
    assert memory.check() == []


def test_a_model_of_files_always_says_something(open_memory):
    memory = open_memory(embedder=Silent({"name": "m"}))
    memory.observe("tea")
    memory.assert_fact("Ann", "likes", "tea")
    memory.recall_memories("tea")
    assert memory.check() == [
        f"1 vectors of {of} do not have length one" for of in ("episodes", "facts")
    ]


class Silent(WordEmbedder):
    def __init__(self, model: dict[str, str]) -> None:
        super().__init__()
        vars(self).update(model)

    def vector(self, text):
        return np.zeros(self.dim)


@pytest.mark.parametrize(
    "part",
    [
        *("table fact", "table fact_embedding", "table fact_fts", "view fact_text"),
        *("table change", "table importance", "index fact_by_subject", "view episode_text"),
    ],
)
def test_a_part_that_is_missing_is_named(memory, path, part):
    memory.assert_fact("Ann", "likes", "tea")
    copy = path.with_name("copy.engram")
    memory.backup(copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as file:
        file.execute(f"DROP {part}")
    with Engram(copy, embedder=WordEmbedder()) as damaged:
        assert f"the {part} is missing" in damaged.check()


def test_a_missing_column_is_named(full):
    with full._store.writing():
        full._store._connection.execute("ALTER TABLE item DROP COLUMN created_at")
    assert full.check() == ["the column item.created_at is missing"]


def test_a_call_that_needs_what_is_missing_says_that_the_store_is_damaged(full):
    with full._store.writing():
        full._store._connection.execute("DROP TABLE fact_source")
    with pytest.raises(CorruptStore, match="lacks a part"):
        full.recall_memories("tea")


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
