"""Check observations: stored once and for ever, and found again."""

from __future__ import annotations

import math
import re

import pytest
from evidence import ATLAS, NOW, reason

from engram.errors import InvalidArgument
from engram.ledger.evidence import CheckObservation, UnknownEvidence


def test_what_is_put_is_what_is_got(ledger, put, open_ledger):
    receipt = put(
        evidence_id=" e1 ",
        observed_at=int(NOW),
        observation={"ü": [1, 1.0, True, None, {"z": 1, "a": "\0"}]},
        provenance={"producer": " kiln", "check_type": "hash\n", "verified": True},
        source_refs=["https://example.org", " command:x", "https://example.org", "MEMORY:x"],
    )
    expected = CheckObservation(
        id=receipt.id,
        project_path=ATLAS,
        evidence_id="e1",
        session_id="release-check",
        assumption_id="artifact-matches",
        reported_outcome="supported",
        outcome="supported",
        state="supported",
        observed_at=NOW,
        expires_at=NOW + 3600,
        stored_at=NOW,
        observation={"ü": [1, 1.0, True, None, {"z": 1, "a": "\0"}]},
        provenance={"producer": "kiln", "check_type": "hash", "verified": True},
        source_refs=("MEMORY:x", "command:x", "https://example.org"),
    )
    assert (receipt.evidence_id, receipt.stored_at, receipt.view) == ("e1", NOW, expected)
    assert re.fullmatch("evidence-[0-9a-f]{64}", receipt.id)
    assert expected.eligible
    for one in (ledger, open_ledger()):
        assert one.get_evidence(ATLAS, f" {receipt.id}\n") == expected
        assert one.list_evidence(ATLAS) == [expected]
    kept = ledger.get_evidence(ATLAS, receipt.id).observation["ü"]
    assert [type(value) for value in kept[:3]] == [int, float, bool]


def test_ids_are_a_project_and_a_name(put, tmp_path):
    (tmp_path / "link").symlink_to("real")
    one = put(f"{tmp_path}/link/.", evidence_id="a")
    assert put(f"{tmp_path}/real/", evidence_id=" a").id == one.id
    others = {put("/p", evidence_id="a").id, put("/p", evidence_id="b").id, put("/p/a").id}
    assert len(others | {one.id}) == 4


@pytest.mark.parametrize("outcome", ["unknown", "supported", "contradicted"])
def test_an_expired_observation_is_stale(ledger, put, clock, outcome):
    receipt = put(outcome=outcome, expires_at=NOW + 10)
    view = receipt.view
    assert (view.state, view.outcome, view.eligible) == (outcome, outcome, True)
    clock.advance(seconds=9.999)
    assert ledger.get_evidence(ATLAS, receipt.id) == view
    clock.advance(seconds=0.001)
    stale = ledger.get_evidence(ATLAS, receipt.id)
    assert (stale.state, stale.outcome, stale.eligible) == ("stale", "unknown", False)
    assert stale.reported_outcome == outcome
    assert ledger.list_evidence(ATLAS) == [stale]
    assert put(outcome=outcome, expires_at=NOW + 10).view == stale


def test_what_is_past_already_is_accepted_as_stale(put):
    assert put(observed_at=1, expires_at=2).view.state == "stale"


REPLAYS = [
    {"session_id": " release-check "},
    {"assumption_id": "artifact-matches\t"},
    {"evidence_id": "\u2003e1"},
    {"observed_at": int(NOW)},
    {"expires_at": int(NOW) + 3600},
    {"observation": {"b": [1.0], "a": 1}},
    {"provenance": {"check_type": " artifact-hash", "producer": "kiln "}},
    {"source_refs": ["y", "memory:x", " y"]},
]


@pytest.mark.parametrize("changes", REPLAYS)
def test_the_same_in_other_words_is_a_repetition(put, clock, changes):
    first = {"observation": {"a": 1, "b": [1.0]}, "source_refs": ["memory:x", "y"]}
    receipt = put(**first)
    clock.advance(seconds=60)
    assert put(**(first | changes)) == receipt
    assert receipt.stored_at == NOW


@pytest.mark.parametrize("refs", [None, [], ()])
def test_no_sources_are_no_sources(put, refs):
    assert put(source_refs=refs) == put()


