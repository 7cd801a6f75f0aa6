"""Weights of chosen memories by their words are what ranking by words gives them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.index import FACT, match_memories, weigh_memories
from engram.storage import EpisodeFilter, FactFilter

pytestmark = pytest.mark.usefixtures("small_segments")
WORDS = ["piano", "pianos", "budget", "on-call", "the", "week", "weekly", "東京", "x"]


def words_of(memory: Engram, query: str) -> tuple[np.ndarray, np.ndarray]:
    index = memory._current_index()
    index.refresh()
    return index.match(query, EpisodeFilter(), 999)


def test_what_is_not_here_weighs_nothing(memory: Engram) -> None:
    ids = memory.observe_many([ObserveInput("piano"), ObserveInput("budget piano")])
    memory.observe_many([ObserveInput("other words")] * 120)
    memory.forget(ids[0])
    with memory._store.reading():
        words_of(memory, "piano")
        weights = memory._index.weigh(["piano", "budget"], np.array([999, 2, 1, 3]))
    assert weights.frequencies.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]
    assert weights.frequencies.dtype == np.float32
    assert weights.lengths.tolist() == [0, 2, 0, 2]
    assert (weights.scores() > 0).tolist() == [False, True, False, False]
    assert weights.rarity.shape == (2,)
    assert weights.average == 2.0


def test_nothing_weighs_nothing(memory: Engram) -> None:
    memory.observe("piano")
    with memory._store.reading():
        words_of(memory, "piano")
        assert memory._index.weigh([], np.array([1])).scores().tolist() == [0.0]
        none = memory._index.weigh(["piano"], np.empty(0, np.int64))
    assert (none.frequencies.shape, none.scores().shape) == ((0, 1), (0,))


@pytest.mark.parametrize("episodes", [True, False])
def test_facts_weigh_what_their_ranking_gives(memory: Engram, episodes: bool) -> None:
    chance = random.Random(4)

    def some(most: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, most)))

    ids = memory.observe_many(ObserveInput(some(7)) for _ in range(150))
    uids = [memory.assert_fact(some(1), some(2), some(4)) for _ in range(60)]
    memory.recall_memories("piano")
    for uid in uids[::7]:
        memory.forget_fact(uid)
    memory.forget(ids[0])
    for query in ("the weekly piano", "on-call budgets x 東京", "the", ""):
        memory.recall_memories(query or "x")
        with memory._store.reading():
            words_of(memory, "piano")
            facts = memory._fact_index
            facts.refresh()
            index = memory._index if episodes else None
            chosen = facts.choose(FactFilter(agent=None, open=False), 2**62).parts
            shown = memory._index.select(EpisodeFilter()) if episodes else []
            keys, scores = match_memories(index, facts, query, shown, chosen, 999)
            shuffled = np.random.default_rng(1).permutation(len(keys))
            weights = weigh_memories(index, facts, list(facts.text.words_of(query)), keys[shuffled])
        assert weights.scores().tobytes() == scores[shuffled].tobytes()
        assert (query == "") == (len(keys) == 0)
        assert not query or (keys >= FACT).any()
        assert (keys < FACT).any() == (episodes and query != "")


def test_every_word_of_a_beginner_counts(open_memory) -> None:
    """The first memory of a store is ranked as any other."""
    memory = open_memory(embedder=WordEmbedder(8))
    memory.observe("paintings")
    with memory._store.reading():
        keys, scores = words_of(memory, "painted")
        assert keys.tolist() == [1]
        assert memory._index.weigh(["paint"], keys).scores().tolist() == scores.tolist()
