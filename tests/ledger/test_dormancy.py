"""Dormant recall: what a search leaves of it."""

from __future__ import annotations

import logging
from dataclasses import asdict

import numpy as np
import pytest
from dormant import SHADOW, TEA, Reranker, changed, search
from hypothesis import given, settings
from hypothesis import strategies as st
from small_segments import LIMITS
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.config import DormantRecall
from engram.errors import InvalidArgument
from engram.ledger import Ledger
from engram.retrieval import dormancy
from engram.retrieval.dormancy import terms_of


class AllTheSame(WordEmbedder):
    """To it all texts mean the same."""

    def vector(self, text):
        return super().vector("")


@pytest.fixture
def ledger(path, clock):
    with Ledger(path, clock=clock) as ledger:
        yield ledger


# What a search leaves


def test_a_search_leaves_what_it_might_have_shown(memory, ledger, tea, clock):
    search(memory, TEA, reranker=Reranker(3.5))
    [event] = ledger.review_dormant()
    assert asdict(event) == {
        "id": event.id,
        "sequence": 1,
        "created_at": clock.now.timestamp(),
        "memory_id": tea,
        "outcome": "candidate",
        "candidate_count": 1,
        "relevance": pytest.approx(1.0),
        "bonus": pytest.approx(0.05 * 31 / 120),
        "dormant_days": pytest.approx(31.0),
        "overlap_count": 3,
        "query_term_count": 3,
        "shown_at": None,
        "feedback": None,
        "feedback_at": None,
        "rerank_score": 3.5,
        "algorithm": "current-db-relevance-v2",
    }


@pytest.mark.parametrize(
    ("query", "answered", "reranker", "settings", "count"),
    [
        ("of the a", False, Reranker(), SHADOW, 0),  # stop words alone
        ("?!", False, Reranker(), SHADOW, 0),
        ("entirely other matters", False, Reranker(), SHADOW, 1),
        (TEA, True, Reranker(), SHADOW, 1),
        (TEA, False, Reranker(0.59), SHADOW, 1),
        (TEA, False, Reranker(0.64, output="normalized_score"), SHADOW, 1),
        (TEA, False, Reranker(float("nan")), SHADOW, 1),
        (TEA, False, Reranker(), changed(dormancy_days=32), 0),
    ],
)
def test_a_search_that_might_have_shown_nothing_says_so(
    memory, ledger, tea, query, answered, reranker, settings, count
):
    search(memory, query, settings, answered=[tea] if answered else [], reranker=reranker)
    [event] = ledger.review_dormant()
    assert (event.outcome, event.candidate_count) == ("none", count)
    unknown = {"memory_id", "relevance", "bonus", "dormant_days", "overlap_count", "rerank_score"}
    assert {asdict(event)[name] for name in unknown | {"query_term_count"}} == {None}
    with pytest.raises(InvalidArgument):
        ledger.inspect_dormant(event.id)
    with pytest.raises(InvalidArgument):
        ledger.judge_dormant(event.id, "useful")


def test_an_empty_store_leaves_an_event_too(memory, ledger):
    search(memory, TEA)
    assert [event.outcome for event in ledger.review_dormant()] == ["none"]


def test_the_threshold_is_a_logit_whatever_the_reranker_gives(memory, ledger, tea):
    # The default, 0.6, means a probability of 0.6457.
    search(memory, TEA, reranker=Reranker(0.65, output="normalized_score"))
    assert ledger.review_dormant()[0].outcome == "candidate"


def test_nothing_is_left_while_it_is_off(memory, ledger, tea):
    search(memory, TEA, DormantRecall())
    assert ledger.review_dormant() == []


def test_what_was_recalled_lately_is_not_dormant(memory, ledger, tea, clock):
    memory.recall(TEA)
    memory._store.flush()
    clock.advance(days=29)
    search(memory, TEA)
    assert ledger.review_dormant()[0].candidate_count == 0
    clock.advance(days=1)
    search(memory, TEA)
    [event, _] = ledger.review_dormant()
    assert (event.memory_id, event.dormant_days) == (tea, pytest.approx(30.0))


