"""Check observations: stored once and for ever, and worth what they rest on."""

from __future__ import annotations

import math
import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import Clock

from engram.errors import CannotOpen, InvalidArgument, InvalidType
from engram.ledger import Ledger
from engram.ledger.evidence import CheckObservation, UnknownEvidence
from engram.ledger.sources import MOST_FOLLOWED
from engram.storage.observations import Payload

ATLAS = "/projects/atlas"
NOW = Clock().now.timestamp()
YEAR = 365 * 86_400


def well_formed(**changes: object) -> dict[str, object]:
    return {
        "session_id": "release-check",
        "assumption_id": "artifact-matches",
        "evidence_id": "e1",
        "outcome": "supported",
        "observed_at": NOW,
        "expires_at": NOW + 3600,
        "observation": {"actual": "same hash"},
        "provenance": {"producer": "kiln", "check_type": "artifact-hash"},
    } | changes


@pytest.fixture
def put(ledger):
    def run(project: str = ATLAS, **changes: object):
        return ledger.put_evidence(project, **well_formed(**changes))

    return run


@pytest.fixture
def cite(put):
    """Store an observation under a name that cites others by their ids; return its id."""

    def run(name: str, *sources: str, **changes: object) -> str:
        refs = [f"memory:{source}" for source in sources]
        return put(evidence_id=name, source_refs=refs, **changes).id

    return run


def reason(view: CheckObservation | UnknownEvidence) -> str | None:
    return view.reason if isinstance(view, UnknownEvidence) else None


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


NAMED = {"producer": "x", "check_type": "y"}
LIMITS = [
    ("session_id", "x" * 200, "x" * 201),
    ("assumption_id", "𝕄" * 200, " " + "x" * 200),
    ("evidence_id", "x", "\n"),
    ("outcome", "unknown", "Supported"),
    ("outcome", "contradicted", " supported"),
    ("observed_at", NOW + 300, NOW + 300.001),
    ("observed_at", 1e-3, 0),
    ("observed_at", NOW, -1.0),
    ("observed_at", NOW, math.nan),
    ("observed_at", NOW, 10**400),
    ("expires_at", NOW + YEAR, NOW + YEAR + 0.001),
    ("expires_at", NOW + 0.001, NOW),
    ("expires_at", NOW + 1, math.inf),
    ("expires_at", NOW + 1, 10**400),
    ("observation", {"a": "x" * 4088}, {"a": "x" * 4089}),
    ("observation", {"a": "é" * 681}, {"a": "é" * 682}),
    ("observation", {"a": "𝕄" * 340}, {"a": "𝕄" * 341}),
    ("observation", {}, {"a": math.inf}),
    ("observation", {}, {"a": "\ud800"}),
    ("observation", {}, {"\udfff": 1}),
    ("observation", {}, {"a": 10**400}),
    ("provenance", NAMED | {"check_type": "y" * 200}, NAMED | {"producer": " "}),
    ("provenance", NAMED | {"a": "z" * 2008}, NAMED | {"a": "z" * 2009}),
    ("provenance", NAMED, NAMED | {"check_type": "y" * 201}),
    ("source_refs", [f"r{n}" for n in range(8)], ["r"] * 9),
    ("source_refs", ["x" * 256], ["x" * 257]),
    ("source_refs", ["memory:x"], ["memory:"]),
    ("source_refs", ["Memory:"], [" memory: "]),
    ("source_refs", ["x"], ["x", ""]),
    ("source_refs", ["x"], ["\ud800"]),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "good", "bad"), LIMITS)
def test_limits_are_inclusive(ledger, put, argument, good, bad):
    changes = {"observed_at": 1e-3, "expires_at": 1} if good == 1e-3 else {}
    assert put(**(changes | {argument: good})).view.id is not None
    before = ledger.list_evidence(ATLAS)
    with pytest.raises(InvalidArgument, match=argument):
        put(**{"evidence_id": "other", argument: bad})
    assert ledger.list_evidence(ATLAS) == before


