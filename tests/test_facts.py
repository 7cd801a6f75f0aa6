"""Facts: what holds, since when, who said so, and what is left when it is erased."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from files import every_byte
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder

from engram import Engram, Episode, Fact
from engram.errors import InvalidArgument, InvalidType, NotFound, ScopeError
from engram.storage import FactSource, NewFact
from engram.storage.fact_records import conflicts
from engram.times import to_micros

DAY = timedelta(days=1)
START = Clock().now


def statements(facts: list[Fact]) -> list[str]:
    return [f"{f.subject} {f.predicate} {f.object}" for f in facts]


def run(memory: Engram, *stated: str, **options: object) -> list[str]:
    """Extract facts as one reflection run of the instance's agent does; return their ids."""
    store, now = memory._store, memory._now()
    ids = []
    with store.writing():
        agent = store._agents.add(memory.agent_id)
        store._connection.execute(
            "INSERT INTO reflection (uid, agent, started_at, model_used)"
            " VALUES ('run ' || (SELECT count(*) FROM reflection), ?, ?, 'stub')",
            (agent, now),
        )
        reflection = store._connection.last_id
        for text in stated:
            subject, predicate, value = text.split(" ", 2)
            uid = f"{text} of {reflection} at {len(ids)}"
            new = NewFact(uid, subject, predicate, value, now, now, reflection=reflection)
            new = replace(new, **options)
            key = store.facts.add(new, memory.agent_id)
            for older, _ in store.facts.superseded_by(new, memory.agent_id):
                store.facts.supersede(older, key, now)
            ids.append(uid)
    return ids


def open_facts(memory: Engram, subject: str) -> list[str]:
    return [f.object for f in memory.timeline(subject) if f.valid_to is None]


def test_a_fact_is_as_it_was_stated(open_memory):
    memory = open_memory("a")
    uid = memory.assert_fact("Ivan", "works_at", "Globex", confidence=0.95)
    assert memory.timeline("Ivan") == [
        Fact(
            uid, "Ivan", "works_at", "Globex", START, None, START, None, None, 0.95, agent_id="a"
        )
    ]  # fmt: skip
    assert memory.timeline("ivan") == memory.timeline("Globex") == memory.timeline("") == []


def test_why_has_the_documented_keys(open_memory):
    memory = open_memory("a")
    uid = memory.assert_fact("Alice", "role", "CTO", source="linkedin-profile", shared=False)
    assert memory.why(uid) == {
        "fact": "Alice role CTO",
        "extracted_from": ["linkedin-profile"],
        "extracted_by": None,
        "confidence": 1.0,
        "model": None,
        "provenance": "unknown",
        "quarantined": False,
        "agent_id": "a",
        "shared": False,
    }
    [extracted] = run(memory, "Alice role CEO")
    assert (memory.why(extracted)["model"], memory.why(extracted)["extracted_by"]) == (
        "stub",
        "run 0",
    )
    assert memory.why(memory.assert_fact("a", "b", "c", source=""))["extracted_from"] == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"subject": ""}, InvalidArgument),
        ({"predicate": " \t"}, InvalidArgument),
        ({"object": "secret\ud800"}, InvalidArgument),
        ({"object": 5}, InvalidType),
        ({"confidence": math.nan}, InvalidArgument),
        ({"confidence": 1.01}, InvalidArgument),
        ({"confidence": "secret"}, InvalidType),
        ({"confidence": True}, InvalidType),
        ({"source": 5}, InvalidType),
        ({"shared": 1}, InvalidType),
        ({"quarantined": None}, InvalidType),
        ({"valid_from": "2026-01-01"}, InvalidType),
        ({"valid_to": START}, InvalidArgument),
        ({"valid_from": START, "valid_to": START - DAY}, InvalidArgument),
    ],
)
def test_a_refused_fact_leaves_no_trace(memory, change, error):
    values = {"subject": "secret", "predicate": "secret", "object": "secret", **change}
    with pytest.raises(error) as caught:
        memory.assert_fact(**values)
    assert "secret" not in str(caught.value)
    assert next(iter(change)) in str(caught.value) or "valid_to" in str(caught.value)
    assert memory.counts().facts == 0


