"""Check observations are worth what they rest on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from evidence import ATLAS, NOW, reason

from engram.ledger.evidence import UnknownEvidence
from engram.ledger.sources import MOST_FOLLOWED
from engram.storage import uids
from engram.storage.observations import Payload


def test_a_broken_source_shows_in_lists_with_labels(ledger, cite):
    uid = cite("e1", "nowhere")
    assert ledger.get_evidence(ATLAS, uid) == UnknownEvidence(uid, "source_missing")
    assert ledger.list_evidence(ATLAS) == [
        UnknownEvidence(uid, "source_missing", "e1", "release-check", "artifact-matches")
    ]


def test_memories_and_facts_are_sources(ledger, memory, cite, clock):
    episode, doubtful = memory.observe("x"), memory.observe("y", quarantined=True)
    fact = memory.assert_fact("sky", "is", "blue")
    uid = cite("e1", episode, f"fact:{fact}")
    assert reason(ledger.get_evidence(ATLAS, uid)) is None
    assert reason(ledger.get_evidence(ATLAS, cite("e2", doubtful))) == "source_inactive"
    ledger.set_status(episode, "challenged")
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_inactive"
    ledger.hide(episode)
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_forgotten"
    ledger.restore(episode)
    assert reason(ledger.get_evidence(ATLAS, uid)) is None
    ending = memory.assert_fact("sea", "is", "high", valid_to=clock.now + timedelta(seconds=1))
    soon = cite("e3", f"fact:{ending}")
    assert reason(ledger.get_evidence(ATLAS, soon)) is None
    clock.advance(seconds=1)
    assert reason(ledger.get_evidence(ATLAS, soon)) == "source_inactive"
    memory.forget_fact(fact)
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_missing"
    memory.forget(episode)
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_missing"


def test_a_source_may_come_later_and_from_another_project(ledger, put, cite):
    later = put("/elsewhere", evidence_id="later", expires_at=NOW + 5).id
    uid = cite("e1", later)
    assert reason(ledger.get_evidence(ATLAS, uid)) is None
    missing = cite("e2", put("/elsewhere", evidence_id="a").id.replace("evidence-", "evidence-x"))
    assert reason(ledger.get_evidence(ATLAS, missing)) == "source_missing"


BROKEN = {
    "source_forgotten": lambda ledger, clock, uid: ledger.hide(uid),
    "source_inactive": lambda ledger, clock, uid: ledger.invalidate(uid),
    "source_stale": lambda ledger, clock, uid: clock.advance(seconds=60),
}


@pytest.mark.parametrize("expected", BROKEN)
@pytest.mark.parametrize("outcome", ["unknown", "supported", "contradicted"])
def test_what_breaks_one_breaks_all_that_rest_on_it(ledger, put, cite, clock, expected, outcome):
    root = put(evidence_id="root", expires_at=NOW + 60).id
    first = cite("first", root)
    second = cite("second", first)
    third = cite("third", second, outcome=outcome)
    bystander = put(evidence_id="bystander").id
    assert reason(ledger.get_evidence(ATLAS, third)) is None
    BROKEN[expected](ledger, clock, root)
    for uid in (first, second, third):
        assert reason(ledger.get_evidence(ATLAS, uid)) == expected
    assert reason(ledger.get_evidence(ATLAS, bystander)) is None


def test_a_missing_source_is_missing_however_far(ledger, cite):
    uid = cite("a", "nowhere")
    for name in "bcd":
        uid = cite(name, uid)
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_missing"


@pytest.mark.parametrize(
    ("cited", "citing", "expected"),
    [
        ("contradicted", "supported", "source_inactive"),
        ("unknown", "supported", "source_unavailable"),
        ("contradicted", "contradicted", None),
        ("unknown", "contradicted", None),
        ("contradicted", "unknown", None),
        ("supported", "contradicted", None),
    ],
)
def test_support_rests_on_support(ledger, cite, cited, citing, expected):
    source = cite("source", outcome=cited)
    uid = cite("e1", source, outcome=citing)
    assert reason(ledger.get_evidence(ATLAS, uid)) == expected
    above = cite("above", uid, outcome=citing)
    assert reason(ledger.get_evidence(ATLAS, above)) == expected


def test_the_first_broken_source_gives_the_reason(ledger, memory, cite):
    hidden = cite("hidden")
    ledger.hide(hidden)
    inside = cite("inside", hidden)
    # Sorted, "memory:a…" comes first, and "memory:evidence-…" before "memory:z…".
    assert reason(ledger.get_evidence(ATLAS, cite("e1", inside, "z"))) == "source_forgotten"
    assert reason(ledger.get_evidence(ATLAS, cite("e2", inside, "a"))) == "source_missing"


def test_a_broken_source_comes_before_staleness(ledger, cite, clock):
    uid = cite("e1", "nowhere", expires_at=NOW + 1)
    clock.advance(seconds=5)
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_missing"


def test_circles_end(ledger, put):
    """Ids follow from names, so a source can be cited before it is there."""
    cited = {"a": "b", "b": "c", "c": "a", "own": "own"}
    ids = {name: Payload(ATLAS, name, *[""] * 8).id for name in cited}
    for name, other in cited.items():
        assert put(evidence_id=name, source_refs=[f"memory:{ids[other]}"]).id == ids[name]
    assert [reason(one) for one in ledger.list_evidence(ATLAS)] == [None] * 4
    ledger.hide(ids["c"])
    assert {one.id: reason(one) for one in ledger.list_evidence(ATLAS)} == {
        ids["a"]: "source_forgotten",
        ids["b"]: "source_forgotten",
        ids["own"]: None,
    }


def test_what_cannot_be_followed_to_its_end_is_unavailable(ledger, cite):
    chain = [cite("e0")]
    for number in range(1, MOST_FOLLOWED + 3):
        chain.append(cite(f"e{number}", chain[-1]))
    views = [reason(ledger.get_evidence(ATLAS, uid)) for uid in chain]
    assert views == [None] * (MOST_FOLLOWED + 1) + ["source_unavailable"] * 2


def test_many_ways_to_one_source_cost_no_more_than_one(ledger, cite, plans):
    """Eight references at each of ten levels are a thousand million ways and eighty sources."""
    level = [cite(f"0-{n}") for n in range(8)]
    for depth in range(1, 11):
        level = [cite(f"{depth}-{n}", *level) for n in range(8)]
    asked = plans(lambda: ledger.get_evidence(ATLAS, level[0]))
    assert len(asked) <= 1 + 8 * 81
    assert reason(ledger.get_evidence(ATLAS, level[0])) is None


DAMAGED = [
    "UPDATE episode SET metadata = '{'",
    "UPDATE episode SET metadata = '[]'",
    "UPDATE episode SET metadata = CAST(x'7b2261223a22ff227d' AS TEXT)",
    "UPDATE episode SET content = CAST(x'ff' AS TEXT)",
    "UPDATE episode SET layer = CAST(x'ff' AS TEXT)",
    "UPDATE episode SET status = CAST(x'ff' AS TEXT)",
    "UPDATE fact SET object = CAST(x'ff' AS TEXT)",
]


@pytest.mark.parametrize("change", DAMAGED)
def test_a_damaged_memory_is_an_unavailable_source(ledger, memory, cite, damage, change):
    episode, fact = memory.observe("x"), memory.assert_fact("sky", "is", "blue")
    uid = cite("e1", episode, f"fact:{fact}")
    other = memory.observe("y", metadata={"a": 1})
    sound = cite("e2", other)
    damage(change + (" WHERE uid = ?" if "episode" in change else ""),
           *([uids.to_stored(episode)] if "episode" in change else []))  # fmt: skip
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_unavailable"
    assert reason(ledger.get_evidence(ATLAS, sound)) is None
    if "episode" in change:
        ledger.hide(episode)
        assert reason(ledger.get_evidence(ATLAS, uid)) == "source_forgotten"


def test_a_damaged_observation_is_an_unavailable_source(ledger, put, cite, damage):
    cited = put(evidence_id="cited").id
    uid = cite("e1", cited)
    damage("UPDATE check_observation SET session_id = CAST(x'ff' AS TEXT) WHERE id = ?", cited)
    assert reason(ledger.get_evidence(ATLAS, uid)) == "source_unavailable"
