"""What holds of every hybrid recall: what others write, `k` or a floor changes, and what not."""

from __future__ import annotations

import random
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder

from engram import Blending, Engram, Ledger, ObserveInput

WORDS = [f"w{n}" for n in range(12)]
START = datetime(2026, 1, 1, tzinfo=UTC)
FIXED = ["complete", "reciprocal_rank"]
"""Methods whose scores do not depend on how many results are asked for."""

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


def store(path: str | Path = ":memory:", agent: str | None = None) -> Engram:
    return Engram(path, embedder=WordEmbedder(16), clock=Clock(), agent_id=agent)


def filled(count: int, seed: int = 1) -> Engram:
    """A store of many texts that are alike, in conversations of eight, and some facts."""
    chance = random.Random(seed)
    memory = store()
    memory.observe_many(
        ObserveInput(
            " ".join(chance.choices(WORDS, k=4)) + chance.choice(["", "?"]),
            actors=[chance.choice(["Ana", "Ben", "assistant"])],
            tags=[f"talk {number // 8}"],
            timestamp=START + timedelta(minutes=number),
        )
        for number in range(count)
    )
    for number in range(count // 10):
        memory.assert_fact(chance.choice(WORDS), "is like", f"{chance.choice(WORDS)} {number}")
    return memory


def confidences(memory: Engram, query: str, **filters: object) -> dict[str, float]:
    return {hit.episode.content: hit.confidence for hit in memory.recall(query, 64, **filters)}


@settings(max_examples=20)
@given(st.sets(texts, min_size=1, max_size=12), texts, st.lists(texts, max_size=40), st.data())
def test_how_sure_an_answer_is_does_not_depend_on_what_others_wrote(made, query, flood, data):
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder) / "memory.engram"
        mine = stack.enter_context(store(path, "ana"))
        mine.observe_many(ObserveInput(text, actors=["Ana"]) for text in sorted(made))
        trusted = {"exclude_quarantined": True}
        alone = confidences(mine, query)
        floor = data.draw(st.sampled_from(sorted(alone.values())))
        passed = {text for text, sure in alone.items() if sure >= floor}
        other = stack.enter_context(store(path, "ben"))
        other.observe_many(ObserveInput(text, actors=["Ana"]) for text in flood)
        assert confidences(mine, query) == alone
        mine.observe_many(ObserveInput(f"{text} flood", quarantined=True) for text in flood)
        assert confidences(mine, query, **trusted) == alone
        assert set(confidences(mine, query, min_score=floor, **trusted)) == passed
        among = confidences(mine, query)
        assert {text: among[text] for text in set(alone) & set(among)}.items() <= alone.items()


def test_a_word_counts_as_much_for_the_confidence_however_rare_it_is():
    with store() as memory:
        memory.observe_many(ObserveInput(f"ferry number{n}") for n in range(40))
        query = "ferry harbour"
        memory.observe("harbour")
        sure = confidences(memory, query, vector_weight=0.0, fts_weight=1.0)
        assert set(sure) >= {"harbour", "ferry number1"}
        only = Engram(embedder=Level(), clock=Clock())
        only.observe_many(ObserveInput(text) for text in sure)
        assert len(set(confidences(only, query).values())) == 1


class Level(WordEmbedder):
    """Every text has the same meaning."""

    def vector(self, text: str):
        return super().vector("the same")


@pytest.mark.parametrize("query", ["", "  \n"])
def test_nothing_answers_a_blank_query(memory, query):
    memory.observe("tea at noon")
    memory.assert_fact("tea", "is at", "noon")
    assert {hit.confidence for hit in memory.recall_memories(query)} == {0.0}
    assert memory.recall_memories(query, min_score=0.001) == []


@pytest.mark.parametrize("facts", [False, True])
@pytest.mark.parametrize("why", ["actor", "time", "hidden"])
def test_a_question_that_may_not_be_found_says_nothing_of_its_answer(path, why, facts):
    with store(path, "ana") as memory:
        asked, told = memory.observe_many(
            ObserveInput(text, actors=[actor], timestamp=START + timedelta(minutes=minute))
            for minute, (actor, text) in enumerate([("Ana", "Which parrot?"), ("Ben", "Kiwi")])
        )
        other = memory.observe("Kiwi", actors=["Ben"], timestamp=START + timedelta(days=9))
        recall = memory.recall_memories if facts else memory.recall
        spoken, silent = (
            {hit.episode.id: hit.score for hit in recall("parrot Kiwi", blending=blending)}
            for blending in (Blending(), Blending(answers=0.0))
        )
        assert spoken[told] - spoken[other] > silent[told] - silent[other]
        filters = {}
        if why == "actor":
            filters = {"actors": ["Ben"]}
        elif why == "time":
            filters = {"since": START + timedelta(seconds=1)}
        else:
            with Ledger(path) as ledger:
                ledger.hide(asked)
        assert len(recall("parrot Kiwi", **filters)) == 2
        silent = recall("parrot Kiwi", blending=Blending(answers=0.0), **filters)
        assert recall("parrot Kiwi", **filters) == silent


@pytest.mark.parametrize("method", FIXED)
@settings(max_examples=10)
@given(texts, st.integers(1, 64), st.integers(1, 64), st.integers(0, 5))
def test_an_answer_does_not_depend_on_how_many_are_asked_for(method, query, one, other, seed):
    short, long = sorted((one, other))
    ways = [
        {},
        {"vector_weight": 1.0, "fts_weight": 0.0},
        {"vector_weight": 0.0, "fts_weight": 1.0},
        {"min_score": 0.5},
        {"vector_weight": 1.0, "fts_weight": 0.0, "min_score": 0.5},
    ]
    with filled(200, seed) as memory:
        for options in ways:
            for recall in (memory.recall, memory.recall_memories):
                longest = recall(query, long, blending=method, **options)
                assert recall(query, short, blending=method, **options) == longest[:short]


@settings(max_examples=10)
@given(texts, st.integers(1, 20), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_floor_takes_no_place_from_what_is_above_it(query, k, floor, seed):
    with filled(200, seed) as memory:
        everything = memory.recall(query, 64)
        passed = [hit for hit in everything if hit.confidence >= floor]
        assert memory.recall(query, k, min_score=floor)[: len(passed)] == passed[:k]
        again = Blending(rerank="late_interaction", rerank_top=7, rerank_weight=0.0)
        for options in ({}, {"min_score": floor}):
            plain = memory.recall(query, k, **options)
            assert memory.recall(query, k, blending=again, **options) == plain


@settings(max_examples=15)
@given(st.integers(5, 40), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_equal_memories_have_equal_scores_and_stand_in_insertion_order(count, asked, seed):
    chance, words = random.Random(seed), [f"word{number}" for number in range(60)]
    text = " ".join(word for word in words[:asked] for _ in range(chance.randrange(1, 4)))
    with store() as memory:
        memory.observe_many(
            ObserveInput(f"{word} pad{number}")
            for word in words
            for number in range(chance.randrange(1, 4))
        )
        equal = memory.observe_many(
            ObserveInput(text, actors=["Ana"], tags=[f"talk {number}"], timestamp=START)
            for number in range(count)
        )
        hits = memory.recall(" ".join(words), 400)
        hits = [hit for hit in hits if hit.episode.content == text]
        assert [hit.episode.id for hit in hits] == equal
        assert len({(hit.score, hit.confidence) for hit in hits}) == 1
