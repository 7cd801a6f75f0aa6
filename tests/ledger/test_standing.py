"""Facts that hold now, and may be shown: the same ones in searches, contexts and as sources."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engram.config import Retrieval

PROJECT = "/p/a"
SURE = Retrieval(min_confidence=0.0)


@pytest.fixture
def states(memory, ledger, clock):
    """Return whether a search, a context and an observation that cites it show a fact."""

    def run(fact):
        memory_id = f"fact:{fact}"
        at = clock.now.timestamp()
        cited = ledger.put_evidence(
            "/elsewhere",
            session_id="s",
            assumption_id="a",
            evidence_id=f"{at}",
            outcome="supported",
            observed_at=at,
            expires_at=at + 60,
            observation={},
            provenance={"producer": "p", "check_type": "c"},
            source_refs=[f"memory:{memory_id}"],
        )
        hits, _ = memory.search_explained("what does Ann drink", settings=SURE)
        return (
            memory_id in {hit.id for hit in hits},
            memory_id in {one.id for one in ledger.recent(PROJECT, limit=20)},
            cited.view.state == "supported",
        )

    return run


@pytest.fixture
def source(memory):
    return memory.remember("a talk about beverages", project=PROJECT)


ALL, NONE = (True,) * 3, (False,) * 3


def test_a_fact_holds_from_its_beginning_to_before_its_end(memory, source, states, clock):
    begins, ends = clock.now + timedelta(hours=1), clock.now + timedelta(hours=2)
    fact = memory.assert_fact(
        "Ann", "drinks", "tea", source=source, valid_from=begins, valid_to=ends
    )
    assert states(fact) == NONE
    clock.advance(hours=1)
    assert states(fact) == ALL
    clock.advance(hours=1)
    assert states(fact) == NONE
    assert memory.check() == []


@pytest.mark.parametrize("change", ["hide", "invalidate", "set_status"])
def test_a_fact_is_shown_while_one_of_its_episodes_is(
    memory, ledger, source, states, clock, change
):
    facts = memory._store.facts
    other = memory.remember("another talk", project=PROJECT)
    fact = memory.assert_fact("Ann", "drinks", "tea", source=source)
    with memory._store.writing():
        key = facts.get(fact, None)[0]
        memory._store._connection.execute(
            "INSERT INTO fact_source SELECT ?, 1, NULL, id, provenance FROM episode"
            " WHERE uid = (SELECT uid FROM episode ORDER BY id DESC LIMIT 1)",
            (key,),
        )
    status = ["challenged"] if change == "set_status" else []
    assert states(fact) == ALL
    getattr(ledger, change)(source, *status)
    clock.advance(seconds=1)
    assert states(fact) == ALL
    getattr(ledger, change)(other, *status)
    clock.advance(seconds=1)
    assert states(fact) == NONE
    ledger.restore(source)
    clock.advance(seconds=1)
    assert states(fact) == ALL


def test_a_fact_without_episodes_and_one_whose_episode_was_erased_hold(memory, ledger, clock):
    source = memory.observe("a talk")
    named = memory.assert_fact("Ann", "drinks", "tea", source="a book")
    orphan = memory.assert_fact("Ann", "drinks", "water", source=source)
    memory.forget(source)
    found = {hit.id for hit in memory.search("what does Ann drink", settings=SURE)}
    assert found == {f"fact:{named}", f"fact:{orphan}"}


def test_what_does_not_hold_takes_no_room_in_a_context(memory, ledger, source, clock):
    ended = clock.now + timedelta(seconds=1)
    holds = memory.assert_fact("Ann", "drinks", "tea", source=source)
    clock.advance(microseconds=1)
    for number in range(30):
        memory.assert_fact("Ann", "drank", f"cup {number}", source=source, valid_to=ended)
    clock.advance(seconds=2)
    assert [one.id for one in ledger.recent(PROJECT, limit=2)] == [source, f"fact:{holds}"]


def test_rows_of_memories_that_are_gone_are_passed_over(memory, ledger, damage, clock):
    """An engram of before the lists knows nothing of them when it erases."""
    first, second = (memory.remember(text, project=PROJECT) for text in ("one", "two"))
    damage("DELETE FROM episode WHERE uid = (SELECT uid FROM episode ORDER BY id DESC LIMIT 1)")
    assert [one.id for one in ledger.recent(PROJECT, limit=1)] == [first]
    assert [one.id for one in ledger.recent(PROJECT)] == [first]
    assert second not in {one.id for one in ledger.recent(PROJECT)}
