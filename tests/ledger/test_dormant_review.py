"""Dormant recall: what may be done with what a search left of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dormant import TEA, changed, search
from files import every_byte
from turns import Other

from engram.errors import CannotOpen, InvalidArgument, InvalidType, NotFound
from engram.ledger import Ledger


@pytest.fixture
def ledger(path, clock):
    with Ledger(path, clock=clock) as ledger:
        yield ledger


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


# Damage


@pytest.fixture
def damaged_event(memory, ledger, event, damage):
    """Damage the event of a memory, beside which there is another event."""

    def run(change):
        search(memory, "other things altogether")
        damage(f"UPDATE dormant_event SET {change} WHERE id = ?", event.id)
        return event.id

    return run


@pytest.mark.parametrize("change", [
    *(f"{name} = CAST(x'ff' AS TEXT)" for name in ("id", "outcome", "algorithm", "feedback")),
    *(f"{name} = 9e999" for name in ("relevance", "bonus", "dormant_days", "rerank_score")),
    "relevance = NULL",
    "overlap_count = NULL",
    "created_at = 9223372036854775807",
])  # fmt: skip
def test_a_damaged_event_is_no_event(ledger, damaged_event, change):
    uid = damaged_event(change)
    assert [event.sequence for event in ledger.review_dormant(1)] == [2]
    assert [event.sequence for event in ledger.review_dormant()] == [2]
    with pytest.raises(NotFound):
        ledger.inspect_dormant(uid)
    with pytest.raises(NotFound):
        ledger.judge_dormant(uid, "useful")


def test_damaged_events_take_no_place_in_a_review(memory, ledger, event, damage):
    search(memory, "other things altogether")
    damage("UPDATE dormant_event SET algorithm = CAST(x'ff' AS TEXT) WHERE sequence = 2")
    assert ledger.review_dormant(1) == [event]


def test_an_event_of_a_memory_with_a_damaged_id_is_no_event(ledger, event, damage):
    damage("UPDATE episode SET uid = CAST(x'ff' AS TEXT)")
    assert ledger.review_dormant() == []
    with pytest.raises(NotFound):
        ledger.inspect_dormant(event.id)


@pytest.mark.parametrize("change", [
    "content = CAST(x'ff' AS TEXT)",
    "source_type = CAST(x'ff' AS TEXT)",
    "provenance = CAST(x'ff' AS TEXT)",
    "metadata = CAST(x'7b2261223a22ff227d' AS TEXT)",
    "metadata = '{'",
    "metadata = '[]'",
    """metadata = '{"source_trust": 1e999}'""",
    """metadata = '{"source_trust": "\\ud800"}'""",
    "metadata = replace(hex(zeroblob(100000)), '0', '[')",
    """metadata = '{"a":' || replace(hex(zeroblob(100)), '0', '[')
        || replace(hex(zeroblob(100)), '0', ']') || '}'""",
])  # fmt: skip
def test_a_damaged_memory_is_not_shown(ledger, event, damage, change):
    damage(f"UPDATE episode SET {change}")
    with pytest.raises(NotFound):
        ledger.inspect_dormant(event.id)
    # Nor does it count as shown.
    assert ledger.review_dormant() == [event]
