"""How a hybrid recall ranks: by every method, with every weight, and how sure it is."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder

from engram import AsyncEngram, Blending, Engram, ObserveInput
from engram.errors import InvalidArgument, InvalidType

METHODS = ["complete", "min_max", "reciprocal_rank"]
WORDS = [f"w{n}" for n in range(30)]
START = datetime(2026, 1, 1, tzinfo=UTC)
texts = st.lists(st.sampled_from(WORDS[:8]), min_size=1, max_size=4).map(" ".join)


def filled(count: int, seed: int = 1) -> Engram:
    """A store of random texts, many of them alike, in conversations of four."""
    chance = random.Random(seed)
    memory = Engram(embedder=WordEmbedder(8), clock=Clock())
    memory.observe_many(
        ObserveInput(
            " ".join(chance.choices(WORDS, k=3)) + chance.choice(["", "?"]),
            actors=[chance.choice(["Ana", "Ben", "assistant"])],
            tags=[f"talk {number // 4}"],
            timestamp=START + timedelta(minutes=number),
        )
        for number in range(count)
    )
    return memory


def found(memory: Engram, query: str, k: int, **options: object) -> list[str]:
    return [hit.episode.id for hit in memory.recall(query, k, **options)]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30)
@given(st.lists(texts, max_size=20), texts, st.integers(1, 6))
def test_without_a_weight_of_words_the_order_is_that_of_cosine(method, made, query, k):
    with Engram(embedder=WordEmbedder(4), clock=Clock()) as memory:
        memory.observe_many(ObserveInput(text, actors=["Ana"]) for text in made)
        by_cosine = memory.recall(query, k, mode="cosine")
        hits = memory.recall(query, k, vector_weight=1.0, fts_weight=0.0, blending=method)
        assert [(hit.episode.id, hit.distance) for hit in hits] == [
            (hit.episode.id, hit.distance) for hit in by_cosine
        ]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30)
@given(st.lists(texts, max_size=12), texts, st.sampled_from([(1, 1), (0, 1), (1, 0), (1, 9)]))
def test_a_score_is_within_bounds_and_the_best_has_all(method, made, query, weights):
    with Engram(embedder=WordEmbedder(4), clock=Clock()) as memory:
        memory.observe_many(ObserveInput(text) for text in made)
        hits = memory.recall(
            query, 20, vector_weight=weights[0], fts_weight=weights[1], blending=method
        )
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in scores)
        assert all(0.0 <= hit.confidence <= 1.0 for hit in hits)
        if hits and method == "reciprocal_rank":
            assert scores[0] == 1.0


@pytest.mark.parametrize("method", ["complete", "reciprocal_rank"])
def test_without_a_weight_of_meaning_only_words_find(method):
    with Engram(embedder=WordEmbedder()) as memory:
        told = memory.observe("the ferry leaves at noon")
        memory.observe("a harbour at night")
        hits = memory.recall("ferry", vector_weight=0.0, fts_weight=1.0, blending=method)
        assert [(hit.episode.id, hit.score) for hit in hits] == [(told, 1.0)]
        assert hits[0].certificate.considered == 0
        assert hits[0].distance < 2.0


def test_reciprocal_rank_is_the_sum_of_the_weights_over_the_ranks():
    with Engram(embedder=WordEmbedder(8), clock=Clock()) as memory:
        memory.observe_many(
            ObserveInput(text) for text in ("w1 w2 w3", "w1 w4", "w5 w6", "w2 w7 w8 w9")
        )
        query = "w1 w2"
        by_meaning = found(memory, query, 9, mode="cosine")
        by_words = found(memory, query, 9, vector_weight=0.0, fts_weight=1.0)
        sums = {
            uid: sum(
                weight / (60 + ranking.index(uid) + 1)
                for weight, ranking in ((0.75, by_meaning), (0.25, by_words))
                if uid in ranking
            )
            for uid in by_meaning
        }
        hits = memory.recall(
            query, 9, vector_weight=3.0, fts_weight=1.0, blending="reciprocal_rank"
        )
        best = max(sums.values())
        assert {hit.episode.id: hit.score for hit in hits} == pytest.approx(
            {uid: score / best for uid, score in sums.items()}
        )


def test_what_is_in_no_conversation_ranks_as_if_there_were_none():
    with Engram(embedder=WordEmbedder(8), clock=Clock()) as memory:
        chance = random.Random(2)
        memory.observe_many(ObserveInput(" ".join(chance.choices(WORDS, k=5))) for _ in range(150))
        for query in ("w1 w2 w3", "w9"):
            rankings = [
                memory.recall(query, 40, blending=Blending(conversation=share))
                for share in (0.0, 0.5, 1.0)
            ]
            assert rankings[0] == rankings[1] == rankings[2]


WORDS_ALONE = {"vector_weight": 0.0, "fts_weight": 1.0}


def talk(memory: Engram, tag: str, *turns: tuple[str, str], at: datetime = START) -> list[str]:
    """Remember a conversation, a turn a minute."""
    return memory.observe_many(
        ObserveInput(text, actors=[actor], tags=[tag], timestamp=at + timedelta(minutes=minute))
        for minute, (actor, text) in enumerate(turns)
    )


def test_a_turn_is_worth_what_its_conversation_says(memory):
    talk(memory, "sea", ("Ana", "the ferry is blue"), ("Ana", "many sails"))
    _, fitting = talk(memory, "kos", ("Ana", "Kos is warm"), ("Ana", "the ferry is long"))
    best = {
        share: found(memory, "ferry Kos", 1, **WORDS_ALONE, blending=Blending(conversation=share))
        for share in (0.0, 1.0)
    }
    both = found(memory, "ferry Kos", 2, **WORDS_ALONE, blending=Blending(conversation=1.0))
    assert fitting in both
    assert best[0.0] != [fitting]


def test_an_answer_is_found_by_the_words_of_its_question(memory):
    asked, told, after = talk(
        memory,
        "pets",
        ("Ana", "What is the name of your parrot?"),
        ("Ben", "Kiwi, since Tuesday"),
        ("Ana", "the parrot, how lovely"),
    )
    plain = Blending(answers=0.0)
    query = "name of parrot"
    scores = [
        {hit.episode.id: hit.score for hit in memory.recall(query, 3, blending=blending)}
        for blending in (plain, Blending())
    ]
    assert scores[1][told] > 1.2 * scores[0][told]
    assert scores[1][after] <= scores[0][after]
    assert scores[1][asked] == 1.0


def test_what_people_told_comes_before_what_an_assistant_repeats(memory):
    repeated, told = talk(memory, "tea", ("assistant", "green tea"), ("user", "green tea"))
    assert found(memory, "green tea", 2) == [told, repeated]
    assert found(memory, "green tea", 2, blending=Blending(assistant=1.0)) == [repeated, told]


def test_what_happened_when_the_query_says_comes_first(memory):
    march, may = (
        memory.observe("we went to Kos", timestamp=datetime(2025, month, 9, tzinfo=UTC))
        for month in (3, 5)
    )
    undated = Blending(dates=0.0)
    assert found(memory, "Kos in May 2025", 2) == [may, march]
    assert found(memory, "Kos in May 2025", 2, blending=undated) == [march, may]
    # "Last month" is counted from the time that is asked about.
    asked = {"as_of": datetime(2025, 6, 2, tzinfo=UTC)}
    assert found(memory, "Kos last month", 2, **asked) == [may, march]
    assert found(memory, "Kos last month", 2, vector_weight=1.0, fts_weight=0.0) == [march, may]


def test_a_fact_that_began_when_the_query_says_comes_first(memory):
    for month in (3, 5):
        memory.assert_fact(
            "Ana", "visited", f"Kos {month}", valid_from=datetime(2025, month, 9, tzinfo=UTC)
        )
    (first, *_) = memory.recall_memories("Ana Kos in May 2025", kind="semantic", **WORDS_ALONE)
    assert first.fact.object == "Kos 5"


def test_how_sure_it_is_tells_an_answer_from_a_hopeless_query():
    with Engram(embedder=WordEmbedder(64)) as memory:
        memory.observe("the ferry to Kos leaves at noon")
        memory.observe("the bees are behind the barn")
        good, bad = "when does the ferry to Kos leave", "capital of France"
        (answer, *_), (best, *_) = memory.recall(good), memory.recall(bad)
        assert answer.confidence > best.confidence
        assert memory.recall(good, min_score=answer.confidence) == [answer]
        assert memory.recall(bad, min_score=answer.confidence) == []


@pytest.mark.parametrize("blending", ["min_max", "reciprocal_rank"])
def test_by_other_methods_a_floor_is_one_of_scores(blending):
    with filled(20) as memory:
        scores = [hit.score for hit in memory.recall("w1 w2", 9, blending=blending)]
        kept = memory.recall("w1 w2", 9, blending=blending, min_score=scores[2])
        assert [hit.score for hit in kept] == [one for one in scores if one >= scores[2]]


@pytest.mark.parametrize("mode", ["cosine", "spreading"])
def test_modes_that_look_at_no_words_have_no_confidence_and_ignore_the_blending(mode):
    with filled(20) as memory:
        hits = memory.recall("w1 w2", mode=mode)
        assert {hit.confidence for hit in hits} == {None}
        for method in METHODS:
            assert memory.recall("w1 w2", mode=mode, blending=method) == hits


def test_facts_are_ranked_with_episodes_and_are_as_sure():
    with Engram(embedder=WordEmbedder(64)) as memory:
        memory.observe("the bees are behind the barn", actors=["Ana"])
        memory.assert_fact("ferry", "leaves at", "noon")
        for blending in (*METHODS, Blending(conversation=1.0)):
            hits = memory.recall_memories("ferry leaves", blending=blending)
            assert hits[0].fact.subject == "ferry"
            assert hits[0].score == 1.0
            assert 0.0 < hits[1].confidence < hits[0].confidence < 1.0
        alone = memory.recall_memories("ferry leaves", kind="semantic", min_score=0.3)
        assert [hit.fact.subject for hit in alone] == ["ferry"]


def test_the_async_face_blends_as_well(path):
    async def asked() -> list[list[float]]:
        async with AsyncEngram(path, embedder=WordEmbedder(8), clock=Clock()) as memory:
            await memory.observe_many(ObserveInput(f"w1 w{n}") for n in range(9))
            hits = [await memory.recall("w1 w3 w4", blending=method) for method in METHODS]
        return [[hit.score for hit in one] for one in hits]

    scores = asyncio.run(asked())
    with Engram(path, embedder=WordEmbedder(8)) as memory:
        hits = [memory.recall("w1 w3 w4", blending=method) for method in METHODS]
        assert [[hit.score for hit in one] for one in hits] == scores
    assert scores[0] != scores[1] != scores[2]


@pytest.mark.parametrize(
    ("blending", "error"),
    [
        ("best", InvalidArgument),
        (None, InvalidType),
        (0.5, InvalidType),
        (["complete"], InvalidType),
    ],
)
def test_what_is_no_blending_is_refused(memory, blending, error):
    for recall in (memory.recall, memory.recall_memories):
        with pytest.raises(error, match="blending must be"):
            recall("tea", blending=blending)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"method": "best"}, InvalidArgument),
        ({"method": None}, InvalidType),
        ({"method": 1}, InvalidType),
        ({"method": []}, InvalidType),
        ({"method": np.array(["complete", "min_max"])}, InvalidType),
        ({"rerank": "model"}, InvalidArgument),
        ({"rerank": 1}, InvalidType),
        ({"rerank": np.array(["cross_encoder"])}, InvalidType),
        ({"conversation": 1.1}, InvalidArgument),
        ({"answers": -0.1}, InvalidArgument),
        ({"assistant": float("nan")}, InvalidArgument),
        ({"dates": "much"}, InvalidType),
        ({"diversity": True}, InvalidType),
        ({"rerank_top": 0}, InvalidArgument),
        ({"rerank_top": 2.5}, InvalidType),
    ],
)
def test_options_that_give_no_ranking_are_refused(options, error):
    with pytest.raises(error, match=next(iter(options))):
        Blending(**options)


def test_a_name_is_a_method_with_its_defaults():
    for method in METHODS:
        assert Blending.of(method) == replace(Blending(), method=method)
    with filled(30) as memory:
        assert memory.recall("w1 w2") == memory.recall("w1 w2", blending=Blending())
