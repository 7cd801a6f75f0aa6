"""Search: what answers comes first, what does not is left out, and the report says how it was."""

from __future__ import annotations

import json
import math
import struct

import apsw
import numpy as np
import pytest
from damage import ROW, damage

from engram import ObserveInput, StubLLMAdapter
from engram.config import Retrieval
from engram.embedding.late_interaction import LateInteraction
from engram.errors import CorruptStore, InvalidArgument, InvalidType
from engram.ledger import Ledger
from engram.storage.connection import Connection

CERTAIN = Retrieval(min_confidence=0.0)
ROWS = [
    "the release artifact is verified by its SHA-256 in the manifest",
    "node.js 20.04 runs the build in /srv/build",
    "Ann prefers green tea in the morning",
    "the cat sleeps on the warm stove",
]


@pytest.fixture
def ledger(path, clock):
    with Ledger(path, clock=clock) as ledger:
        yield ledger


@pytest.fixture
def filled(memory):
    memory.ids = [memory.observe(text) for text in ROWS]
    return memory


def contents(hits):
    return [hit.content for hit in hits]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SHA-256 manifest", 0),
        ("what runs node.js 20.04?", 1),
        ("green tea", 2),
        ('who sleeps on the "warm stove"', 3),
    ],
)
def test_what_answers_comes_first(filled, query, answer):
    assert filled.search(query, 2, settings=CERTAIN)[0].content == ROWS[answer]


def test_a_hit_is_a_whole_memory(filled):
    [hit] = filled.search("green tea morning Ann prefers in the", 1)
    assert (hit.id, hit.content, hit.layer, hit.memory_type) == (
        filled.ids[2],
        ROWS[2],
        "episodic",
        "narrative",
    )
    assert 0.6 <= hit.score <= 1.0
    assert hit.score == round(hit.score, 4)


def test_nothing_is_returned_that_is_not_sure_enough(filled):
    assert filled.search("quantum chromodynamics") == []
    assert len(filled.search("quantum chromodynamics", settings=CERTAIN)) == len(ROWS)


@pytest.mark.parametrize(
    ("query", "error"),
    [("", InvalidArgument), (" \n", InvalidArgument), ("x" * 4001, InvalidArgument),
     (7, InvalidType), ("\ud800", InvalidArgument)],
)  # fmt: skip
def test_queries_that_are_refused(filled, query, error):
    with pytest.raises(error):
        filled.search(query)


@pytest.mark.parametrize("k", [0, 21, True, 1.0])
def test_numbers_of_results_that_are_refused(filled, k):
    with pytest.raises((InvalidArgument, InvalidType)):
        filled.search("tea", k)


def test_more_results_than_are_possible_are_refused_by_default(filled):
    with pytest.raises(InvalidArgument):
        filled.search("tea", settings=Retrieval(top_k=21))
    assert filled.search("green tea", 2, settings=Retrieval(top_k=21, min_confidence=0.0))


def test_superseded_near_copies_do_not_starve_a_search(memory, ledger):
    for number in range(40):
        ledger.set_status(memory.observe(f"deploy key rotation happens {number}"), "superseded")
    live = memory.observe("deploy key rotation happens every Monday in the vault")
    [hit] = memory.search("deploy key rotation happens", settings=CERTAIN)
    assert hit.id == live
    _, report = memory.search_explained("deploy key rotation happens", settings=CERTAIN)
    outcomes = report["counts"]["outcomes"]
    assert outcomes["returned"] == 1
    assert 0 < outcomes["inactive"] <= 20
    assert report["counts"]["reranked"] == 1


def row_of(report, uid):
    return next(row for row in report["candidates"] if row["memory_id"] == uid)


@pytest.mark.parametrize(
    "way", [lambda x, uid: x.set_status(uid, "superseded"), lambda x, uid: x.invalidate(uid)]
)
def test_what_is_inactive_shows_no_content(filled, ledger, way):
    way(ledger, filled.ids[2])
    hits, report = filled.search_explained("green tea", settings=CERTAIN)
    assert ROWS[2] not in contents(hits)
    row = row_of(report, filled.ids[2])
    assert (row["eligible"], row["outcome"]) == (False, "inactive")
    assert "content" not in row
    assert "green" not in str(report["candidates"])