def test_folded_accesses_count_as_those_in_the_log(memory, ledger, tea, clock):
    memory.recall(TEA)
    memory._store.flush()
    with memory._store.writing():
        memory._store.strength.fold(0, 10)
    clock.advance(days=29)
    search(memory, TEA)
    assert ledger.review_dormant()[0].candidate_count == 0


def test_of_equals_the_first_id_is_chosen_and_then_the_other(memory, ledger, clock):
    ids = sorted(memory.observe(TEA) for _ in range(2))
    clock.advance(days=40)
    for _ in range(3):
        search(memory, TEA)
    found = [event.memory_id for event in ledger.review_dormant()]
    assert found == [None, ids[1], ids[0]]


def test_a_longer_rest_outweighs_a_little_relevance(memory, ledger, clock):
    old = memory.observe(f"{TEA} once more again at last then")
    clock.advance(days=200)
    new = memory.observe(f"{TEA} once more again at last")
    clock.advance(days=31)
    query = f"{TEA} once more again at last"
    search(memory, query, changed(max_bonus=0.0))
    assert ledger.review_dormant()[0].memory_id == new
    search(memory, query, changed(max_bonus=0.1))
    assert ledger.review_dormant()[0].memory_id == old
    with memory._store.writing():
        keys = np.array([memory._store.episodes.key(old, None)], dtype=np.int64)
        memory._store.strength.importance.set(keys, np.array([0.0]))
    clock.advance(days=40)
    search(memory, query, changed(max_bonus=0.1))
    assert ledger.review_dormant()[0].memory_id == new


def test_only_the_first_few_are_reranked(memory, ledger, clock):
    for word in "abcdef":
        memory.observe(f"{TEA} once more again at last {word}")
    clock.advance(days=31)
    reranker = Reranker()
    query = f"{TEA} once more again at last"
    search(memory, query, changed(rerank_candidates=2, candidate_limit=4), reranker=reranker)
    [[*texts]] = reranker.asked
    assert len(texts) == 2
    assert ledger.review_dormant()[0].candidate_count == 4


@pytest.fixture(params=["tail", "segments"])
def parts(request, monkeypatch):
    """Whether the store's episodes are in the tail of the index or in segments of it."""
    for module, name, value in LIMITS if request.param == "segments" else []:
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("few", [0, 1000], ids=["many", "few"])
@pytest.mark.parametrize(("min_relevance", "far"), [(0.5, False), (0.95, True)])
def test_memories_in_use_do_not_crowd_out_the_dormant(
    memory, ledger, clock, monkeypatch, few, min_relevance, far
):
    monkeypatch.setattr(dormancy, "_FEW", few)
    dormant = memory.observe(f"{TEA} long ago")
    for number in range(10):
        memory.observe(f"other {number}")
    clock.advance(days=31)
    for number in range(60):
        memory.observe(f"{TEA} x{number}" if far else TEA)
    search(memory, TEA, changed(candidate_limit=5, min_relevance=min_relevance))
    [event] = ledger.review_dormant()
    assert (event.memory_id, event.candidate_count) == (None if far else dormant, 5)


def test_hidden_inactive_invalidated_and_quarantined_memories_are_left_out(memory, ledger, clock):
    ways = [ledger.hide, ledger.invalidate, lambda uid: ledger.set_status(uid, "superseded")]
    for change in ways:
        change(memory.observe(TEA))
    memory.observe(TEA, quarantined=True)
    clock.advance(days=31)
    search(memory, TEA)
    assert [(one.outcome, one.candidate_count) for one in ledger.review_dormant()] == [("none", 0)]


def test_what_was_hidden_while_the_model_read_it_is_not_chosen(memory, ledger, tea):
    class Slow(Reranker):
        def scores(self, query, texts):
            ledger.hide(tea)
            return super().scores(query, texts)

    search(memory, TEA, reranker=Slow())
    assert [one.outcome for one in ledger.review_dormant()] == ["none"]