WRONG_TYPES = [
    ("session_id", 5),
    ("assumption_id", None),
    ("evidence_id", b"x"),
    ("outcome", True),
    ("observed_at", True),
    ("observed_at", "1"),
    ("expires_at", None),
    ("observation", [1]),
    ("observation", None),
    ("observation", {1: 2}),
    ("observation", {"a": {1, 2}}),
    ("provenance", "kiln"),
    ("provenance", {"producer": "x"}),
    ("provenance", {"producer": "x", "check_type": 5}),
    ("source_refs", "memory:x"),
    ("source_refs", [5]),
    ("source_refs", 5),
]


@pytest.mark.parametrize(("argument", "bad"), WRONG_TYPES)
def test_types_are_not_coerced(ledger, put, argument, bad):
    with pytest.raises(InvalidType, match=argument):
        put(**{argument: bad})
    assert ledger.list_evidence(ATLAS) == []


def test_nesting_has_a_limit(put):
    deep: object = 1
    for _ in range(200):
        deep = [deep]
    with pytest.raises(InvalidArgument, match="observation"):
        put(observation={"a": deep})


ORDER = [*well_formed(), "source_refs"]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_arguments_are_checked_in_order_and_before_the_store(tmp_path, first):
    absent = Ledger(tmp_path / "absent.engram", clock=Clock())
    with pytest.raises(InvalidType, match=ORDER[first]):
        absent.put_evidence(ATLAS, **(well_formed() | dict.fromkeys(ORDER[first:], 5.5j)))
    with pytest.raises(InvalidArgument, match="project"):
        absent.put_evidence("p", **dict.fromkeys(ORDER, 5.5j))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda one: one.get_evidence("p", ""), "project"),
        (lambda one: one.get_evidence(ATLAS, "x" * 201), "evidence"),
        (lambda one: one.get_evidence(ATLAS, 5), "evidence"),
        (lambda one: one.list_evidence("", session_id="", limit=0), "project"),
        (lambda one: one.list_evidence(ATLAS, session_id="", assumption_id=5), "session_id"),
        (lambda one: one.list_evidence(ATLAS, assumption_id=5, limit=0), "assumption_id"),
        (lambda one: one.list_evidence(ATLAS, limit=51), "limit"),
        (lambda one: one.list_evidence(ATLAS, limit=True), "limit"),
        (lambda one: one.list_evidence(ATLAS, limit="3"), "limit"),
    ],
)
def test_reads_check_before_the_store_too(tmp_path, call, argument):
    absent = Ledger(tmp_path / "absent.engram")
    with pytest.raises((InvalidArgument, InvalidType), match=argument):
        call(absent)
    for good in (
        lambda: absent.get_evidence(ATLAS, "x"),
        lambda: absent.list_evidence(ATLAS),
        lambda: absent.put_evidence(ATLAS, **well_formed(observed_at=1, expires_at=2)),
    ):
        with pytest.raises(CannotOpen):
            good()
    assert list(tmp_path.iterdir()) == []


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


def test_messages_never_quote(put):
    secret = "Xylophone"
    for argument, bad in (
        ("outcome", secret),
        ("session_id", secret * 100),
        ("observation", {secret: {1}}),
        ("provenance", {secret: 1}),
        ("source_refs", [secret * 100]),
    ):
        with pytest.raises((InvalidArgument, InvalidType)) as caught:
            put(**{argument: bad})
        assert secret not in str(caught.value)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
documents = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner,
                          max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)  # fmt: skip


def exact(value: object) -> object:
    """A value that is equal to another one only where both are the same JSON."""
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return (type(value), repr(value))


@given(first=documents, second=documents)
def test_any_json_comes_back_and_only_the_same_is_a_repetition(ledger, put, damage, first, second):
    damage("DELETE FROM check_observation")
    receipt = put(observation=first)
    assert exact(receipt.view.observation) == exact(first)
    backwards = dict(reversed(first.items()))
    assert put(observation=backwards) == receipt
    if exact(first) == exact(second):
        assert put(observation=second) == receipt
    else:
        with pytest.raises(InvalidArgument):
            put(observation=second)
    assert exact(ledger.get_evidence(ATLAS, receipt.id).observation) == exact(first)