def test_what_is_quarantined_is_inactive(filled):
    uid = filled.observe("green tea is poison", quarantined=True)
    hits, report = filled.search_explained("green tea is poison", settings=CERTAIN)
    assert uid not in [hit.id for hit in hits]
    assert row_of(report, uid)["outcome"] == "inactive"
    assert "poison" not in str(report["candidates"])


def test_what_is_forgotten_is_not_even_named(filled, ledger):
    ledger.hide(filled.ids[2])
    _, report = filled.search_explained("green tea", settings=CERTAIN)
    assert filled.ids[2] not in str(report)


def test_facts_about_those_who_are_named_are_found(memory):
    memory.observe("an unrelated remark about stoves")
    fact = memory.assert_fact("Ann", "drinks", "green tea")
    old = memory.assert_fact("Ann", "lives in", "Rome")
    memory.forget_fact(old)
    [hit] = [
        hit for hit in memory.search("what does ann drink", settings=CERTAIN) if hit.id[0] == "f"
    ]
    assert (hit.id, hit.content) == (f"fact:{fact}", "Ann drinks green tea")
    assert (hit.layer, hit.memory_type) == ("semantic", "fact")


def test_another_name_of_somebody_is_searched_for_too(memory):
    memory.add_alias("Ann", "Annika")
    memory.observe("Annika moved to Rome")
    _, report = memory.search_explained("where does Ann live", settings=CERTAIN)
    assert report["query"]["expanded_terms"] == ["Annika"]
    assert report["counts"]["bm25"] == 1
    plain = Retrieval(min_confidence=0.0, enable_query_expansion=False)
    _, report = memory.search_explained("where does Ann live", settings=plain)
    assert report["query"]["expanded_terms"] == []
    assert report["query"]["bm25_query"] == "where does Ann live"


def test_those_who_were_extracted_lead_to_their_episodes(open_memory):
    llm = StubLLMAdapter(
        facts=[{"subject": "Ann", "predicate": "likes", "object": "tea", "confidence": 0.9}]
    )
    memory = open_memory(llm=llm)
    uid = memory.observe("somebody had a second cup")
    memory.reflect()
    _, report = memory.search_explained("ANN's habits", settings=CERTAIN)
    assert row_of(report, uid)["ranks"].get("graph")


def dump(path):
    connection = apsw.Connection(str(path))
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    found = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}
    connection.close()
    return found


def test_an_explanation_leaves_no_trace(filled, path):
    filled.search("green tea")
    before = dump(path)
    filled.search_explained("green tea", settings=CERTAIN)
    filled.search_explained("never asked before", settings=CERTAIN)
    filled.close()
    assert dump(path) == before


def test_a_search_counts_as_recall_and_keeps_no_query(filled, path):
    for _ in range(3):
        filled.search("Ann prefers green tea", 1)
    after = dump(path)
    assert len(after["access_log"]) == 3
    assert [row[2] for row in after["recall_log"]] == [None] * 3


def test_an_access_that_cannot_be_recorded_costs_no_answer(filled, path):
    writer = Connection(path)
    with writer.writing():
        assert contents(filled.search("Ann prefers green tea", 1)) == [ROWS[2]]
    writer.close()


def test_an_answer_is_given_again_until_somebody_writes(filled, open_memory, ledger):
    first = filled.search("green tea", settings=CERTAIN)
    assert filled.search("green tea", settings=CERTAIN) == first
    uid = open_memory().observe("green tea again and green tea")
    assert uid in [hit.id for hit in filled.search("green tea", settings=CERTAIN)]
    ledger.invalidate(uid)
    assert filled.search("green tea", settings=CERTAIN) == first


def test_an_agent_searches_its_own(open_memory):
    mine, theirs = open_memory("a"), open_memory("b")
    uid = mine.observe("the green tea of a")
    theirs.observe("the green tea of b")
    assert [hit.id for hit in mine.search("green tea", settings=CERTAIN)] == [uid]
    _, report = mine.search_explained("green tea", settings=CERTAIN)
    assert "of b" not in str(report)