CONFLICTS = [
    {"session_id": "other"},
    {"assumption_id": "Artifact-matches"},
    {"outcome": "unknown"},
    {"observed_at": NOW - 0.5},
    {"expires_at": NOW + 3601},
    {"observation": {"n": 1.0}},
    {"observation": {"n": True}},
    {"observation": {"n": "1"}},
    {"observation": {"n": 1, "m": None}},
    {"provenance": {"producer": "kiln", "check_type": "artifact-hash", "verified": False}},
    {"source_refs": ["x"]},
]


@pytest.mark.parametrize("changes", CONFLICTS)
def test_other_contents_under_the_same_name_are_refused(ledger, put, changes):
    receipt = put(observation={"n": 1})
    with pytest.raises(InvalidArgument, match="evidence_id"):
        put(**({"observation": {"n": 1}} | changes))
    assert ledger.list_evidence(ATLAS) == [receipt.view]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (lambda ledger, uid: ledger.hide(uid), "forgotten"),
        (lambda ledger, uid: ledger.set_status(uid, "superseded"), "inactive"),
        (lambda ledger, uid: ledger.invalidate(uid), "inactive"),
    ],
)
def test_a_repetition_revives_nothing(ledger, put, how, expected):
    receipt = put()
    how(ledger, receipt.id)
    gone = UnknownEvidence(receipt.id, expected)
    assert (gone.state, gone.outcome, gone.eligible) == ("unknown", "unknown", False)
    again = put()
    assert (again.id, again.stored_at, again.view) == (receipt.id, receipt.stored_at, gone)
    with pytest.raises(InvalidArgument):
        put(outcome="unknown")
    assert ledger.get_evidence(ATLAS, receipt.id) == gone
    assert ledger.list_evidence(ATLAS) == []
    ledger.restore(receipt.id)
    assert ledger.get_evidence(ATLAS, receipt.id) == receipt.view


def test_forgotten_comes_before_inactive(ledger, put):
    receipt = put()
    ledger.invalidate(receipt.id)
    ledger.hide(receipt.id)
    assert reason(ledger.get_evidence(ATLAS, receipt.id)) == "forgotten"


def test_not_found_is_all_that_is_said(ledger, memory, put, damage):
    uid = put().id
    episode = memory.observe("a memory")
    nothing = UnknownEvidence(None, "not_found")
    assert ledger.get_evidence("/projects", uid) == nothing
    assert ledger.get_evidence(ATLAS, episode) == nothing
    assert ledger.get_evidence(ATLAS, uid.upper()) == nothing
    assert ledger.get_evidence(ATLAS, "evidence-") == nothing
    ledger.hide(uid)
    assert ledger.get_evidence("/projects", uid) == nothing


TAMPERED = [
    "outcome = 'contradicted'",
    'observation = \'{"actual": "same hash"}\'',
    "expires_at = expires_at + 1",
    "source_refs = '[\"x\"]'",
    "payload_sha256 = zeroblob(32)",
    "project_path = '/projects/other'",
    "evidence_id = 'e2'",
    "session_id = 'another'",
]


@pytest.mark.parametrize("change", TAMPERED)
def test_what_is_not_what_was_stored_is_not_found(ledger, put, cite, damage, change):
    uid = put().id
    citing = cite("citing", uid)
    kept = [put(evidence_id=f"kept{number}").id for number in range(3)]
    damage(f"UPDATE check_observation SET {change} WHERE id = ?", uid)
    for project in (ATLAS, "/projects/other"):
        assert ledger.get_evidence(project, uid) == UnknownEvidence(None, "not_found")
        assert uid not in {one.id for one in ledger.list_evidence(project)}
    assert len(ledger.list_evidence(ATLAS, limit=4)) == 4
    assert {one.id for one in ledger.list_evidence(ATLAS)} == {citing, *kept}
    assert reason(ledger.get_evidence(ATLAS, citing)) == "source_unavailable"
    with pytest.raises(InvalidArgument):
        put()