def test_both_time_axes_are_queryable(memory, clock):
    memory.assert_fact("Ivan", "lives_in", "Perm", valid_from=START - 90 * DAY)
    clock.advance(days=10)
    run(memory, "Ivan lives_in Kazan")
    clock.advance(days=10)
    memory.assert_fact("Ivan", "born_in", "Omsk", valid_from=START - 9000 * DAY,
                       valid_to=START - 8999 * DAY)  # fmt: skip

    def believed(as_of: datetime | None, known_at: datetime | None) -> list[str]:
        return [f.object for f in memory.timeline("Ivan", as_of=as_of, known_at=known_at)]

    assert believed(None, None) == ["Omsk", "Perm", "Kazan"]
    assert believed(START + 9 * DAY, None) == ["Perm"]
    assert believed(START + 10 * DAY, None) == ["Kazan"]  # an end is exclusive
    # Before day 10 nobody knew of Kazan, so Perm was to last; on day 10 both ends are known.
    assert believed(START + 15 * DAY, START + 9 * DAY) == ["Perm"]
    assert believed(START + 15 * DAY, START + 10 * DAY) == ["Kazan"]
    assert believed(None, START - DAY) == []
    assert believed(START - 9000 * DAY, START + 19 * DAY) == []
    assert believed(START - 9000 * DAY, START + 20 * DAY) == ["Omsk"]
    [perm] = memory.timeline("Ivan", known_at=START)
    assert (perm.valid_to, perm.superseded_at, perm.superseded_by) == (None, None, None)
    # A naive time is UTC.
    assert statements(memory.timeline("Ivan", as_of=START.replace(tzinfo=None))) == [
        "Ivan lives_in Perm"
    ]
    for wrong in ({"as_of": "today"}, {"known_at": 5}):
        with pytest.raises(InvalidType):
            memory.timeline("Ivan", **wrong)


@dataclass
class Belief:
    """A fact of the plain twin: days instead of times."""

    value: str
    begins: int
    recorded: int
    ends: int | None = None
    closed: int | None = None