def test_what_ranked_best_before_the_reranker_keeps_a_place(filled):
    for number in range(12):
        filled.observe(f"tea note {number}")
    hits, report = filled.search_explained("green tea note", 3, settings=CERTAIN)
    promoted = [
        row for row in report["candidates"] if row.get("prior_coverage", {}).get("promoted")
    ]
    best = min(report["candidates"], key=lambda row: row["ranks"].get("prior", 99))
    assert best["memory_id"] in report["final_ids"]
    assert all(row["ranks"]["final"] == 3 for row in promoted)
    assert report["final_ids"] == [hit.id for hit in hits]


def test_ranks_and_scores_are_what_was_observed(filled):
    settings = Retrieval(min_confidence=0.0, rerank_candidates=1)
    hits, report = filled.search_explained("green tea in the morning", 1, settings=settings)
    assert report["settings"]["cross_encoder_model"]
    assert report["counts"]["reranked"] == 1
    assert report["counts"]["considered"] == len(report["candidates"])
    for row in report["candidates"]:
        assert (
            row["ranks"].keys() - {"prior", "scored", "before_coverage", "after_coverage", "final"}
            <= row["scores"].keys()
        )
        if row["outcome"] == "outside_rerank_candidates":
            assert "final" not in row["scores"]
            assert "passage" not in row
    [returned] = [row for row in report["candidates"] if row["outcome"] == "returned"]
    assert returned["scores"]["final"] == pytest.approx(hits[0].score, abs=5e-5)


def test_the_first_before_the_reranker_is_the_last_of_those_returned(open_memory, monkeypatch):
    memory = open_memory()
    best = memory.observe("green tea green tea")
    others = [memory.observe(f"green tea and note {number}") for number in range(6)]

    class Contrary(LateInteraction):
        def scores(self, query, texts):
            return np.linspace(0.61, 0.99, len(texts))

    monkeypatch.setattr(
        "engram.engine.reranking.resolve_reranker",
        lambda name, embedder: Contrary(embedder, reason="a test"),
    )
    hits, report = memory.search_explained("green tea", 3)
    assert [hit.id for hit in hits][2] == best
    assert row_of(report, best)["prior_coverage"] == {"promoted": True}
    assert {hit.id for hit in hits[:2]} <= set(others)
    [alone], _ = memory.search_explained("green tea", 1)
    assert alone.id != best


@pytest.mark.parametrize(
    "blob", [b"", b"\0" * 3, b"\0" * 256, np.full(32, np.nan, "<f2").tobytes(),
             np.full(32, np.inf, "<f2").tobytes()],
    ids=["empty", "short", "long", "nan", "infinite"],
)  # fmt: skip
def test_a_damaged_vector_costs_its_own_memory_alone(open_memory, path, blob):
    with open_memory() as memory:
        ids = [memory.observe(text) for text in ROWS]
        memory._store._connection.execute(
            "UPDATE embedding SET vector = ? WHERE episode = 2", (blob,)
        )
    memory = open_memory()
    assert memory.search("green tea", 2, settings=CERTAIN)[0].id == ids[2]
    _, report = memory.search_explained("node.js build", settings=CERTAIN)
    assert report["counts"]["damaged_vectors"] == 1
    assert row_of(report, ids[1])["ranks"].keys() >= {"bm25"}  # its words are still there
    with pytest.raises(CorruptStore):
        memory.recall("green tea")
    assert any("vector" in problem for problem in memory.check())
    memory.forget(ids[1])
    assert memory.recall("green tea", 1)[0].episode.id == ids[2]
    assert memory.check() == []


@pytest.mark.parametrize("wrong", ROW)
def test_a_damaged_row_costs_its_own_memory_alone(open_memory, wrong):
    with open_memory() as memory:
        ids = [memory.observe(text) for text in ROWS]
        damage(memory, ROW[wrong])
    memory = open_memory()
    assert memory.search("green tea", 2, settings=CERTAIN)[0].id == ids[2]
    hits, report = memory.search_explained("node.js build", settings=CERTAIN)
    # Where it came from is not what it says.
    shown = "provenance" in wrong
    assert len(hits) == len(ROWS) - 1 + shown
    assert (ROWS[1] in contents(hits)) == (ids[1] in report["final_ids"]) == shown