def test_lists_are_filtered_before_they_are_cut(ledger, put, clock):
    ids = []
    for number in range(12):
        clock.advance(seconds=number % 2)
        ids.append(
            put(
                evidence_id=f"e{number}",
                session_id=f"s{number % 2}",
                assumption_id=f"a{number % 3}",
            ).id
        )
        put("/projects/atlas-b", evidence_id=f"e{number}")
    ledger.hide(ids[11])
    ledger.set_status(ids[9], "merged")
    kept = [uid for number, uid in enumerate(ids) if number not in (9, 11)]
    stored = {uid: ledger.get_evidence(ATLAS, uid).stored_at for uid in kept}
    expected = sorted(kept, key=lambda uid: (stored[uid], uid), reverse=True)
    found = [one.id for one in ledger.list_evidence(ATLAS)]
    assert found == expected
    assert [one.id for one in ledger.list_evidence(ATLAS, limit=3)] == expected[:3]
    for session, assumption in (("s1", None), (None, "a0"), (" s1 ", "a1"), ("s2", None)):
        listed = ledger.list_evidence(ATLAS, session_id=session, assumption_id=assumption, limit=2)
        wanted = [
            uid
            for uid in expected
            if (session is None or ids.index(uid) % 2 == int(session.strip()[1]))
            and (assumption is None or ids.index(uid) % 3 == int(assumption[1]))
        ]
        assert [one.id for one in listed] == wanted[:2]


def test_lists_go_along_an_index(ledger, put, plans):
    put()
    for session, assumption in ((None, None), ("s", None), (None, "a"), ("s", "a")):
        [plan] = plans(
            lambda s=session, a=assumption: ledger.list_evidence(
                ATLAS, session_id=s, assumption_id=a
            )
        )
        assert re.fullmatch(r"SEARCH o USING INDEX observation_by_\w+ \(project_path=\?.*\)", plan)
    assert all("SCAN" not in plan for plan in plans(put))


def test_reads_leave_the_store_as_it_was(ledger, memory, put, cite):
    uid = cite("e2", put().id, memory.observe("x"))
    before = memory._store.last_change()
    connection = ledger._opened()[0]._connection._connection
    written = connection.total_changes()
    ledger.get_evidence(ATLAS, uid)
    ledger.list_evidence(ATLAS)
    assert connection.total_changes() == written
    assert memory._store.last_change() == before


def test_evidence_is_found_by_no_search(ledger, memory, put):
    memory.observe("ordinary words")
    put(observation={"actual": "Xylophone"})
    assert memory.count() == 1
    assert all("Xylophone" not in one.episode.content for one in memory.recall("Xylophone", 5))
    assert ledger.recent(ATLAS) == []


DAMAGED = [
    *(
        f"{name} = CAST(x'ff' AS TEXT)"
        for name in ("id", "session_id", "assumption_id", "evidence_id", "outcome")
    ),
    "observation = CAST(x'7b2261223a22ff227d' AS TEXT)",
    "provenance = CAST(x'ff' AS TEXT)",
    "source_refs = CAST(x'ff' AS TEXT)",
    "observed_at = 9e999",
    "expires_at = 9e999",
]


@pytest.mark.parametrize("change", DAMAGED)
def test_one_damaged_observation_costs_no_other(ledger, memory, put, damage, change):
    first, damaged, last = (put(evidence_id=name).id for name in ("a", "b", "c"))
    damage(f"UPDATE check_observation SET {change} WHERE id = ?", damaged)
    assert {view.id for view in ledger.list_evidence(ATLAS)} == {first, last}
    assert ledger.get_evidence(ATLAS, damaged) == UnknownEvidence(None, "not_found")
    assert reason(ledger.get_evidence(ATLAS, first)) is None
    assert any("observation" in problem for problem in memory.check())
    if "evidence_id" not in change:
        with pytest.raises(InvalidArgument, match="other contents"):
            put(evidence_id="b")


def test_an_endless_observation_is_none_whatever_its_checksum(ledger, put, damage):
    uid = put().id
    with ledger._reading() as store:
        payload = store.observations.get(uid).payload
    forged = payload._replace(expires_at=math.inf)
    damage("UPDATE check_observation SET expires_at = 9e999, payload_sha256 = ?", forged.digest)
    assert ledger.list_evidence(ATLAS) == []
