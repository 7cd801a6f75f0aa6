"""What the contract's weak spots ask for and no feature's own tests show."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from plain_twin import embedded
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput, StubLLMAdapter


def test_another_instances_erasure_is_no_damage(open_memory):
    one, other = open_memory(), open_memory()
    uid = one.observe("tea")
    other.recall("tea")
    one.forget(uid)
    assert other.check() == []


def stop(*_):
    raise KeyboardInterrupt


def fail_amid_rows(memory, _):
    store = memory._store
    with store.reading():
        return [1 // 0 for _ in store._connection.execute("SELECT id FROM episode")]


READING_ALL = {
    "a failed read": fail_amid_rows,
    "check": lambda memory, _: memory.check(),
    "export_lines, stopped": lambda memory, file: memory.export_lines(file, progress=stop),
    "export_json": lambda memory, file: memory.export_json(file),
}


@pytest.mark.parametrize("call", READING_ALL)
def test_a_call_that_reads_all_holds_no_one_up(open_memory, tmp_path, call):
    one, other = open_memory(), open_memory()
    one.observe_many([ObserveInput(f"tea {n}") for n in range(600)])
    for n in range(3):
        one.assert_fact("Ann", "likes", f"tea {n}")
    with suppress(KeyboardInterrupt, ZeroDivisionError):
        READING_ALL[call](one, tmp_path / "dump")
    other.observe("coffee")
    one.observe("cake")
    assert one.count() == other.count() == 602


@pytest.fixture
def moved(open_memory, tmp_path):
    """Moves a store's contents to a new one by the documented format."""

    def move(memory):
        memory.export_json(tmp_path / "dump.json")
        other = open_memory(path=tmp_path / "other.engram")
        other.import_json(tmp_path / "dump.json")
        return other

    return move


def test_a_forgotten_source_launders_nothing_on_its_way_through_a_document(open_memory, moved):
    said = {"subject": "Ann", "predicate": "likes", "object": "tea", "sources": [1, 2]}
    memory = open_memory(llm=StubLLMAdapter(facts=[said]))
    memory.observe("Ann likes tea", provenance="user")
    page = memory.observe("tea, says a page", provenance="external")
    memory.reflect()
    memory.forget(page)
    other = moved(memory)
    [fact] = other.timeline("Ann")
    assert len(fact.derived_from) == 1
    assert other.why(fact.id)["provenance"] == "unknown"


def test_an_episode_that_an_agent_only_names_stays_a_name_on_its_way(open_memory, moved):
    uid = open_memory("a").observe("mine", provenance="user", quarantined=True)
    fact = open_memory("b").assert_fact("Ann", "likes", "tea", source=uid)
    told = moved(open_memory()).why(fact)
    assert (told["provenance"], told["quarantined"]) == ("unknown", False)
    assert told["extracted_from"] == [uid]


def test_a_store_without_an_agent_is_no_larger(open_memory, tmp_path):
    sizes = []
    for agent in (None, "a"):
        path = tmp_path / f"{agent}.engram"
        with Engram(path, agent_id=agent, embedder=WordEmbedder()) as memory:
            memory.observe_many([ObserveInput(f"tea number {n}") for n in range(500)])
        sizes.append(path.stat().st_size)
    assert sizes[0] <= 1.05 * sizes[1]
    assert sizes[0] < 1_000_000


LOOKUPS = [
    "SELECT id FROM episode WHERE agent = 1 AND occurred_at <= 5",
    "SELECT id FROM episode WHERE occurred_at <= 5",
    "SELECT id FROM episode WHERE uid = 'x'",
    "SELECT id FROM fact WHERE subject = 'x' AND predicate = 'y'",
    "SELECT id FROM fact WHERE object = 'x'",
    "SELECT fact FROM fact_source WHERE episode = 1",
    "SELECT id FROM edge WHERE episode = 1",
    "SELECT id FROM edge WHERE target = 1",
    "SELECT id FROM entity WHERE name = 'x'",
    "SELECT recall FROM access_log WHERE episode = 1",
    "SELECT routing FROM shown WHERE episode = 1",
    "SELECT episode FROM shown WHERE routing = 1",
    "SELECT id FROM routing WHERE uid = x'00'",
    "SELECT episode FROM experience WHERE digest = x'00'",
    "SELECT episode FROM experience WHERE parent = 'x'",
    "SELECT episode FROM experience WHERE superseded_by = 'x'",
]


@pytest.mark.parametrize("sql", LOOKUPS)
def test_what_is_looked_up_has_an_index(memory, sql):
    with memory._store.reading():
        rows = memory._store._connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
    assert all(row[3].startswith("SEARCH") for row in rows)


def test_opening_a_store_that_is_current_writes_nothing(open_memory, path):
    with open_memory() as memory:
        memory.observe("tea")
    before = path.read_bytes()
    with open_memory():
        assert path.read_bytes() == before
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", ["cosine", "hybrid", "spreading"])
@pytest.mark.parametrize("weights", [(2.0, 3.0), (0.0, 1.0), (1.0, 0.0)])
def test_scores_lie_within_one_and_distances_are_distances(memory, mode, weights):
    texts = ["tea", "tea cake", "tea tea coffee", "berlin", ""]
    memory.observe_many([ObserveInput(text) for text in texts])
    vector_weight, fts_weight = weights
    found = memory.recall("tea cake", mode=mode, vector_weight=vector_weight, fts_weight=fts_weight)
    # Where words alone count, what has none of them is not found.
    by_words = mode == "hybrid" and vector_weight == 0.0
    wanted = [text for text in texts if "tea" in text] if by_words else texts
    assert sorted(result.episode.content for result in found) == sorted(wanted)
    for result in found:
        assert 0.0 <= result.score <= 1.0
        real = np.linalg.norm(embedded("tea cake") - embedded(result.episode.content))
        assert result.distance == pytest.approx(real, abs=1e-6)