def test_a_damaged_importance_is_in_the_middle(open_memory):
    memory = open_memory()
    memory.observe_many([ObserveInput(text) for text in ROWS])
    memory.decay()
    nan = struct.pack("<240d", *[math.nan] * 240).hex()
    damage(memory, f"UPDATE importance SET importances = x'{nan}'")
    by_content = {hit.content: hit for hit in memory.search("tea", settings=CERTAIN)}
    assert by_content[ROWS[1]].importance == 0.5


def test_hidden_mentions_do_not_starve_the_graph(open_memory, ledger):
    llm = StubLLMAdapter(
        facts=[{"subject": "Ann", "predicate": "likes", "object": "tea", "confidence": 0.9}]
    )
    memory = open_memory(llm=llm)
    ids = [memory.observe(f"a cup, the {number}th") for number in range(12)]
    memory.reflect()
    for uid in ids[3:]:
        ledger.hide(uid)
    _, report = memory.search_explained("what about Ann", 3, settings=CERTAIN)
    found = {row["memory_id"] for row in report["candidates"] if "graph" in row["ranks"]}
    assert found & set(ids) <= set(ids[:3])
    assert found & set(ids)


@pytest.mark.parametrize(("name", "alias"), [("Alice", "Al"), ("Robert", "Bert")])
def test_an_alias_that_is_a_part_of_a_word_is_searched_for(memory, name, alias):
    memory.add_alias(name, alias)
    memory.observe("somebody moved to Rome")
    _, report = memory.search_explained(f"where does {name} live", settings=CERTAIN)
    assert report["query"]["expanded_terms"] == [alias]


@pytest.mark.parametrize("asked", ["CAFÉ ROUGE", "café rouge", "Café Rouge"])
def test_names_are_found_in_any_case_of_any_script(memory, asked):
    memory.assert_fact("Café Rouge", "closes at", "ten")
    memory.observe("somebody moved to Rome")
    _, report = memory.search_explained(f"when does {asked} close?", settings=CERTAIN)
    assert report["counts"]["graph"] == 1


def test_kept_answers_have_no_texts_and_go_with_the_day(filled, clock):
    filled.search("green tea", settings=CERTAIN)
    kept = filled._answers._kept
    assert len(kept) == 1
    assert "tea" not in repr(list(kept.values()))
    clock.advance(days=1)
    filled.search("green tea", settings=CERTAIN)
    assert len(kept) == 2
    filled.observe("something else")
    filled.search("green tea", settings=CERTAIN)
    assert len(kept) == 1


def test_names_that_another_agent_gave_are_not_told(open_memory, file):
    """What leads to an entity is per agent, and so is who is told its other names."""

    def mention(memory, uid, **entity):
        document = {
            "memories": [{"id": uid, "content": "a talk"}],
            "entities": [{"id": 1, "name": "Alice", **entity}],
            "entity_mentions": [{"entity_id": 1, "memory_id": uid}],
        }
        file.write_text(json.dumps(document))
        memory.import_memories(file)

    def told(memory):
        _, report = memory.search_explained("what about Alice", 3, settings=CERTAIN)
        return report["query"]["expanded_terms"], report["query"]["bm25_query"]

    anns, bens, everyones = open_memory("ann"), open_memory("ben"), open_memory()
    mention(anns, "m", aliases=["Zorro"])
    bens.observe("something of his own")
    assert told(anns)[0] == told(everyones)[0] == ["Zorro"]
    assert told(bens) == ([], "what about Alice")
    fact = bens.assert_fact("Zorro", "wears", "a mask")
    hits, _ = bens.search_explained("what does Alice wear", 3, settings=CERTAIN)
    assert f"fact:{fact}" in {hit.id for hit in hits}
    mention(bens, "n")
    assert told(bens)[0] == ["Zorro"]
