"""Facts that have no vector yet: how many a recall embeds, and how the others are found."""

from __future__ import annotations

import pytest
from stand_ins import WordEmbedder

from engram import Engram, StubLLMAdapter
from engram.engine import recalling
from engram.errors import Busy, InvalidType

MODES = ["hybrid", "cosine", "spreading"]


@pytest.fixture
def few(monkeypatch) -> None:
    """Ten facts are many, and three are written together."""
    monkeypatch.setattr(recalling, "_AT_ONCE", 10)
    monkeypatch.setattr(recalling, "_WRITTEN", 3)


def embedded(memory: Engram) -> list[int]:
    with memory._store.reading():
        rows = memory._store._connection.execute("SELECT fact FROM fact_embedding ORDER BY fact")
        return [key for (key,) in rows]


def state(memory: Engram, number: int) -> list[str]:
    return [memory.assert_fact("thing", "is", f"number{one}") for one in range(number)]


def test_a_recall_embeds_so_many_the_newest_first_and_the_next_goes_on(memory, few):
    ids = state(memory, 25)
    for begin in (16, 6, 1, 1):
        # The oldest is found as well, by its words.
        [best] = memory.recall_memories("number0", 1)
        assert best.fact.id == ids[0]
        assert embedded(memory) == list(range(begin, 26))
    assert memory.check() == []


@pytest.mark.parametrize("mode", MODES)
def test_what_a_recall_embedded_it_finds(memory, few, mode):
    ids = state(memory, 12)
    [best] = memory.recall_memories("thing is number11", 1, mode=mode)
    assert best.fact.id == ids[11]
    assert best.distance == 0.0
    assert len(memory.recall_memories("thing", 30, mode="cosine")) == 12


def test_maintain_embeds_all_that_hold(open_memory, few):
    bob, ann = open_memory("bob"), open_memory("ann")
    bob.assert_fact("b", "is", "secret", shared=False)
    state(ann, 25)
    ann.maintain()
    assert embedded(ann) == list(range(2, 27))
    open_memory().maintain()
    assert embedded(ann) == list(range(1, 27))
    assert len(ann.recall_memories("thing", 50, kind="semantic", mode="cosine")) == 25


def test_maintain_says_when_a_fact_cannot_be_embedded(open_memory, few):
    memory = open_memory(busy_timeout=0.0)
    state(memory, 5)
    with open_memory()._store.writing(), pytest.raises(Busy):
        memory.maintain()
    memory.maintain()
    assert len(embedded(memory)) == 5
    with Engram(embedder=Refusing()) as refusing:
        state(refusing, 1)
        refusing.compact()
        with pytest.raises(InvalidType):
            refusing.maintain()


class Refusing(WordEmbedder):
    def embed(self, texts):
        return None


@pytest.mark.parametrize("mode", MODES)
def test_every_result_says_how_the_recall_was_answered(open_memory, mode):
    fact = {"subject": "Ann", "predicate": "likes", "object": "tea"}
    memory = open_memory(llm=StubLLMAdapter([fact]))
    for text in ("Ann drinks tea", "nothing"):
        memory.observe(text)
    memory.reflect()
    [certificate] = {r.certificate for r in memory.recall_memories("tea", 9, mode=mode)}
    assert (certificate.strategy, certificate.exact) == ("scan", True)
    assert (certificate.matching, certificate.considered) == (3, 3)
    assert certificate.reason.startswith("2 of 2 episodes match: ")
    assert "; 1 of 1 facts match: " in certificate.reason
    [only] = memory.recall_memories("tea", 9, mode=mode, kind="semantic", accuracy="exact")
    assert (only.certificate.accuracy, only.certificate.matching) == ("exact", 1)
    assert only.certificate.reason.startswith("1 of 1 facts match: ")


def test_where_nothing_is_embedded_words_are_said_to_have_answered(open_memory, monkeypatch):
    monkeypatch.setattr(recalling, "_PATIENCE", 0.0)
    memory = open_memory()
    state(memory, 2)
    with open_memory()._store.writing():
        found = memory.recall_memories("number1", 1)
    assert found[0].certificate.reason == "2 memories match: none of them is embedded yet"
