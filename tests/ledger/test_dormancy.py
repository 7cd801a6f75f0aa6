"""Dormant recall: what a search leaves of it, and what may be done with that."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace

import numpy as np
import pytest
from dormant import SHADOW, Reranker, search
from files import every_byte
from hypothesis import given, settings
from hypothesis import strategies as st
from small_segments import LIMITS
from stand_ins import Clock, WordEmbedder
from turns import Other

from engram import Engram
from engram.config import DormantRecall
from engram.errors import CannotOpen, InvalidArgument, InvalidType, NotFound
from engram.ledger import Ledger
from engram.retrieval import dormancy
from engram.retrieval.dormancy import terms_of

TEA = "the tea ceremony in Kyoto"
DAY = 86_400.0


class AllTheSame(WordEmbedder):
    """To it all texts mean the same."""

    def vector(self, text):
        return super().vector("")


@pytest.fixture
def ledger(path, clock):
    with Ledger(path, clock=clock) as ledger:
        yield ledger


def changed(**settings):
    return replace(SHADOW, **settings)


@pytest.fixture
def tea(memory, clock):
    """A memory that nobody asked about for 31 days."""
    uid = memory.observe(TEA)
    clock.advance(days=31)
    return uid


@pytest.fixture
def event(memory, ledger, tea):
    """The event of a search that might have shown it."""
    search(memory, TEA)
    return ledger.review_dormant()[0]


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


# Reviewing


def test_review_lists_the_newest_first(memory, ledger, tea):
    for _ in range(5):
        search(memory, TEA)
    assert [event.sequence for event in ledger.review_dormant()] == [5, 4, 3, 2, 1]
    assert [event.sequence for event in ledger.review_dormant(2)] == [5, 4]


@pytest.mark.parametrize("limit", [0, 101, True, 1.0, "3", None])
def test_review_refuses_other_limits(ledger, limit):
    with pytest.raises((InvalidArgument, InvalidType)):
        ledger.review_dormant(limit)


def test_review_reads_while_another_writes_and_changes_nothing(memory, ledger, event, path):
    ledger.hide(event.memory_id)
    search(memory, "other things altogether")
    with memory._store.reading():
        before = memory._store._connection.execute("PRAGMA data_version").get
    with memory._store.writing():
        assert [one.outcome for one in ledger.review_dormant()] == ["none"]
    with memory._store.reading():
        assert memory._store._connection.execute("PRAGMA data_version").get == before


def test_old_events_go_by_age(memory, ledger, event, clock):
    settings = changed(log_retention_days=10)
    clock.advance(days=10)
    assert ledger.review_dormant(settings=settings) == [event]
    clock.advance(seconds=1)
    assert ledger.review_dormant(settings=settings) == []
    assert ledger.review_dormant() == [event]
    with pytest.raises(NotFound):
        ledger.inspect_dormant(event.id, settings=settings)
    # That was a write, and what it removed stays removed.
    assert ledger.review_dormant() == []


def test_old_events_go_by_number(memory, ledger, tea):
    settings = changed(log_max_events=3)
    for _ in range(5):
        search(memory, TEA, settings)
    assert [event.sequence for event in ledger.review_dormant()] == [5, 4, 3]
    [newest] = ledger.review_dormant(settings=changed(log_max_events=1))
    assert newest.sequence == 5


def test_a_memory_rests_after_its_event_is_gone(memory, ledger, tea, clock):
    settings = changed(log_max_events=1)
    search(memory, TEA, settings)
    search(memory, TEA, settings)
    assert [event.outcome for event in ledger.review_dormant()] == ["none"]
    clock.advance(days=6.9)
    search(memory, TEA, settings)
    assert [event.outcome for event in ledger.review_dormant()] == ["none"]
    clock.advance(days=0.1)
    search(memory, TEA, settings)
    assert [event.memory_id for event in ledger.review_dormant()] == [tea]


# Inspecting and judging


def test_inspecting_shows_the_memory(ledger, event, tea):
    shown = ledger.inspect_dormant(event.id)
    assert (shown.event_id, shown.memory_id, shown.content) == (event.id, tea, TEA)
    assert (shown.status, shown.source_type, shown.source_trust) == ("active", "external", None)
    assert shown.connection.startswith("cosine 1.000, 3 of 3 ")
    assert shown.note


def test_the_source_of_a_memory_comes_with_it(memory, ledger, clock):
    memory.observe(TEA, provenance="tool", metadata={"source_trust": {"level": 2}})
    clock.advance(days=31)
    search(memory, TEA)
    shown = ledger.inspect_dormant(ledger.review_dormant()[0].id)
    assert (shown.source_type, shown.source_trust) == ("tool", {"level": 2})


def test_each_inspection_prolongs_the_rest_and_the_first_one_counts(memory, ledger, event, clock):
    clock.advance(days=5)
    ledger.inspect_dormant(event.id)
    first = clock.now.timestamp()
    clock.advance(days=5)
    ledger.inspect_dormant(event.id)
    assert ledger.review_dormant()[0].shown_at == first
    clock.advance(days=6)
    search(memory, TEA)
    assert ledger.review_dormant()[0].outcome == "none"
    clock.advance(days=1)
    search(memory, TEA)
    assert ledger.review_dormant()[0].memory_id == event.memory_id


@pytest.mark.parametrize(
    ("category", "days"), [("irrelevant", 20), ("dismissed", 20), ("useful", 45)]
)
def test_feedback_lets_a_memory_rest(memory, ledger, event, clock, category, days):
    settings = changed(
        feedback_cooldown_days=20, dormancy_days=45, log_retention_days=365, cooldown_days=1
    )
    ledger.inspect_dormant(event.id, settings=settings)
    ledger.judge_dormant(event.id, category, settings=settings)
    judged = ledger.review_dormant(settings=settings)[0]
    assert (judged.feedback, judged.feedback_at) == (category, clock.now.timestamp())
    # Dormant for 31 days before, so at 20 days it has been for 51, unless it was of use.
    clock.advance(days=days, seconds=-1)
    search(memory, TEA, settings)
    assert ledger.review_dormant(settings=settings)[0].outcome == "none"
    clock.advance(seconds=1)
    search(memory, TEA, settings)
    found = ledger.review_dormant(settings=settings)[0]
    assert found.memory_id == event.memory_id
    assert found.dormant_days == pytest.approx(45 if category == "useful" else 51)


def test_a_useful_memory_is_dormant_anew_from_then_on(memory, ledger, event, clock):
    short = changed(feedback_cooldown_days=1, cooldown_days=1, dormancy_days=30)
    clock.advance(days=10)
    ledger.inspect_dormant(event.id, settings=short)
    # The rest that goes with "useful" is shorter here than the dormancy asked for later.
    ledger.judge_dormant(event.id, "useful", settings=replace_days(short, 1))
    clock.advance(days=29)
    search(memory, TEA, short)
    found = ledger.review_dormant(settings=short)[0]
    assert (found.outcome, found.candidate_count) == ("none", 1)


def replace_days(settings, days):
    return replace(settings, dormancy_days=days)


def test_feedback_follows_inspection(ledger, event):
    with pytest.raises(InvalidArgument, match="inspect"):
        ledger.judge_dormant(event.id, "useful")
    assert ledger.review_dormant() == [event]


def test_feedback_is_given_once(ledger, event, clock):
    ledger.inspect_dormant(event.id)
    ledger.judge_dormant(event.id, "irrelevant")
    judged = ledger.review_dormant()
    clock.advance(days=1)
    ledger.judge_dormant(event.id, "irrelevant")
    with pytest.raises(InvalidArgument):
        ledger.judge_dormant(event.id, "useful")
    assert ledger.review_dormant() == judged
    assert ledger.inspect_dormant(event.id).memory_id == event.memory_id


@pytest.mark.parametrize("category", ["", "Useful", " useful", "great"])
def test_other_categories_are_refused(ledger, event, category):
    ledger.inspect_dormant(event.id)
    with pytest.raises(InvalidArgument):
        ledger.judge_dormant(event.id, category)
    assert ledger.review_dormant()[0].feedback is None


@pytest.mark.parametrize("event_id", ["unknown", "x" * 200])
def test_unknown_events_are_not_found(memory, ledger, event_id):
    with pytest.raises(NotFound):
        ledger.inspect_dormant(event_id)
    with pytest.raises(NotFound):
        ledger.judge_dormant(event_id, "useful")


def test_an_id_is_taken_as_it_is(ledger, event):
    with pytest.raises(NotFound):
        ledger.inspect_dormant(f" {event.id}")


@pytest.mark.parametrize("event_id", ["", "  ", "x" * 201, None, 7, b"x", "\ud800"])
def test_bad_arguments_are_told_before_the_store_is_asked(tmp_path, event_id):
    with Ledger(tmp_path / "nothing.engram") as ledger:
        with pytest.raises((InvalidArgument, InvalidType)):
            ledger.inspect_dormant(event_id)
        with pytest.raises((InvalidArgument, InvalidType)):
            ledger.judge_dormant(event_id, "useful")
        with pytest.raises(InvalidArgument):
            ledger.judge_dormant("x", "great")
        with pytest.raises(CannotOpen):
            ledger.review_dormant()


# What happens to the memory


@pytest.mark.parametrize("way", ["hide", "invalidate", "set_status"])
def test_an_event_goes_with_its_memory(memory, ledger, event, way):
    arguments = ("superseded",) if way == "set_status" else ()
    getattr(ledger, way)(event.memory_id, *arguments)
    assert ledger.review_dormant() == []
    for call in (ledger.inspect_dormant, lambda uid: ledger.judge_dormant(uid, "useful")):
        with pytest.raises(NotFound):
            call(event.id)
    # What is restored begins anew: neither its event nor its rest came through that.
    ledger.restore(event.memory_id)
    assert ledger.review_dormant() == []
    search(memory, TEA)
    assert ledger.review_dormant()[0].memory_id == event.memory_id


def test_erasing_a_memory_erases_its_events_and_its_rest(memory, ledger, event):
    ledger.inspect_dormant(event.id)
    memory.forget(event.memory_id)
    assert ledger.review_dormant() == []
    with memory._store.reading():
        for table in ("dormant_event", "dormant_state"):
            assert memory._store._connection.execute(f"SELECT count(*) FROM {table}").get == 0
    assert memory.check() == []


def test_neither_accesses_nor_importance_change(memory, ledger, event):
    def kept():
        with memory._store.reading():
            keys = np.array([1], dtype=np.int64)
            accesses = memory._store.strength.accesses(keys, None)
            return (
                accesses.counts.tolist(),
                accesses.latest.tolist(),
                memory._store.strength.importance.of(keys).tolist(),
                memory._store.last_change(),
            )

    before = kept()
    ledger.inspect_dormant(event.id)
    ledger.judge_dormant(event.id, "useful")
    search(memory, TEA)
    assert kept() == before


def test_no_word_of_query_or_memory_is_in_the_events(memory, ledger, path, clock):
    uid = memory.observe("xylophone quartet")
    clock.advance(days=31)
    search(memory, "xylophone quartet rehearsalcanary", changed(min_relevance=0.5))
    event = ledger.review_dormant()[0]
    assert event.memory_id == uid
    ledger.inspect_dormant(event.id)
    ledger.judge_dormant(event.id, "useful")
    memory.forget(uid)
    memory.close()
    ledger.close()
    written = every_byte(path).lower()
    assert b"rehearsalcanary" not in written
    assert b"xylophone" not in written


SEARCHER = """
import sys
from datetime import UTC, datetime
from dormant import search
from stand_ins import Clock, WordEmbedder
from engram import Engram
clock = Clock(datetime(2026, 6, 1, tzinfo=UTC))
with Engram(sys.argv[1], embedder=WordEmbedder(), clock=clock) as memory:
    for line in sys.stdin:
        search(memory, line.strip())
        print("done", flush=True)
"""


def test_two_processes_never_choose_one_memory_twice(memory, ledger, path, clock):
    for _ in range(6):
        memory.observe(TEA)
    clock.advance(days=151)
    with Other(path, SEARCHER) as first, Other(path, SEARCHER) as second:
        for _ in range(4):
            for process in (first, second):
                process.process.stdin.write(f"{TEA}\n")
                process.process.stdin.flush()
            for process in (first, second):
                assert process.process.stdout.readline() == "done\n"
    found = [event.memory_id for event in ledger.review_dormant() if event.memory_id]
    assert len(found) == len(set(found)) == 6