steps = st.lists(
    st.one_of(
        st.tuples(st.just("assert"), st.integers(-5, 5), st.none() | st.integers(1, 6)),
        st.tuples(st.just("run"), st.just(0), st.none()),
        st.tuples(st.just("wait"), st.integers(1, 3), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(steps, st.none() | st.integers(-6, 20), st.none() | st.integers(-1, 20))
def test_timelines_equal_those_of_the_plain_twin(made, as_of, known_at):
    clock, twin, day = Clock(), [], 0
    with Engram(embedder=WordEmbedder(), clock=clock) as memory:
        for number, (kind, first, length) in enumerate(made):
            value = str(number)
            if kind == "wait":
                clock.advance(days=first)
                day += first
            elif kind == "assert":
                ends = None if length is None else day + first + length
                memory.assert_fact(
                    "s", "p", value,
                    valid_from=clock.now + first * DAY,
                    valid_to=None if ends is None else START + ends * DAY,
                )  # fmt: skip
                twin.append(Belief(value, day + first, day, ends))
            else:
                run(memory, f"s p {value}")
                for belief in twin:
                    if belief.ends is None and belief.closed is None:
                        belief.closed = day
                        belief.ends = max(belief.begins, day)
                twin.append(Belief(value, day, day))

        def known(belief: Belief) -> tuple[str, int, int | None]:
            undone = known_at is not None and belief.closed is not None and belief.closed > known_at
            return belief.value, belief.begins, None if undone else belief.ends

        expected = [
            value
            for value, begins, ends in sorted(
                (known(b) for b in twin if known_at is None or b.recorded <= known_at),
                key=lambda one: one[1],
            )
            if as_of is None or (begins <= as_of and (ends is None or ends > as_of))
        ]
        found = memory.timeline(
            "s",
            as_of=None if as_of is None else START + as_of * DAY,
            known_at=None if known_at is None else START + known_at * DAY,
        )
        assert [fact.object for fact in found] == expected


def test_asserting_closes_nothing_and_contradictions_show(memory):
    for value in ("Globex", "Acme", "Globex"):
        memory.assert_fact("Ivan", "works_at", value)
    memory.assert_fact("Ivan", "likes", "tea")
    memory.assert_fact("Ivan", "works_at", "Old Corp", valid_to=START + DAY)
    pairs = [(a.object, b.object) for a, b in memory.contradictions()]
    assert pairs == [("Globex", "Acme"), ("Acme", "Globex")]
    for limit in (1, 2, 3):
        assert memory.contradictions(limit=limit) == memory.contradictions()[:limit]


def test_not_every_contradiction_is_made_to_return_some(memory, monkeypatch):
    """Every two of 300 values contradict each other: 44,850 pairs."""
    made = []

    def counted(rows):
        for pair in conflicts(rows):
            made.append(pair)
            yield pair

    for number in range(300):
        memory.assert_fact("Ivan", "lives_in", f"town {number}")
    monkeypatch.setattr("engram.storage.facts.conflicts", counted)
    assert len(memory.contradictions(limit=50)) == len(made) == 50
    assert len(memory.contradictions()) == 300 * 299 / 2


def test_values_of_a_multi_valued_predicate_do_not_destroy_each_other(memory):
    memory.declare_predicate("likes", multi=True)
    run(memory, "Ivan likes tea")
    run(memory, "Ivan likes coffee")
    run(memory, "Ivan likes tea")
    # A repetition closes the older statement of the same value, so that it is there once.
    assert open_facts(memory, "Ivan") == ["coffee", "tea"]
    assert memory.contradictions() == []
    memory.declare_predicate("likes", multi=False)
    assert len(memory.contradictions()) == 1
    run(memory, "Ivan likes water")
    assert open_facts(memory, "Ivan") == ["water"]
    for name, multi, error in (("", True, InvalidArgument), ("x", 1, InvalidType)):
        with pytest.raises(error):
            memory.declare_predicate(name, multi=multi)


def test_facts_of_one_run_never_supersede_each_other(memory, clock):
    run(memory, "Ivan likes water")
    clock.advance(days=1)
    run(memory, "Ivan likes tea", "Ivan likes coffee")
    assert open_facts(memory, "Ivan") == ["tea", "coffee"]
    assert all(f.valid_to is None or f.valid_to > f.valid_from for f in memory.timeline("Ivan"))
    assert [(a.object, b.object) for a, b in memory.contradictions()] == [("tea", "coffee")]


def test_an_agents_run_closes_only_what_the_agent_owns(open_memory):
    a, b, operator = open_memory("a"), open_memory("b"), open_memory()
    a.assert_fact("Ivan", "lives_in", "Perm")
    operator.assert_fact("Ivan", "lives_in", "Omsk")
    run(b, "Ivan lives_in Kazan")
    assert open_facts(b, "Ivan") == ["Perm", "Omsk", "Kazan"]
    run(b, "Ivan lives_in Tula")
    assert open_facts(b, "Ivan") == ["Perm", "Omsk", "Tula"]
    run(operator, "Ivan lives_in Sochi")
    assert open_facts(a, "Ivan") == ["Sochi"]


def test_an_agent_that_never_wrote_closes_nothing(open_memory):
    open_memory("a").assert_fact("Ivan", "lives_in", "Perm")
    stranger = open_memory("b")
    new = NewFact("u", "Ivan", "lives_in", "Omsk", 0, 0, reflection=1)
    with stranger._store.reading():
        assert stranger._store.facts.superseded_by(new, "b") == []


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [(False, False, 1), (False, True, 2), (True, True, 1), (True, False, 1)],
)
def test_a_quarantined_fact_never_closes_an_unquarantined_one(memory, old, new, left):
    run(memory, "Ivan lives_in Perm", quarantined=old)
    run(memory, "Ivan lives_in Omsk", quarantined=new)
    assert len(open_facts(memory, "Ivan")) == left


def test_forgetting_the_successor_reopens_the_predecessor(memory, clock):
    first = memory.assert_fact("Ivan", "lives_in", "Perm")
    clock.advance(days=1)
    [second] = run(memory, "Ivan lives_in Omsk")
    assert memory.timeline("Ivan")[0].superseded_by == second
    memory.forget_fact(second)
    [perm] = memory.timeline("Ivan")
    assert perm.id == first
    assert (perm.valid_to, perm.superseded_at, perm.superseded_by) == (None, None, None)


def test_forgetting_one_of_two_successors_keeps_the_predecessor_closed(memory, clock):
    memory.assert_fact("Ivan", "lives_in", "Perm")
    clock.advance(days=1)
    second, third = run(memory, "Ivan lives_in Omsk", "Ivan lives_in Tula")
    memory.forget_fact(second)
    perm = memory.timeline("Ivan")[0]
    assert (perm.superseded_by, perm.superseded_at, perm.valid_to) == (
        third,
        clock.now,
        clock.now,
    )
    memory.forget_fact(third)
    assert open_facts(memory, "Ivan") == ["Perm"]


def test_forgetting_the_middle_of_a_chain_joins_its_ends(memory, clock):
    memory.assert_fact("Ivan", "lives_in", "Perm")
    ids = []
    for place in ("Omsk", "Tula"):
        clock.advance(days=1)
        ids += run(memory, f"Ivan lives_in {place}")
    memory.forget_fact(ids[0])
    perm, tula = memory.timeline("Ivan")
    assert (perm.superseded_by, perm.valid_to, tula.valid_from) == (ids[1], clock.now, clock.now)


def test_forgetting_a_source_never_launders_a_fact(open_memory):
    memory = open_memory("a")
    typed = memory.observe("Ivan says he moved", provenance="user")
    page = memory.observe("a web page says so", provenance="external", quarantined=True)
    with memory._store.writing():
        sources = tuple(
            FactSource(uid, memory._store.episodes.key(uid, "a"), provenance)
            for uid, provenance in ((typed, "user"), (page, "external"))
        )
        memory._store.facts.add(
            NewFact("f", "Ivan", "lives_in", "Omsk", 0, 0, sources=sources), "a"
        )
    told = memory.why("f")
    assert (told["provenance"], told["quarantined"]) == ("external", True)
    assert told["extracted_from"] == [typed, page]
    memory.forget(page)
    told = memory.why("f")
    assert (told["provenance"], told["quarantined"]) == ("external", True)
    assert told["extracted_from"] == [typed]
    memory.forget(typed)
    assert (memory.why("f")["provenance"], memory.why("f")["extracted_from"]) == ("external", [])
    assert memory.check() == []


def test_a_source_that_is_a_visible_episode_is_linked(open_memory):
    a, b = open_memory("a"), open_memory("b")
    uid = a.observe("Ivan says he moved", provenance="user", quarantined=True)
    linked = a.assert_fact("Ivan", "lives_in", "Omsk", source=uid)
    named = b.assert_fact("Ivan", "lives_in", "Omsk", source=uid)
    assert (a.why(linked)["provenance"], a.why(linked)["quarantined"]) == ("user", True)
    # To b it is a name like any other: not even its existence shows.
    assert (b.why(named)["provenance"], b.why(named)["quarantined"]) == ("unknown", False)


@pytest.mark.parametrize(
    ("reader", "owner", "shared", "seen", "erasable"),
    [
        ("a", "a", True, True, True),
        ("a", "a", False, True, True),
        ("a", "b", True, True, False),
        ("a", "b", False, False, False),
        ("a", None, True, True, False),
        ("a", None, False, False, False),
        (None, "b", True, True, True),
        (None, "b", False, True, True),
        (None, None, False, True, True),
    ],
)
def test_who_sees_and_who_erases_a_fact(open_memory, reader, owner, shared, seen, erasable):
    writer, other = open_memory(owner), open_memory(reader)
    uid = writer.assert_fact("Ivan", "lives_in", "Omsk", shared=shared)
    writer.assert_fact("Ivan", "lives_in", "Perm", shared=shared)
    assert len(other.timeline("Ivan")) == (2 if seen else 0)
    assert len(other.contradictions()) == int(seen)
    if seen:
        assert other.why(uid)["agent_id"] == owner
    else:
        with pytest.raises(NotFound):
            other.why(uid)
    if erasable:
        other.forget_fact(uid)
        assert len(writer.timeline("Ivan")) == 1
        return
    with pytest.raises(PermissionError if seen else KeyError) as caught:
        other.forget_fact(uid)
    assert isinstance(caught.value, ScopeError if seen else NotFound)
    assert "Omsk" not in str(caught.value)
    assert len(writer.timeline("Ivan")) == 2


@pytest.mark.parametrize("uid", ["", "nope", "00000000-0000-0000-0000-000000000000", "\0"])
def test_an_unknown_fact_is_not_found(memory, uid):
    for call in (memory.why, memory.forget_fact):
        with pytest.raises(KeyError):
            call(uid)
        with pytest.raises(InvalidType):
            call(None)


def test_a_private_successor_stays_private(open_memory):
    a, b = open_memory("a"), open_memory("b")
    a.assert_fact("Ivan", "lives_in", "Omsk")
    [secret] = run(a, "Ivan lives_in Perm", shared=False)
    assert a.timeline("Ivan")[0].superseded_by == secret
    [closed] = b.timeline("Ivan")
    assert (closed.superseded_by, closed.superseded_at) == (None, START)


def test_an_alias_is_the_same_entity(memory, clock):
    memory.add_alias("Ivan Petrov", "Vanya")
    memory.assert_fact("Vanya", "lives_in", "Perm")
    memory.assert_fact("Ivan Petrov", "lives_in", "Omsk")
    for name in ("Vanya", "Ivan Petrov"):
        assert statements(memory.timeline(name)) == [
            "Vanya lives_in Perm",
            "Ivan Petrov lives_in Omsk",
        ]
    assert len(memory.contradictions()) == 1
    clock.advance(days=1)
    [tula] = run(memory, "Vanya lives_in Tula")
    assert open_facts(memory, "Ivan Petrov") == ["Tula"]
    memory.forget_fact(tula)
    assert open_facts(memory, "Vanya") == ["Perm", "Omsk"]
    # Two that were seen apart, each with another name, become one.
    memory.add_alias("V. P.", "Petrov")
    memory.add_alias("Vanya", "Petrov")
    memory.add_alias("Ivan Petrov", "Ivan Petrov")
    with memory._store.reading():
        names = memory._store.graph.names("V. P.")
        assert names == ["Ivan Petrov", "Petrov", "V. P.", "Vanya"]
    assert len(memory.timeline("V. P.")) == 2
    assert memory.counts().entities == 1
    assert memory.check() == []
    with pytest.raises(InvalidArgument):
        memory.add_alias("Ivan", " ")


def test_fact_writes_do_not_disturb_the_vectors(memory):
    uid = memory.observe("keep the piano")
    assert len(memory.recall("piano")) == 1
    # The fact's key equals the episode's.
    fact = memory.assert_fact("piano", "colour", "black")
    memory.forget_fact(fact)
    assert [r.episode.id for r in memory.recall("piano", mode="cosine")] == [uid]
    with memory._store.reading():
        changes = list(memory._store.changes_after(0))
    assert [op for op, *_ in changes] == ["observe", "assert", "forget_fact"]


def test_a_forgotten_fact_is_in_no_byte_of_the_file(open_memory, path):
    memory = open_memory("a")
    uid = memory.assert_fact("Xylophonist", "plays_quietly", "Quetzalcoatl", source="Hieronymus")
    memory.assert_fact("Bob", "plays", "chess")
    memory.forget_fact(uid)
    memory.close()
    left = every_byte(path)
    for trace in ("Xylophonist", "plays_quietly", "Quetzalcoatl", "Hieronymus"):
        assert trace.encode() not in left, trace
    assert b"chess" in left


def test_events_follow_the_commit(open_memory, tmp_path):
    log = tmp_path / "events.ndjson"
    memory = open_memory("agent://example.test/a", events_path=log)
    uid = memory.assert_fact("Ivan", "lives_in", "Omsk")
    memory.forget_fact(uid)
    with pytest.raises(KeyError):
        memory.forget_fact(uid)
    with pytest.raises(InvalidArgument):
        memory.assert_fact("", "lives_in", "Omsk")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(e["type"], e["data"]["memory_id"], e["data"]["kind"]) for e in events] == [
        ("memory_written", uid, "semantic"),
        ("memory_forgotten", uid, "semantic"),
    ]


def test_facts_outlive_the_instance_and_show_in_others(open_memory):
    one, two = open_memory("a"), open_memory("b")
    one.assert_fact("Ivan", "lives_in", "Omsk")
    assert statements(two.timeline("Ivan")) == ["Ivan lives_in Omsk"]
    one.close()
    assert statements(open_memory().timeline("Ivan")) == ["Ivan lives_in Omsk"]
    assert (two.counts().facts, two.counts().active_facts) == (1, 1)


def test_supersession_notes_every_write(memory):
    run(memory, "Ivan lives_in Perm")
    run(memory, "Ivan lives_in Omsk")
    with memory._store.reading():
        assert [op for op, *_ in memory._store.changes_after(0)] == ["assert"] * 2 + ["supersede"]


def test_a_fact_that_was_to_begin_later_never_holds_once_superseded(memory):
    memory.assert_fact("Ivan", "lives_in", "Perm", valid_from=START + 9 * DAY)
    run(memory, "Ivan lives_in Omsk")
    assert [f.object for f in memory.timeline("Ivan", as_of=START + 10 * DAY)] == ["Omsk"]


def test_rows_of_the_reference_are_read_with_the_legacy_rule():
    moment = datetime(2024, 3, 1, tzinfo=UTC)
    row = ["e", "text", "2024-03-01T00:00:00+00:00", '["Bob"]', "[]", 0.5, 0.0, '["s"]', None]
    assert Episode.from_row(row) == Episode(
        "e", "text", moment, ["Bob"], [], summary_of=["s"], quarantined=True
    )
    whole = Episode.from_row([*row, "a", "user", 0])
    assert (whole.agent_id, whole.provenance, whole.quarantined) == ("a", "user", False)
    unmarked = Episode.from_row([*row, "a", "user", None])
    assert (unmarked.provenance, unmarked.quarantined) == ("unknown", True)
    unsourced = Episode.from_row([*row, "a", None, 0])
    assert (unsourced.provenance, unsourced.quarantined) == ("unknown", False)

    fact = ["f", "s", "p", "o", "2024-03-01 00:00:00", None, "2024-03-01T03:00:00+03:00"]
    fact += [None, None, 0.5, '["e"]', "r"]
    assert Fact.from_row(fact) == Fact(
        "f", "s", "p", "o", moment, None, moment, None, None, 0.5, ["e"], "r", quarantined=True
    )
    own = Fact.from_row([*fact, "a", 0, 0])
    assert (own.agent_id, own.shared, own.quarantined) == ("a", False, False)
    assert to_micros(own.valid_from) == to_micros(moment)


def test_facts_are_listed_page_by_page_in_the_order_they_were_recorded(open_memory):
    a, b = open_memory("a"), open_memory("b")
    made = [
        (a if n % 2 else b).assert_fact("s", f"p{n}", "o", valid_from=START - n * DAY, shared=n < 8)
        for n in range(10)
    ]
    run(a, "s p1 other")
    found, cursor = [], None
    while True:
        page = a.facts(active_only=False, limit=3, cursor=cursor)
        found += [fact.id for fact in page.facts]
        cursor = page.cursor
        if cursor is None:
            break
    assert found[:-1] == [uid for n, uid in enumerate(made) if n != 8]
    assert made[1] not in [fact.id for fact in a.facts().facts]
    for wrong, error in (("x", InvalidArgument), ("9" * 40, InvalidArgument), (5, InvalidType)):
        with pytest.raises(error):
            a.facts(cursor=wrong)


@pytest.mark.parametrize(
    ("of_episode", "said", "read"),
    [
        ("user", None, "user"),
        ("user", "user", "user"),
        ("user", "tool", "tool"),
        ("tool", "user", "tool"),
        ("external", "user", "external"),
    ],
)
def test_a_source_speaks_with_the_trust_it_is_given_and_no_more_than_its_own(
    memory, of_episode, said, read
):
    uid = memory.observe("Ivan lives in Omsk.", provenance=of_episode)
    fact = memory.assert_fact("Ivan", "lives_in", "Omsk", source=uid, source_provenance=said)
    assert memory.why(fact)["provenance"] == read
    assert memory.why(fact)["extracted_from"] == [uid]
    # It is remembered with the fact: erasing the episode launders nothing.
    memory.forget(uid)
    assert memory.why(fact)["provenance"] == read


def test_a_named_source_may_be_known(memory):
    named = {"source": "the user", "source_provenance": "user"}
    fact = memory.assert_fact("Ivan", "lives_in", "Omsk", **named)
    assert memory.why(fact)["provenance"] == "user"
    assert memory.check() == []
    for refused in ({"source_provenance": "user"}, {**named, "source_provenance": "unknown"}):
        with pytest.raises(InvalidArgument):
            memory.assert_fact("Ivan", "lives_in", "Tomsk", **refused)


@pytest.mark.parametrize("gone", ["forgotten", "another's", "never there", "no id"])
def test_a_source_that_must_be_an_episode_is_never_taken_for_a_name(open_memory, gone):
    """Whoever saw the episode a moment ago cannot vouch for it any more."""
    memory, other = open_memory("a"), open_memory("b")
    uid = {"never there": "0" * 32, "no id": ""}.get(gone)
    if uid is None:
        uid = (other if gone == "another's" else memory).observe("A page says: Omsk.")
    if gone == "forgotten":
        memory.forget(uid)
    before = memory.facts()
    with pytest.raises(NotFound):
        memory.assert_fact("Ivan", "lives_in", "Omsk", source_episode=uid, source_provenance="user")
    assert memory.facts() == before


def test_a_fact_of_an_episode_has_its_marks(memory):
    uid = memory.observe("A page says: Omsk.", provenance="external", quarantined=True)
    given = {"source_episode": uid, "source_provenance": "user"}
    fact = memory.assert_fact("Ivan", "lives_in", "Omsk", **given)
    assert memory.why(fact)["extracted_from"] == [uid]
    for _ in range(2):
        assert memory.trust_of([fact]) == {fact: ("external", True)}
        if memory.count():
            memory.forget(uid)
    with pytest.raises(InvalidArgument):
        memory.assert_fact("Ivan", "lives_in", "Omsk", source="his card", **given)


def test_one_fact_by_its_id(open_memory):
    a, b = open_memory("a"), open_memory("b")
    private = a.assert_fact("Ivan", "lives_in", "Omsk", shared=False)
    shared = a.assert_fact("Ivan", "works_at", "Globex")
    assert [a.get_fact(uid).predicate for uid in (private, shared)] == ["lives_in", "works_at"]
    assert b.get_fact(shared) == a.get_fact(shared)
    for uid in (private, "nothing"):
        with pytest.raises(NotFound):
            b.get_fact(uid)


def test_the_trust_of_many_facts_is_what_why_says_of_each(open_memory):
    a, b = open_memory("a"), open_memory("b")
    page = a.observe("a web page says so", quarantined=True)
    ids = [
        a.assert_fact("Ivan", "lives_in", "Omsk", source=page, source_provenance="external"),
        a.assert_fact("Ivan", "works_at", "Globex", source="his card", source_provenance="user"),
        a.assert_fact("Ivan", "likes", "tea", quarantined=True),
        *run(a, "Ivan likes chess"),
    ]
    private = a.assert_fact("Ivan", "earns", "much", shared=False)
    told = {uid: (a.why(uid)["provenance"], a.why(uid)["quarantined"]) for uid in ids}
    assert set(told.values()) == {
        ("external", True), ("user", False), ("unknown", True), ("unknown", False)
    }  # fmt: skip
    assert b.trust_of([*ids, private, "nothing", ids[0]]) == told
    assert a.trust_of(iter([private])) == {private: ("unknown", False)}
    assert a.trust_of([]) == {}
    for refused in ("nothing", [1]):
        with pytest.raises(InvalidType):
            a.trust_of(refused)