@pytest.mark.parametrize(
    ("query", "text", "terms", "overlap"),
    [
        ("お茶会はどこですか", "京都のお茶会", 8, 2),
        ("где чайная церемония", "Чайная церемония в Киото", 3, 2),
        ("चाय समारोह कहाँ", "क्योतो में चाय समारोह", 3, 2),
        ("τελετή τσαγιού", "ΤΕΛΕΤΉ ΤΣΑΓΙΟΎ στο Κιότο", 2, 2),
        ("SHA-256 of foo_bar.py", "sha 256 foo_bar", 3, 3),
    ],
)
def test_words_of_any_script_are_terms(open_memory, ledger, clock, query, text, terms, overlap):
    memory = open_memory(embedder=AllTheSame())
    memory.observe(text)
    clock.advance(days=31)
    search(memory, query)
    [event] = ledger.review_dormant()
    assert (event.query_term_count, event.overlap_count) == (terms, overlap)


def test_non_latin_queries_find_something(memory, ledger, clock):
    uid = memory.observe("京都のお茶会")
    clock.advance(days=31)
    search(memory, "京都のお茶会")
    [event] = ledger.review_dormant()
    assert event.memory_id == uid
    assert event.overlap_count == event.query_term_count > 0


@pytest.mark.parametrize("query", ["the of", "", "a b c", "--", "no, it is"])
def test_some_queries_have_no_terms(query):
    assert terms_of(query) == []


def test_a_query_has_each_term_once():
    assert terms_of("Tea, tea and TEA by pytest foo_bar") == ["tea", "pytest", "foo_bar"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@settings(max_examples=200)
def test_a_text_has_all_terms_of_itself(text):
    with Engram(":memory:", embedder=AllTheSame(), clock=Clock()) as memory:
        memory.observe(text)
        memory._clock.advance(days=31)
        search(memory, text)
        with memory._store.reading():
            [event] = memory._store.dormancy.events(SHADOW, memory._now(), 1)
    assert event.overlap_count == event.query_term_count
    assert event.outcome == ("candidate" if terms_of(text) else "none")


# A search in shadow mode


def test_each_search_leaves_one_event_and_the_answer_as_it_was(memory, ledger, tea, clock):
    memory.observe("coffee in Kyoto")
    plain = [memory.search(query) for query in (TEA, "coffee", "nothing of that")]
    assert ledger.review_dormant() == []
    clock.advance(days=31)
    for times in (1, 2):
        shadow = [memory.search(q, dormant=SHADOW) for q in (TEA, "coffee", "nothing of that")]
        assert shadow == plain
        assert len(ledger.review_dormant()) == 3 * times
    memory.search(TEA, dormant=DormantRecall())
    memory.search_explained(TEA)
    assert len(ledger.review_dormant()) == 6


def test_a_search_notes_what_it_did_not_return(memory, ledger, clock):
    ids = [memory.observe(TEA) for _ in range(2)]
    clock.advance(days=31)
    [hit] = memory.search(TEA, 1, dormant=changed(min_rerank_score=-10))
    [event] = ledger.review_dormant()
    assert sorted([hit.id, event.memory_id]) == sorted(ids)


def test_a_search_sees_and_notes_its_agents_memories_only(open_memory, ledger, clock):
    open_memory("ben").observe(TEA)
    ana = open_memory("ana")
    ana.observe("coffee in Kyoto")
    clock.advance(days=31)
    ana.search(TEA, dormant=SHADOW)
    [event] = ledger.review_dormant()
    assert (event.memory_id, event.candidate_count) == (None, 1)


# A failure stays here


def test_a_failing_reranker_leaves_one_word_in_the_log(memory, ledger, tea, caplog):
    class Broken(Reranker):
        def scores(self, query, texts):
            message = f"{query} {texts} /secret/path"
            raise RuntimeError(message)

    with caplog.at_level(logging.WARNING):
        search(memory, TEA, reranker=Broken())
    [record] = caplog.records
    assert record.getMessage().endswith(": RuntimeError")
    assert "ceremony" not in caplog.text
    assert "secret" not in caplog.text
    assert ledger.review_dormant() == []


def test_a_locked_store_is_given_up_on_at_once(open_memory, ledger, clock, caplog):
    # Waited for as others wait, it would hold up this test for longer than anybody has.
    memory, other = open_memory(busy_timeout=3600), open_memory()
    memory.observe(TEA)
    clock.advance(days=31)
    with other._store.writing():
        search(memory, TEA)
        assert [record.getMessage() for record in caplog.records] == [
            "a dormant evaluation failed: Busy"
        ]
        assert ledger.review_dormant() == []
    search(memory, TEA)
    assert len(ledger.review_dormant()) == 1
