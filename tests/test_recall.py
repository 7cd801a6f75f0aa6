"""Recall: what comes back, in which order, under which filters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_twin import PlainMemory, Row, same_ranking
from stand_ins import Clock, WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import InvalidArgument, InvalidType, NotFound

WORDS = ["tea", "coffee", "berlin", "paris", "alice", "bob", "roadmap", "piano", "cat", "lunch"]
START = datetime(2026, 1, 1, tzinfo=UTC)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
times = st.integers(0, 6).map(lambda day: START + timedelta(days=day))
subsets = st.lists(st.sampled_from(["red", "blue"]), max_size=2, unique=True).map(tuple)
provenances = st.sampled_from(["user", "tool", "external"])
agents = st.sampled_from([None, "a", "a-b"])
rows = st.lists(
    st.tuples(texts, agents, times, subsets, subsets, provenances, st.booleans()), max_size=25
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "tags": subsets,
        "actors": subsets,
        "since": times,
        "until": times,
        "provenance": provenances,
        "exclude_quarantined": st.booleans(),
    },
)


def fill(made: list[tuple[Any, ...]], agent: str | None) -> tuple[Engram, PlainMemory]:
    """Write the same rows to a store of all agents, open to one of them, and to its twin."""
    memory, twin = Engram(agent_id=agent, embedder=WordEmbedder(), clock=Clock()), PlainMemory()
    for content, writer, at, tags, actors, provenance, quarantined in made:
        memory._agent = writer
        uid = memory.observe(
            content,
            tags=tags,
            actors=actors,
            timestamp=at,
            provenance=provenance,
            quarantined=quarantined,
        )
        twin.rows.append(Row(uid, content, writer, at, tags, actors, provenance, quarantined))
    memory._agent = agent
    return memory, twin


@settings(max_examples=150)
@given(rows, agents, texts, st.integers(1, 8), filters)
def test_cosine_is_brute_force_over_what_the_filters_allow(made, agent, query, k, allowed):
    memory, twin = fill(made, agent)
    expected = twin.cosine(query, k, twin.matching(agent, **allowed))
    with memory:
        found = memory.recall(query, k, mode="cosine", **allowed)
        assert same_ranking(found, expected)
        assert memory.count(**allowed) == len(twin.matching(agent, **allowed))


@settings(max_examples=150)
@given(
    rows,
    agents,
    texts,
    st.integers(1, 8),
    filters,
    st.sampled_from([(0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (2.0, 3.0)]),
)
def test_min_max_is_the_documented_blend(made, agent, query, k, allowed, weights):
    memory, twin = fill(made, agent)
    expected = twin.hybrid(query, k, twin.matching(agent, **allowed), weights)
    with memory:
        found = memory.recall(
            query,
            k,
            vector_weight=weights[0],
            fts_weight=weights[1],
            blending="min_max",
            **allowed,
        )
        assert same_ranking(found, expected)
        assert len({r.episode.id for r in found}) == len(found)
        by_id = {row.id: row for row in twin.rows}
        for result in found:
            assert result.distance == pytest.approx(
                twin.distance(query, by_id[result.episode.id]), abs=1e-6
            )
            assert 0.0 <= result.score <= 1.0


def test_a_text_is_at_distance_zero_from_itself(memory):
    memory.observe("the cat sat on the mat")
    (hit,) = memory.recall("the cat sat on the mat", mode="cosine")
    assert (hit.distance, hit.score) == (0.0, 1.0)


def test_equal_scores_come_back_in_insertion_order_every_time(memory):
    ids = [memory.observe("same words") for _ in range(9)]
    for mode in ("hybrid", "cosine"):
        found = [r.episode.id for r in memory.recall("same words", 6, mode=mode)]
        assert found == ids[:6]


def test_as_of_is_inclusive_and_by_event_time_in_every_mode(memory):
    past = memory.observe("berlin trip", timestamp=START)
    memory.observe("berlin trip", timestamp=START + timedelta(microseconds=1))
    for mode in ("hybrid", "cosine"):
        assert [r.episode.id for r in memory.recall("berlin", mode=mode, as_of=START)] == [past]
        assert memory.recall("berlin", mode=mode, as_of=START - timedelta(microseconds=1)) == []
    naive = START.replace(tzinfo=None)
    assert len(memory.recall("berlin", as_of=naive)) == 1


def test_a_small_pool_never_costs_answers(memory):
    for number in range(10):
        memory.observe(f"note {number}")
    assert len(memory.recall("note", 8, candidate_limit=1)) == 8


def test_min_score_cuts_the_tail(memory):
    memory.observe("bob likes tea")
    memory.observe("carol plays piano")
    scores = [r.score for r in memory.recall("bob likes tea", mode="cosine")]
    kept = memory.recall("bob likes tea", mode="cosine", min_score=scores[0])
    assert [r.score for r in kept] == scores[:1]
    assert memory.recall("bob likes tea", mode="cosine", min_score=1.5) == []


def test_an_empty_store_answers_without_a_model():
    with Engram() as memory:
        assert memory.recall("anything") == []


@pytest.mark.parametrize(
    "query",
    ["", " \n\t", "\0", "a\0b", '"', '""', "*", "NEAR(", "NEAR(a b, 3)", "^x", "AND", "OR NOT",
     "a AND", "(", "-", "col:x", "{a b}:c", "a::b", "GB/s", "20.04", "multi-agent", "don't",
     "😀", "\ud83d", "日本語 text", "é" * 1000, "x " * 5000, "'; DROP TABLE episode; --"],
)  # fmt: skip
def test_any_text_is_a_query(memory, query):
    memory.observe("don't mount the multi-agent GB/s disk on ubuntu 20.04 a::b a b x")
    for mode in ("hybrid", "cosine"):
        assert len(memory.recall(query, mode=mode)) == 1


@settings(max_examples=200)
@given(st.text())
def test_any_unicode_text_is_remembered_and_found_by_itself(text):
    with Engram(embedder=WordEmbedder(), clock=Clock()) as memory:
        uid = memory.observe(text)
        assert memory.get(uid).content == text
        assert [r.episode.id for r in memory.recall(text)] == [uid]
        memory.forget(uid)
        assert memory.recall(text) == []
        assert memory.check() == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": 3}, InvalidType),
        ({"query": None}, InvalidType),
        ({"query": "x", "k": 0}, InvalidArgument),
        ({"query": "x", "k": -1}, InvalidArgument),
        ({"query": "x", "k": 4097}, InvalidArgument),
        ({"query": "x", "k": 1.0}, InvalidType),
        ({"query": "x", "k": True}, InvalidType),
        ({"query": "x", "mode": "semantic"}, InvalidArgument),
        ({"query": "x", "mode": None}, InvalidArgument),
        ({"query": "x", "vector_weight": float("nan")}, InvalidArgument),
        ({"query": "x", "vector_weight": -0.1}, InvalidArgument),
        ({"query": "x", "vector_weight": 0, "fts_weight": 0}, InvalidArgument),
        ({"query": "x", "fts_weight": "1"}, InvalidType),
        ({"query": "x", "candidate_limit": 0}, InvalidArgument),
        ({"query": "x", "candidate_limit": -1}, InvalidArgument),
        ({"query": "x", "min_score": float("inf")}, InvalidArgument),
        ({"query": "x", "as_of": "2026-01-01"}, InvalidType),
        ({"query": "x", "cross_agent": 1}, InvalidType),
        ({"query": "x", "tags": "red"}, InvalidType),
        ({"query": "x", "actors": [1]}, InvalidType),
        ({"query": "x", "since": 5}, InvalidType),
        ({"query": "x", "provenance": "friend"}, InvalidArgument),
        ({"query": "x", "exclude_quarantined": "no"}, InvalidType),
        ({"query": "x", "tag": ["red"]}, InvalidType),
    ],
)
def test_bad_arguments_are_refused(memory, arguments, error):
    memory.observe("something")
    with pytest.raises(error) as refused:
        memory.recall(**arguments)
    assert isinstance(refused.value, (ValueError, TypeError))


def test_k_inner_is_ignored_with_a_warning(memory):
    memory.observe("something")
    with pytest.warns(DeprecationWarning, match="k_inner"):
        assert len(memory.recall("something", k_inner=3)) == 1


def test_many_results_come_whole(memory):
    ids = memory.observe_many([ObserveInput(f"note {n % 7}") for n in range(5000)])
    found = memory.recall("note 3", 4096)
    assert len({r.episode.id for r in found} & set(ids)) == 4096


def test_accesses_count_recalls_that_are_not_in_the_file_yet(open_memory, clock):
    a, everyone = open_memory("a"), open_memory()
    uid = a.observe("bees hum")
    assert a.accesses(uid) == (0, None)
    for _ in range(3):
        clock.advance(hours=1)
        assert a.recall("bees")
    assert a.accesses(uid) == (3, clock.now)
    clock.advance(hours=1)
    assert everyone.recall("bees")
    # An agent's own recalls count for it, everybody's otherwise.
    assert a.accesses(uid)[0] == 3
    assert everyone.accesses(uid) == (4, clock.now)
    for reader, gone in ((open_memory("b"), uid), (a, "nothing")):
        with pytest.raises(NotFound):
            reader.accesses(gone)
